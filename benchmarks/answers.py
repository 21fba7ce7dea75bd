"""From a text to its answer: a classifier and a tagger beside spaCy's, MiniLM beside pipelines.

    python benchmarks/answers.py --peer "textmill export, classifier" --data train.tsv --cache /tmp
    python benchmarks/answers.py --peer "spaCy, tagger" --data train.tsv --cache /tmp
    python benchmarks/answers.py --peer "transformers, MiniLM" --data train.tsv --cache /tmp

The models are ``classification/docnn`` and ``tagging/ner`` as they are shipped, trained for some
steps: weights do not change how long an answer takes. spaCy's are those of its efficiency pipeline
(``HashEmbedCNN`` of width 96 and depth 4 under a text classifier and under a named entity
recognizer). Each text is asked by itself, and 256 at once, on one thread. Of an export, each text
is followed by onnxruntime alone on the same ids.

MiniLM is ``classification/pretrained`` with BERT's pooler, so that transformers' pipeline reads
all of its weights. Each text is asked by itself, and 64 at once, on ``--threads``; answers are
counted by wall-clock and CPU seconds. Optimum's peer is the same pipeline over optimum's graph in
int8; optimum wants an older transformers than textmill, so an environment of its own, and reads the
folder that "transformers, MiniLM" has made.
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
MINILM: dict[str, tuple[str, ...]] = {
    f"{what}, MiniLM": needs
    for what, needs in (
        ("textmill run", ()), ("textmill export", ("onnx", "onnxruntime")),
        ("textmill export int8", ("onnx", "onnxruntime")), ("transformers", ()),
    )
}  # fmt: skip
OPTIMUM = "optimum, MiniLM"
EXPERIMENTS = {
    "classifier": "classification/docnn",
    "tagger": "tagging/ner",
    "MiniLM": "classification/pretrained",
}
ROWS, WARM, TOGETHER, BATCH = 4000, 400, 256, 64
"""Rows that are learnt from, texts that are answered before it is measured, texts at once, and
those of MiniLM."""
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
        file = cache / f"answers-{model}.{'conll' if model == 'tagger' else 'tsv'}"
        if model != "tagger":
            lines = (f"{label}\t{text}\n" for label, text in rows[:ROWS])
        else:
            pairs = (zip(text.split(), tags(text), strict=True) for _, text in rows[:ROWS])
            lines = ("".join(f"{w}\t{t}\n" for w, t in pair) + "\n" for pair in pairs)
        file.write_text("".join(lines), encoding="utf-8")
        words = [f"{data}.path={file}" for data in ("train_data", "valid_data")]
        words += [f"trainer.max_steps={STEPS}", "reporters.console=false"]
        if model == "MiniLM":
            from pretrained import minilm

            words += [f"model.encoder.path={minilm()}", "model.pooling.type=pooler"]
        textmill.train(EXPERIMENTS[model], words, run_dir=folder)
    return folder


def answering(peer: str, rows: Sequence[tuple[str, str]], cache: Path, threads: int) -> Any:
    """What answers a text, or a list of them."""
    what, _, model = peer.partition(", ")
    if what == "spaCy":
        return spacy_of(model, rows[:ROWS])
    if peer == OPTIMUM:
        return optimum_of(cache / "answers-MiniLM" / "export" / "huggingface", threads)
    run = run_of(model, rows, cache)
    import textmill

    if what == "textmill run":
        return textmill.load(run)
    from textmill.exported import load
    from textmill.exported.formats import ExportSettings
    from textmill.runs.export import export

    form = ExportSettings.of("huggingface" if what == "transformers" else "onnx")
    if what.endswith("int8"):
        form = ExportSettings("onnx", quantize="int8")
    out = run / "export" / form.folder
    if not out.exists():
        export(run, form)
    if what == "transformers":
        from transformers import pipeline

        return batched(pipeline("text-classification", model=str(out), device="cpu"))
    return load(out, device="cpu", threads=threads)


def batched(pipe: Any) -> Callable[[Any], Any]:
    """What answers a text by itself, and a list in one batch."""
    return lambda given: pipe(given) if isinstance(given, str) else pipe(given, batch_size=BATCH)


def optimum_of(model: Path, threads: int) -> Callable[[Any], Any]:
    """A pipeline over a graph in int8, made of transformers' folder."""
    import onnxruntime
    from optimum.onnxruntime import ORTModelForSequenceClassification, ORTQuantizer
    from optimum.onnxruntime.configuration import AutoQuantizationConfig
    from transformers import AutoTokenizer, pipeline

    whole, small = model.with_name("optimum"), model.with_name("optimum-int8")
    if not small.exists():
        made = ORTModelForSequenceClassification.from_pretrained(model, export=True)
        made.save_pretrained(whole)
        config = AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=False)
        quantizer = ORTQuantizer.from_pretrained(whole)
        quantizer.quantize(save_dir=small, quantization_config=config)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    graph = ORTModelForSequenceClassification.from_pretrained(small, session_options=options)
    tokenizer = AutoTokenizer.from_pretrained(model)
    return batched(pipeline("text-classification", model=graph, tokenizer=tokenizer))


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


def speed(answer: Any, parts: Sequence[Any], seconds: float) -> tuple[float, float]:
    """Answers a second, and a CPU second of all threads, of texts or of lists of them."""
    begin, used, count = time.perf_counter(), time.process_time(), 0
    for part in itertools.cycle(parts):
        answer(part)
        count += 1 if isinstance(part, str) else len(part)
        if time.perf_counter() - begin > seconds:
            break
    return count / (time.perf_counter() - begin), count / (time.process_time() - used)


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
    peers = [*PEERS, *MINILM, OPTIMUM]
    parser.add_argument("--peer", choices=peers, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    rows = sentences(args.data, 2 * ROWS)
    answer = answering(args.peer, rows, args.cache, args.threads)
    texts = [text for _, text in rows[ROWS:]] or [text for _, text in rows]
    for text in texts[:WARM]:
        answer(text)
    if args.peer.startswith(("textmill run", "transformers")):
        import torch

        torch.set_num_threads(args.threads)
    texts, watch = texts[WARM:] or texts, machine.Watch()
    if args.peer in PEERS:
        many = [texts[i : i + TOGETHER] for i in range(0, len(texts), TOGETHER)]
        figures = {
            "one": rate(answer, texts, args.seconds),
            "many": rate(answer, many, args.seconds),
        }
        figures |= latency(answer, texts, args.seconds)
    else:
        many = [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]
        figures = {}
        for name, parts in (("one", texts), ("many", many)):
            figures[name], figures[f"{name}_cpu"] = speed(answer, parts, args.seconds)
    print(json.dumps({**figures, **watch.read()}))


if __name__ == "__main__":
    main()
