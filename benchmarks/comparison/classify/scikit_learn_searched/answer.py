import csv

import joblib

model = joblib.load("model.joblib")
with open("new.csv", newline="", encoding="utf-8") as file:
    texts = [row["text"] for row in csv.DictReader(file)]
with open("answers.csv", "w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    table.writerow(["text", "prediction"])
    table.writerows(zip(texts, model.predict(texts), strict=True))
