"""Summaries as users train them: by heart, of real abstracts, and from a run alone."""

import json

import textmill

QUIET = ("reporters.console=false", "reporters.html=false")
PAPERS = [
    {
        "id": "a", "source": ["Loss functions are studied.", "We find their critical points.\n"],
        "target": ["Critical points of losses.", "We study critical points."],
    },
    {
        "id": "b", "source": ["Brains learn.", "We show that signs are enough for learning."],
        "target": ["Signs are enough for learning."],
    },
]  # fmt: skip


def train(train_path, valid_path, *settings):
    words = [f"train_data.path={train_path}", f"valid_data.path={valid_path}", *QUIET, *settings]
    return textmill.run_experiment(
        "summarization/scitldr/local", "train_and_evaluate", "run", words
    )


def test_papers_are_learned_by_heart_and_answered_without_their_file(tmp_path):
    text = "".join(f"{json.dumps(paper)}\n" for paper in PAPERS)
    (tmp_path / "papers.jsonl").write_text(text, encoding="utf-8")
    more = ("tokenizer.vocab_size=38", "model.dropout=0", "optimizer.lr=0.01")
    steps = ("trainer.max_steps=60", "trainer.evaluate_every=60 steps")
    run = train("papers.jsonl", "papers.jsonl", *more, *steps)
    found = run.evaluations["valid_data"]
    assert found.values["rouge1"] == found.values["rougeL"] == 1
    assert found.rows[0]["references"] == PAPERS[0]["target"]
    (tmp_path / "papers.jsonl").unlink()
    summarize = textmill.load("run")
    for paper in PAPERS:
        assert summarize({"source": paper["source"]}).text == paper["target"][0]
        assert summarize(" ".join(paper["source"])).text == paper["target"][0]


def test_steps_on_real_abstracts_give_one_summary_each(shared_data, tmp_path):
    for name, rows in (("train", 60), ("dev", 12)):
        path = shared_data / "scitldr" / f"{name}.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:rows]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    more = ("trainer.max_steps=12", "trainer.evaluate_every=6 steps", "optimizer.lr=0.01")
    run = train("train.jsonl", "dev.jsonl", *more, "task.decoding.beam_size=1")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    losses = [line["loss"] for line in map(json.loads, lines) if line["split"] == "valid"]
    assert losses[-1] < losses[0] < 6  # of 300 pieces alike: 5.7, more by the first weights
    found = run.evaluations["valid_data"]
    assert [row["row"] for row in found.rows] == list(range(12))
    assert max(len(row["references"]) for row in found.rows) > 1
