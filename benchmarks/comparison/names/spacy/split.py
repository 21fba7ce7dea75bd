import spacy
from spacy.tokens import DocBin

nlp = spacy.blank("en")
docs = list(DocBin().from_disk("train.spacy").get_docs(nlp.vocab))
DocBin(docs=docs[::10]).to_disk("dev.spacy")
DocBin(docs=[doc for n, doc in enumerate(docs) if n % 10]).to_disk("part.spacy")
