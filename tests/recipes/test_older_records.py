"""A run's ``config.yaml`` of before its experiment had an ingredient: it means what it meant."""

import json
from pathlib import Path

import textmill
from textmill.recipes.planning import plan_recipe

WORDS = ["train_data.path=rows.tsv", "valid_data.path=rows.tsv", "trainer.max_steps=2"]


def values(run):
    """What was measured, without the times."""
    lines = (Path(run.folder) / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "time"} for line in lines]


def test_an_ingredient_that_an_experiment_has_had_since_is_none_of_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.tsv").write_text("".join(f"{'ab'[n % 2]}\tword {n}\n" for n in range(12)))
    run = textmill.train("classification/docnn/local", [*WORDS, "ngrams=null"], run_dir="run")
    lines = Path("run/config.yaml").read_text().splitlines(keepends=True)
    kept = [line for line in lines if "ngrams" not in line and not line.startswith("#")]
    assert len(kept) < len(lines)
    Path("older").mkdir()
    Path("older/config.yaml").write_text("".join(kept))
    settings = plan_recipe("older/config.yaml", targets=["trainer"]).plan.settings
    assert settings.get("ngrams") is None
    again = textmill.train("older/config.yaml", run_dir="again")
    assert values(again) == values(run) != []
    with_ngrams = plan_recipe("classification/docnn/local", WORDS, targets=["trainer"]).plan
    assert with_ngrams.settings["ngrams"]["type"] == "fitted_ngrams"
