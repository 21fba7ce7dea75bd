"""What few rows are enough for: classifiers begin where linear models of n-grams end."""

import pytest

import textmill


@pytest.mark.parametrize(("ngrams", "least", "most"), [("", 0.93, 1.0), ("ngrams=null", 0.0, 0.9)])
def test_five_hundred_rows_tell_intents_by_their_ngrams(ngrams, least, most, shared_data, tmp_path):
    for name, rows in (("train", 500), ("dev", 700)):
        lines = (shared_data / "snips" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
        part = [line.rpartition("\t")[0] for line in lines[:: len(lines) // rows][:rows]]
        (tmp_path / f"{name}.tsv").write_text("\n".join(part) + "\n", encoding="utf-8")
    words = [f"train_data.path={tmp_path / 'train.tsv'}", f"valid_data.path={tmp_path / 'dev.tsv'}"]
    words += ["trainer.max_epochs=8", "reporters.console=false", "reporters.html=false"]
    words += [ngrams] if ngrams else []
    run = textmill.train("classification/averaging", words, run_dir=tmp_path / "run")
    assert least < run.result["best"]["accuracy"] < most
