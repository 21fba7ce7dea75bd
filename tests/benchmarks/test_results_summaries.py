"""``make results RESULTS=summaries``: what is measured once, and the table."""

import json

from benchmarks.results import measuring, summaries
from benchmarks.results.__main__ import PAGE, main


def test_each_is_measured_once_and_has_a_row(tmp_path, monkeypatch):
    folder = tmp_path / "data" / "scitldr"
    folder.mkdir(parents=True)
    rows = [{"source": ["We study signs.", "They suffice here."], "target": ["They suffice."]}] * 4
    for part in ("train", "dev"):
        (folder / f"{part}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    asked = []

    def train(job, words, run, threads):
        asked.append((job.name, job.encoder, words[-1]))
        run.mkdir(parents=True)
        (run / "run.json").write_text('{"result": {"best": {"step": 1}}}')
        values = {"rouge1": 0.4, "rouge2": 0.2, "rougeL": len(asked) / 10}
        line = {"split": "valid", "step": 1, "time": {"elapsed": 2.0}, **values}
        (run / "metrics.jsonl").write_text(json.dumps(line))

    monkeypatch.setattr(measuring, "train", train)
    page = tmp_path / "page.md"
    page.write_text(f"{summaries.BEGIN}\n{summaries.END}\n")
    words = ["summaries", "--data", str(folder.parent), "--out", str(tmp_path / "out")]
    words += ["--page", str(page), "--seeds", "2", "--threads", "1"]
    main(words)
    names = [("scitldr-lstm", False), ("scitldr-minilm", True), ("scitldr", False)]
    seeds = ("trainer.seed=1", "trainer.seed=2")
    assert asked == [(*name, seed) for name in names for seed in seeds]
    table = page.read_text().splitlines()
    assert "| the first sentence | 0.00 ± 0.00 | 0.00 ± 0.00 | 0.00 ± 0.00 |  |" in table
    assert "| the best sentence | 80.00 ± 0.00 | 66.67 ± 0.00 | 80.00 ± 0.00 |  |" in table
    wanted = (
        "| `summarization/extractive` with MiniLM | 40.00 ± 0.00 (2) | 20.00 ± 0.00 (2) | 35.00"
    )
    assert any(line.startswith(wanted) for line in table)
    main(words)
    assert len(asked) == 6


def test_the_page_has_its_place():
    whole = PAGE.read_text()
    assert whole.index(summaries.BEGIN) < whole.index(summaries.END)
