"""A translator through its CTranslate2 export, beside CTranslate2 driven by hand, in turns.

    python benchmarks/translate.py --data train.tsv --cache FOLDER --steps 300 --repetitions 5

The model is ``translation/tatoeba`` as it is shipped, trained for some steps, and exported. What is
measured: 512 sources in batches of 64 that CTranslate2 sorts itself, one search a thread; the same
ids through the export; and their texts, with what encodes and decodes them.
"""

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
from bare import pairs_of

BEAMS = (1, 5)
BATCH = 64


def export_of(args: argparse.Namespace) -> Path:
    import textmill
    from textmill.runs.export import export

    words = [f"{data}.path={args.data}" for data in ("train_data", "valid_data")]
    words += [f"trainer.max_steps={args.steps}", "task.generate=false"]
    words += ["trainer.selection.metric=loss", "reporters.console=false"]
    textmill.train("translation/tatoeba", words, run_dir=args.cache / "translate")
    return export(args.cache / "translate", "ctranslate2").folder


def ways(model: Any, texts: list[str], beam: int) -> dict[str, Callable[[], Any]]:
    """What is measured, each of the same searches."""
    from textmill.exported.ctranslate2 import PATIENCE

    graph, search = model.graph, dataclasses.replace(model.search, beam_size=beam, n_best=1)
    model.search = search
    rows = [{"source": text} for text in texts]
    ids = model.encoded(rows)
    named = [[str(i) for i in row] for row in ids]
    begun = [graph.names[i] for i in graph.prefix[1:]]

    def by_hand() -> Any:
        return graph.program.translate_batch(
            named,
            target_prefix=[begun] * len(named) if begun else None,
            max_batch_size=BATCH,
            beam_size=beam,
            patience=1.0 if beam == 1 else PATIENCE,
            length_penalty=search.length_penalty,
            max_decoding_length=search.limit(max(map(len, ids))),
            min_decoding_length=0,
            max_input_length=0,
        )

    return {
        "CTranslate2 by hand": by_hand,
        "export, ids": lambda: graph.find(ids, search),
        "export, texts": lambda: model.answers(rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    from textmill.exported import load

    model = load(export_of(args), device="cpu", threads=args.threads)
    texts, watch, found = (
        [source for source, _ in pairs_of(args.data)[: args.sentences]],
        machine.Watch(),
        {},
    )
    for beam in BEAMS:
        measured = ways(model, texts, beam)
        times: dict[str, list[float]] = {name: [] for name in measured}
        for turn in range(args.repetitions + 1):  # the first one warms
            for name, run in measured.items():
                start = time.perf_counter()
                run()
                if turn:
                    times[name].append(time.perf_counter() - start)
        found[beam] = {name: len(texts) / statistics.median(each) for name, each in times.items()}
    print(json.dumps({"sentences_s": found, **watch.read()}))


if __name__ == "__main__":
    main()
