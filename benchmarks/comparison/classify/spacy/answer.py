import csv

import spacy

nlp = spacy.load("model/model-best")
with open("new.csv", newline="", encoding="utf-8") as file:
    texts = [row["text"] for row in csv.DictReader(file)]
with open("answers.csv", "w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    table.writerow(["text", "prediction"])
    for doc in nlp.pipe(texts):
        table.writerow([doc.text, max(doc.cats, key=doc.cats.get)])
