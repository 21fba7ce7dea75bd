"""What holds of every pipeline: inputs, order, errors in their place, models found or refused."""

import json
import shutil

import pandas
import pytest
from pydantic import TypeAdapter

import textmill
from tests.pipelines.small_models import (
    REFERENCES,
    exported,
    extracts_run,
    languages_run,
    mentions_run,
    reference_run,
    written_summaries_run,
)
from tests.pipelines.small_paper import paper
from tests.trained_run import library_run
from textmill.errors import DataError, UserError
from textmill.pipelines import (
    DatasetMentions,
    LanguageIdentifier,
    ReferenceParser,
    Summarizer,
    pipelines,
)
from textmill.pipelines.find_model import SHIPPED, find_model
from textmill.text.answers import row_type

TEXTS = [text for text, _ in REFERENCES]
KINDS = {
    "dataset-mentions": (DatasetMentions, mentions_run),
    "language-identifier": (LanguageIdentifier, languages_run),
    "reference-parser": (ReferenceParser, reference_run),
    "summarizer": (Summarizer, extracts_run),
    "summarizer that writes": (Summarizer, written_summaries_run),
}
"""Each pipeline with a run for it."""


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture(scope="module")
def pipeline(kind):
    made, run = kind
    return made(run(), device="cpu")


def test_all_pipelines_are_looked_at():
    elsewhere = {"funding"}  # of docs/pipelines.md
    assert {name.split()[0] for name in KINDS} == {*pipelines.names()} - elsewhere


def rounded(results):
    """Rows of results with numbers that which texts are answered together does not change."""
    rows = json.dumps([result.row() for result in results])
    return json.loads(rows, parse_float=lambda number: round(float(number), 3))


def test_the_results_are_those_of_the_texts_in_order(pipeline):
    results = pipeline.predict(TEXTS)
    assert [result.text for result in results] == TEXTS
    assert rounded(map(pipeline, TEXTS)) == rounded(pipeline(TEXTS)) == rounded(results)
    assert pipeline.predict(TEXTS[0]) == pipeline.predict(TEXTS[0], type="str")


def test_rows_are_json_of_the_type_that_is_said(pipeline):
    rows = [result.row() for result in pipeline.predict([*TEXTS, "NUL \0"])]
    assert json.loads(json.dumps(rows)) == rows
    TypeAdapter(list[row_type(pipeline.result_class)]).validate_python(rows)


def test_spans_are_where_they_say(pipeline):
    for result in pipeline.predict(TEXTS):
        for span in getattr(result, "spans", ()):
            assert span.text == result.text[span.start : span.end]
            assert 0 <= span.score <= 1


def test_a_text_file_is_read_by_its_lines_or_whole(pipeline, tmp_path):
    path = tmp_path / "given.txt"
    path.write_bytes("\ufeff{}\n\n{}\r\n".format(*TEXTS).encode())
    results = pipeline.predict(str(path), type="txt")
    assert results == pipeline.predict(path) == pipeline.predict_bytes("x", path.read_bytes())
    if pipeline.by_line:
        assert [(result.text, result.line) for result in results] == [(TEXTS[0], 1), (TEXTS[1], 3)]
    else:
        assert [result.text.split() for result in results] == [" ".join(TEXTS[:2]).split()]


def test_a_pdf_is_read_with_its_pages(pipeline, tmp_path):
    path = tmp_path / "paper.pdf"
    path.write_bytes(paper())
    results = pipeline.predict(str(path), type="pdf")
    assert results
    assert results == pipeline.predict_bytes("x", path.read_bytes())
    for result in results:
        assert (
            result.row()["page"] == result.page == (2 if pipeline.name == "reference-parser" else 1)
        )
        for span in getattr(result, "spans", ()):
            assert span.text == result.text[span.start : span.end]
            assert span.page in (1, 2)
    path.rename(tmp_path / "paper")
    assert pipeline.predict(tmp_path / "paper") == results, "its content says what it is"


def test_what_is_no_pdf_is_refused(pipeline, tmp_path):
    path = tmp_path / "paper.pdf"
    path.write_bytes(b"text")
    for given, type in ((path, None), (str(path), "pdf")):
        with pytest.raises(DataError, match=r"paper\.pdf: is no PDF"):
            pipeline.predict(given, type)
    with pytest.raises(DataError, match=r"x\.PDF: is no PDF"):
        pipeline.predict_bytes("x.PDF", b"text")
    path.write_bytes(paper())
    with pytest.raises(DataError, match=r"found a PDF\. Give it with type='pdf'"):
        pipeline.predict(path, type="txt")


def test_a_text_that_cannot_be_answered_leaves_the_others(pipeline):
    results = pipeline.predict([TEXTS[0], "NUL \0", TEXTS[1]])
    assert [bool(result.error) for result in results] == [False, True, False]
    assert rounded(results[::2]) == rounded(pipeline.predict(TEXTS[:2]))
    with pytest.raises(DataError, match=r"Text 1: NUL"):
        pipeline([TEXTS[0], "NUL \0"])
    with pytest.raises(DataError, match=r"^NUL"):
        pipeline("NUL \0")


