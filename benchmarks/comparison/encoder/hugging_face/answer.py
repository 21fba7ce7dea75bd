import csv

from transformers import pipeline

classify = pipeline("text-classification", model="model")
with open("new.csv", newline="", encoding="utf-8") as file:
    texts = [row["text"] for row in csv.DictReader(file)]
with open("answers.csv", "w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    table.writerow(["text", "prediction"])
    for text, answer in zip(texts, classify(texts, truncation=True), strict=True):
        table.writerow([text, answer["label"]])
