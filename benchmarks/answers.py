"""From a text to its answer: a classifier and a tagger, from the run, exported, and spaCy's.

    python benchmarks/answers.py --peer "textmill export, classifier" --data train.tsv --cache /tmp
    python benchmarks/answers.py --peer "spaCy, tagger" --data train.tsv --cache /tmp

The models are ``classification/docnn`` and ``tagging/ner`` as they are shipped, trained for some
steps: weights do not change how long an answer takes. spaCy's are those of its efficiency pipeline
(``HashEmbedCNN`` of width 96 and depth 4 under a text classifier and under a named entity
recognizer). Each text is asked by itself, and 256 at once, on one thread. Of an export, each text
is followed by onnxruntime alone on the same ids.
"""

import argparse
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import machine

PEERS: dict[str, tuple[str, ...]] = {
    f"{what}, {model}": needs
    for model in ("classifier", "tagger")
    for what, needs in (
        ("textmill run", ()), ("textmill export", ("onnx", "onnxruntime")), ("spaCy", ("spacy",))
    )
}  # fmt: skip
EXPERIMENTS = {"classifier": "classification/docnn", "tagger": "tagging/ner"}
ROWS, WARM, TOGETHER = 4000, 400, 256
"""Rows that are learnt from, texts that are answered before it is measured, texts at once."""
STEPS = 30
TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2", "width": 96, "depth": 4, "embed_size": 2000,
    "window_size": 1, "maxout_pieces": 3, "subword_features": True, "pretrained_vectors": None,
}  # fmt: skip


def sentences(data: Path, count: int) -> list[tuple[str, str]]:
    """Labels and texts of both languages."""
    with data.open(encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t")[:2] for line in itertools.islice(file, count)]
    rows = [pair for line in lines for pair in zip(("source", "target"), line, strict=True)]
    rows = [(label, " ".join(text.split())) for label, text in rows if text.strip()]
    random.Random(1).shuffle(rows)
    return rows


def tags(text: str) -> list[str]:
    return ["B-name" if word[:1].isupper() else "O" for word in text.split()]


def run_of(model: str, rows: Sequence[tuple[str, str]], cache: Path) -> Path:
    import textmill

    folder = cache / f"answers-{model}"
    if not folder.exists():
        file = cache / f"answers-{model}.{'tsv' if model == 'classifier' else 'conll'}"
        if model == "classifier":
            lines = (f"{label}\t{text}\n" for label, text in rows[:ROWS])
        else:
            pairs = (zip(text.split(), tags(text), strict=True) for _, text in rows[:ROWS])
            lines = ("".join(f"{w}\t{t}\n" for w, t in pair) + "\n" for pair in pairs)
        file.write_text("".join(lines), encoding="utf-8")
        words = [f"{data}.path={file}" for data in ("train_data", "valid_data")]
        words += [f"trainer.max_steps={STEPS}", "reporters.console=false"]
        textmill.train(EXPERIMENTS[model], words, run_dir=folder)
    return folder


def answering(peer: str, rows: Sequence[tuple[str, str]], cache: Path) -> Any:
    """What answers a text, or a list of them."""
    what, _, model = peer.partition(", ")
    if what == "spaCy":
        return spacy_of(model, rows[:ROWS])
    run = run_of(model, rows, cache)
    import textmill

    if what == "textmill run":
        return textmill.load(run)
    from textmill.exported import load
    from textmill.runs.export import export

    out = run / "export" / "onnx"
    return load(out if out.exists() else export(run, "onnx").folder, device="cpu", threads=1)


def spacy_of(model: str, rows: Sequence[tuple[str, str]]) -> Callable[[Any], Any]:
    import spacy
    from spacy.training import Example, biluo_tags_to_spans, iob_to_biluo

    nlp = spacy.blank("en")
    parts = {
        "classifier": {"@architectures": "spacy.TextCatCNN.v2", "exclusive_classes": True},
        "tagger": {
            "@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner",
            "extra_state_tokens": False, "hidden_width": 64, "maxout_pieces": 2, "use_upper": True,
        },
    }  # fmt: skip
    kind = "textcat" if model == "classifier" else "ner"
    nlp.add_pipe(kind, config={"model": {**parts[model], "nO": None, "tok2vec": TOK2VEC}})

    def doc(text: str) -> Any:
        return spacy.tokens.Doc(nlp.vocab, words=text.split()) if kind == "ner" else text

    examples = []
    for label, text in rows:
        made = nlp.make_doc(text) if kind == "textcat" else doc(text)
        if kind == "textcat":
            given = {"cats": {name: float(name == label) for name in ("source", "target")}}
        else:
            made_tags = iob_to_biluo(tags(text))
            given = {"entities": biluo_tags_to_spans(made, made_tags)}
        examples.append(Example.from_dict(made, given))
    nlp.initialize(lambda: examples)
    for start in range(0, STEPS * 16, 16):
        nlp.update(examples[start : start + 16])

    def answer(texts: Any) -> Any:
        if isinstance(texts, str):
            return nlp(doc(texts))
        return list(nlp.pipe(map(doc, texts), batch_size=TOGETHER))

    return answer


def rate(answer: Any, parts: Sequence[Any], seconds: float) -> float:
    """Words a CPU second, of texts or of lists of them."""
    begin, used, words = time.perf_counter(), time.thread_time(), 0
    for part in itertools.cycle(parts):
        answer(part)
        words += sum(len(text.split()) for text in ([part] if isinstance(part, str) else part))
        if time.perf_counter() - begin > seconds:
            break
    return words / (time.thread_time() - used)


def latency(answer: Any, texts: Sequence[str], seconds: float) -> dict[str, float]:
    """Of one text after the other; of an export also of its engine, in turn, on the same ids."""
    session, given = getattr(getattr(answer, "graph", None), "session", None), list[Any]()
    if session is not None:
        answer.graph.session = _Kept(session, given)
    times, engine, begin = list[float](), list[float](), time.perf_counter()
    for text in itertools.cycle(texts):
        start = time.perf_counter()
        answer(text)
        times.append(time.perf_counter() - start)
        if session is not None:
            start = time.perf_counter()
            session.run(*given.pop())
            engine.append(time.perf_counter() - start)
        if start - begin > seconds:
            break
    found = {"p50_us": 1e6 * statistics.median(times)}
    return {**found, "engine_us": 1e6 * statistics.median(engine)} if engine else found


class _Kept:
    """A session that keeps what it is given."""

    def __init__(self, session: Any, given: list[Any]) -> None:
        self.session, self.given = session, given

    def run(self, names: Any, arrays: Any) -> Any:
        self.given[:] = [(names, arrays)]
        return self.session.run(names, arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", choices=[*PEERS], required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=6.0)
    args = parser.parse_args()
    rows = sentences(args.data, 2 * ROWS)
    answer = answering(args.peer, rows, args.cache)
    texts = [text for _, text in rows[ROWS:]] or [text for _, text in rows]
    for text in texts[:WARM]:
        answer(text)
    if args.peer.startswith("textmill run"):
        import torch

        torch.set_num_threads(1)
    texts, watch = texts[WARM:] or texts, machine.Watch()
    many = [texts[i : i + TOGETHER] for i in range(0, len(texts), TOGETHER)]
    rates = {"one": rate(answer, texts, args.seconds), "many": rate(answer, many, args.seconds)}
    print(json.dumps({**rates, **latency(answer, texts, args.seconds), **watch.read()}))


if __name__ == "__main__":
    main()
