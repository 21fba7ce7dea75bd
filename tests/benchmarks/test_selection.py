"""The comparison of rules of selection: which step each takes, and one training of a few rows."""

from benchmarks import selection

FOUND = [(0.7, 0.5, 0.60), (0.9, 0.6, 0.70), (0.9, 0.4, 0.71), (0.88, 0.5, 0.74), (0.8, 0.5, 0.73)]


def test_each_rule_takes_its_step():
    assert selection.lower_loss(FOUND) == 2
    assert {name: pick(FOUND) for name, pick in selection.RULES.items()} == {
        "the best value, of equal ones the later": 2,
        "the latest within half a standard error": 2,
        "the latest within a standard error": 3,
        "the latest within two": 3,
        "the last": 4,
    }


def test_other_rows_are_evaluated_after_each_evaluation(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "ROWS", 40)
    monkeypatch.setattr(selection, "VALID", 20)
    rows = [(label, f"{label} {n}") for n in range(50) for label in ("good", "bad")]
    name = "classification/averaging/local"
    found = selection.trained(name, rows, seed=1, folder=tmp_path)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(found) == sum('"split": "valid"' in line for line in lines) > 0
    assert all(0 <= valid <= 1 and 0 <= test <= 1 for valid, _, test in found)
