"""``make results RESULTS=pretrained``: both sides train, the table says what is below."""

import json
import random

import pytest

from benchmarks.results import pretrained
from benchmarks.results.__main__ import PAGE, main
from tests.pretrained_checkpoints import save_encoder

WORDS = {"ham": ["lunch", "home", "later"], "spam": ["prize", "free", "win"]}


@pytest.mark.slow
def test_both_sides_are_measured_once(tmp_path, monkeypatch):
    pytest.importorskip("accelerate")
    chance, folder = random.Random(1), tmp_path / "data" / "sms-spam"
    folder.mkdir(parents=True)
    for name, count in (("train", 200), ("dev", 12)):
        rows = (f"{k}\t{' '.join(chance.choices(v, k=5))}\n" for k, v in WORDS.items())
        (folder / f"{name}.tsv").write_text("".join([*rows] * (count // 2)))
    model = save_encoder(tmp_path / "bert", "bert", max_position_embeddings=600)
    monkeypatch.setattr(pretrained, "encoder", lambda: model)
    page, out = tmp_path / "page.md", tmp_path / "out"
    page.write_text(f"{pretrained.BEGIN}\n{pretrained.END}\n")
    words = ["pretrained", "sms-spam", "--data", str(folder.parent), "--out", str(out)]
    words += ["--page", str(page), "--seeds", "1", "--threads", "1"]
    main(words)
    lines = (out / "pretrained.jsonl").read_text().splitlines()
    assert [(json.loads(line)["job"], json.loads(line)["part"]) for line in lines] == [
        ("sms-spam-100", "from nothing"),
        ("sms-spam-100", "textmill"),
        ("sms-spam-all", "textmill"),
        ("sms-spam-all", "Trainer"),
    ]
    assert "| sms-spam: `classification/pretrained` | all | 1 |" in page.read_text()
    main(words)
    assert len((out / "pretrained.jsonl").read_text().splitlines()) == 4


def test_the_page_has_its_place():
    whole = PAGE.read_text()
    assert whole.index(pretrained.BEGIN) < whole.index(pretrained.END)


def test_an_unknown_set_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["pretrained", "sms-spam", "wnut"])
    assert "unknown result 'wnut' of pretrained; known: sms-spam, " in capsys.readouterr().err
