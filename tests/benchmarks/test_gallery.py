"""The page of the gallery is run and measured, once, and has a table of what each model costs."""

from functools import partial

from benchmarks.results import gallery
from benchmarks.results.ledger import Ledger
from tests.docs.pages import Runner, read_blocks
from tests.docs.pictures import read_wanted
from tests.warm_textmill import warm_programs

PAGE = f"""# Gallery

{gallery.BEGIN}
{gallery.END}

## One label

<!-- not run: it is run by another command -->
```console
$ cp data/rows.tsv dev.tsv
$ textmill train classification/ngrams/local train_data.path=data/rows.tsv \\
    valid_data.path=dev.tsv --run-dir spam
$ textmill serve spam
```
"""


def test_what_is_missing_is_trained_and_measured(tmp_path, monkeypatch):
    page, data = tmp_path / "page.md", tmp_path / "rows"
    page.write_text(PAGE)
    data.mkdir()
    rows = "spam\twin a prize\nham\tsee you later\n" * 10
    (data / "rows.tsv").write_text(rows)
    monkeypatch.setattr(gallery, "Runner", partial(Runner, programs=warm_programs()))
    monkeypatch.setattr(gallery, "missing", lambda: ["chromium"])
    for _ in range(2):
        gallery.main(data, tmp_path / "out", page, names=(), measured=True)
        (line,) = Ledger(tmp_path / "out" / "results.jsonl").lines
        assert line["rows"] == 20
        assert line["peak_mb"] > 100
        assert line["answer_ms"] > 0
    row = next(each for each in page.read_text().splitlines() if each.startswith("| [One"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] == ["[One label](#one-label)", "`classification/ngrams/local`", "20"]
    assert cells[-1] == "accuracy 100.0 %"


def test_the_page_names_a_run_for_each_picture():
    found = [gallery.run_of(command) for _, command in gallery.commands(gallery.PAGE) if command]
    shown = [*filter(None, map(gallery.SHOWN.match, gallery.PAGE.read_text().splitlines()))]
    places = {read_wanted(each["words"], "here").place.partition("/")[0] for each in shown}
    assert places == {run for run in found if run}
    assert not any(block.run for block in read_blocks(gallery.PAGE))
