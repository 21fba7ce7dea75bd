import csv

import joblib
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

with open("train.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
texts, labels = [row["text"] for row in rows], [row["label"] for row in rows]
train_texts, test_texts, train_labels, test_labels = train_test_split(
    texts, labels, test_size=0.1, random_state=0
)
model = make_pipeline(TfidfVectorizer(), LogisticRegression())
model.fit(train_texts, train_labels)
print(classification_report(test_labels, model.predict(test_texts)))
joblib.dump(model, "model.joblib")
