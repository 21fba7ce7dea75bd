"""Times the answers of a trained model, in the Python of its tool: one line of JSON.

    python ask.py TOOL TEXTS     in the folder of the training; TEXTS: a JSON list

All times are CPU seconds of this process, so that what else the machine does counts for none.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LEAST = 1000
"""Texts that are answered in bulk, at least."""
PASSES = 3


def scikit_learn() -> tuple[Callable[[str], Any], Callable[[Sequence[str]], Any]]:
    import joblib

    model = joblib.load("model.joblib")
    return lambda text: model.predict([text]), model.predict


def spacy() -> tuple[Callable[[str], Any], Callable[[Sequence[str]], Any]]:
    import spacy

    nlp = spacy.load("model/model-best")
    return nlp, lambda texts: [doc.cats for doc in nlp.pipe(texts)]


def hugging_face() -> tuple[Callable[[str], Any], Callable[[Sequence[str]], Any]]:
    from transformers import pipeline

    classify = pipeline("text-classification", model="model")
    return classify, lambda texts: classify(list(texts), truncation=True)


def ludwig() -> tuple[Callable[[str], Any], Callable[[Sequence[str]], Any]]:
    import pandas
    from ludwig.api import LudwigModel

    model = LudwigModel.load("results/experiment_run/model")

    def answer(texts: Sequence[str]) -> Any:
        return model.predict(dataset=pandas.DataFrame({"text": texts}))

    return lambda text: answer([text]), answer


def textmill() -> tuple[Callable[[str], Any], Callable[[Sequence[str]], Any]]:
    import textmill

    model = textmill.load("model")
    return model, lambda texts: model(list(texts))


TOOLS = {
    "textmill": textmill,
    "scikit_learn": scikit_learn,
    "scikit_learn_searched": scikit_learn,
    "spacy": spacy,
    "hugging_face": hugging_face,
    "ludwig": ludwig,
}


def main(tool: str, path: str) -> None:
    """Loads, answers one text, then each by itself, then all at once."""
    texts = json.loads(Path(path).read_text(encoding="utf-8"))
    one, many = TOOLS[tool]()
    one(texts[0])
    first = time.process_time()
    alone = []
    for text in texts[:200]:
        begun = time.process_time()
        one(text)
        alone.append(time.process_time() - begun)
    bulk = texts * (1 + (LEAST - 1) // len(texts))
    speeds = []
    for _ in range(PASSES):
        begun = time.process_time()
        many(bulk)
        speeds.append(len(bulk) / (time.process_time() - begun))
    ms = 1000 * statistics.median(alone)
    figures = {"first_s": first, "ms": ms, "rows_s": statistics.median(speeds)}
    print(json.dumps(figures), flush=True)
    os._exit(0)  # threads of some tools outlive main


if __name__ == "__main__":
    main(*sys.argv[1:])