def test_nothing_is_found_in_nothing(pipeline, tmp_path):
    assert pipeline.predict([]) == []
    (result,) = pipeline.predict("")
    assert (result.text, result.error) == ("", None)
    (tmp_path / "empty.txt").touch()
    assert len(pipeline.predict(tmp_path / "empty.txt")) == (0 if pipeline.by_line else 1)


@pytest.mark.parametrize(
    ("given", "type", "said"),
    [
        ("paper.txt", None, "may be a text or a file. For a file give its type"),
        (" paper.PDF\n", None, "may be a text or a file"),
        ("none.txt", "txt", "none.txt cannot be read: No such file"),
        ("a text", "docx", "type is 'docx'; wanted one of 'str', 'txt', 'pdf'"),
        (["a.txt"], "txt", "wanted the path of one file, found a list"),
        (["a", 3], None, "Wanted a string, found int"),
        (pandas.DataFrame({"text": ["a"]}), None, "found dict. Of a table give the column of the"),
        ({"text": ["a"]}, None, "Wanted a list of rows, found one dict"),
        ({"a", "b"}, None, "found a set, which has no"),
        (b"a", None, "found bytes"),
        (3, None, "found int"),
    ],
)
def test_what_is_no_input_is_refused(pipeline, given, type, said):
    with pytest.raises(UserError, match=said):
        pipeline.predict(given, type)


def test_a_password_is_of_a_pdf(pipeline):
    with pytest.raises(UserError, match="password is for a PDF, but texts were given"):
        pipeline.predict(TEXTS, password="secret")


def test_a_string_is_never_the_name_of_a_file(pipeline, tmp_path):
    path = tmp_path / "secret words.txt"
    path.write_text("secret")
    assert pipeline.predict(str(path), type="str")[0].text == str(path)
    assert pipeline.predict([str(path)])[0].text == str(path)


def test_what_is_no_text_is_refused(pipeline, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"PK\x03\x04" + bytes(range(256)) * 64)
    with pytest.raises(DataError, match=r"a\.txt: wanted text, found a zip archive"):
        pipeline.predict(path)


def test_a_file_is_answered_while_it_is_read(pipeline, tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS * 200))
    results = pipeline.stream(path)
    assert next(results).text.startswith(TEXTS[0])
    results.close()


def test_a_line_that_is_too_long_is_told_in_words_of_pipelines(pipeline, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text(f"{TEXTS[0]}\n{'a ' * 500_001}\n" if pipeline.by_line else "a " * 5_000_001)
    if not pipeline.by_line:
        with pytest.raises(DataError, match="a text may have 10,000,000 bytes, this one has more"):
            pipeline.predict(path)
        return
    fine, long = pipeline.predict(path)
    assert fine.error is None
    assert long.error == "the line has 1000002 bytes, and the longest that is read is 1000000"


@pytest.mark.slow
def test_an_export_answers_as_its_run_does(kind, pipeline):
    made, run = kind
    form = "ctranslate2" if run is written_summaries_run else "onnx"
    found = made(exported(run(), form)).predict(TEXTS)
    assert rounded(found) == rounded(pipeline.predict(TEXTS))


def test_a_loaded_predictor_is_a_model_too(kind, pipeline):
    made, run = kind
    assert made(textmill.load(run(), device="cpu")).predict(TEXTS) == pipeline.predict(TEXTS)


def test_the_model_is_found_by_its_name_below_the_home(kind, pipeline, tmp_path, monkeypatch):
    made, run = kind
    monkeypatch.setenv("TEXTMILL_HOME", str(tmp_path))
    folder = tmp_path / "models" / pipeline.name
    if (SHIPPED / pipeline.name).is_dir():
        assert find_model(made.wanted) == SHIPPED / pipeline.name
        monkeypatch.setattr("textmill.pipelines.find_model.SHIPPED", tmp_path)
    else:
        assert made.wanted.none_shipped
    with pytest.raises(UserError) as refused:
        made()
    said = str(refused.value)
    assert made.wanted.none_shipped in said
    assert f"textmill train {made.wanted.training} --run-dir {folder}" in said
    assert f"{folder} is not there" in said
    assert f"its rows:      {made.wanted.rows}" in said
    assert made.wanted.rows
    folder.parent.mkdir()
    folder.symlink_to(run())
    assert made(device="cpu").predict(TEXTS) == pipeline.predict(TEXTS)


def test_a_model_of_another_task_is_refused_before_it_is_read(kind, tmp_path):
    made, _ = kind
    run = shutil.copytree(library_run(), tmp_path / "run")
    for weights in run.glob("checkpoints/*/*.safetensors"):
        weights.unlink()
    with pytest.raises(UserError, match=r"is a model for the task translation; .* needs one for"):
        made(run)
    with pytest.raises(UserError, match="there is no such folder"):
        made(tmp_path / "none")
