from pathlib import Path

import spacy
from spacy.tokens import Doc

nlp = spacy.load("model/model-best")
blocks = Path("new.conll").read_text(encoding="utf-8").strip().split("\n\n")
texts = [[line.split("\t")[0] for line in block.splitlines()] for block in blocks]
with open("answers.txt", "w", encoding="utf-8") as file:
    for doc in nlp.pipe(Doc(nlp.vocab, words=words) for words in texts):
        tags = [f"{w.ent_iob_}-{w.ent_type_}" if w.ent_type_ else "O" for w in doc]
        print(*tags, file=file)
