import csv

import spacy
from spacy.tokens import DocBin

with open("train.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
labels = sorted({row["label"] for row in rows})
nlp = spacy.blank("en")
parts = {"dev": rows[::10], "train": [row for n, row in enumerate(rows) if n % 10]}
for name, part in parts.items():
    docs = DocBin()
    for row in part:
        doc = nlp.make_doc(row["text"])
        doc.cats = {label: float(label == row["label"]) for label in labels}
        docs.add(doc)
    docs.to_disk(f"{name}.spacy")
