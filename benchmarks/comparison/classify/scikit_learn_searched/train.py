import csv

import joblib
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import classification_report
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import LinearSVC

with open("train.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
texts, labels = [row["text"] for row in rows], [row["label"] for row in rows]
train_texts, test_texts, train_labels, test_labels = train_test_split(
    texts, labels, test_size=0.1, random_state=0
)
words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
model = GridSearchCV(
    make_pipeline(make_union(words, letters), LinearSVC()),
    {"linearsvc__C": [0.1, 0.3, 1, 3, 10]},
)
model.fit(train_texts, train_labels)
print(model.best_params_)
print(classification_report(test_labels, model.predict(test_texts)))
joblib.dump(model.best_estimator_, "model.joblib")
