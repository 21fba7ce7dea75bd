"""Runs that fine-tune a pretrained encoder-decoder: every task with every family."""

import shutil
import warnings
from pathlib import Path

import pytest
import transformers

import textmill
import textmill.exported
from tests.pretrained_checkpoints import LANGS, SEQ2SEQ, save_encoder, save_seq2seq
from tests.runs.pretrained_runs import answers, quick, train_from
from textmill.errors import UserError
from textmill.runs.export import export

TASKS = ("parsing", "summarization", "translation")
ROWS = "the cat sat\tdogs bark\nthe unbelievable moon\tfilms are rare\ndogs bark\tthe cat\n"
ASKED = ["the cat sat", "dogs bark at the unbelievable moon"]
SHORT = (
    *("task.decoding.max_length_a=0", "task.decoding.max_length_b=6"),
    *("trainer.max_epochs=null", "optimizer.lr=1e-3"),
)


def trained(task: str, family: str, folder: Path, *more: str) -> Path:
    path = save_seq2seq(folder / "model", family)
    source, target = LANGS.get(family, ("", ""))
    langs = [f"tokenizer.source_langs=[{source}]", f"tokenizer.target_langs=[{target}]"]
    words = [f"model.path={path}", *(langs if source else []), *SHORT, *more]
    return train_from(folder, f"{task}/pretrained", ROWS * 4, *words)


@pytest.mark.parametrize("family", quick(SEQ2SEQ, "bart"))
@pytest.mark.parametrize("task", quick(TASKS, "translation"))
def test_a_run_answers_without_what_it_began_with(task: str, family: str, tmp_path: Path) -> None:
    run = trained(task, family, tmp_path)
    before = answers(run, ASKED)
    assert (
        f"model_type: {family.replace('nllb', 'm2m_100')}"
        in (run / "config.yaml").read_text().partition("built:")[2]
    )
    shutil.rmtree(tmp_path / "model")
    moved = shutil.move(run, tmp_path / "moved")
    assert answers(Path(moved), ASKED) == before


def test_what_is_put_before_sources(tmp_path: Path) -> None:
    run = trained("summarization", "t5", tmp_path, 'task.source_prefix="the: "')
    task = textmill.load(run).task
    tokenizer = task.text.tokenizer
    wanted = tokenizer.create_encoder()("the: the cat").tolist()
    encoded = task.text.encode([{"source": "the cat"}], with_targets=False)
    assert encoded["source"][0].tolist() == wanted
    assert not task.text.roundtrip([wanted])
    made = export(run, "huggingface")
    assert made.comparison.sentence.startswith("Put 'the: ' before every text: the tokenizer")
    card = (made.folder / "README.md").read_text()
    assert made.comparison.note in card
    assert """tokenizer('the: ' + "A text.",""" in card
    config = transformers.AutoConfig.from_pretrained(made.folder)
    assert config.prefix == "the: "


def test_a_model_that_is_none_is_refused(tmp_path: Path) -> None:
    words = [*SHORT, f"tokenizer.path={save_seq2seq(tmp_path / 'model', 'bart')}"]
    with pytest.raises(UserError, match=r"model\.path is not set"):
        train_from(tmp_path, "translation/pretrained", ROWS, *words)
    save_encoder(tmp_path / "bert", "bert")
    words += [f"model.path={tmp_path / 'bert'}"]
    with pytest.raises(UserError, match="which is not an encoder-decoder of"):
        train_from(tmp_path, "translation/pretrained", ROWS, *words)


@pytest.mark.parametrize("family", quick(SEQ2SEQ, "marian"))
def test_an_export_generates_the_same_with_transformers(family: str, tmp_path: Path) -> None:
    run = trained("summarization", family, tmp_path, "task.decoding.beam_size=1")
    made = export(run, "huggingface")  # which compares the rows of valid_data
    assert made.comparison.same == made.comparison.rows
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(made.folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Moses' rules are not installed
        tokenizer = transformers.AutoTokenizer.from_pretrained(made.folder)
    found = model.generate(**tokenizer(ASKED[:1], return_tensors="pt"))
    [text] = tokenizer.batch_decode(found, skip_special_tokens=True)
    assert text == str(textmill.load(run)(ASKED[0]))


@pytest.mark.parametrize("family", quick(SEQ2SEQ, "marian"))
def test_an_export_answers_with_ctranslate2(family: str, tmp_path: Path) -> None:
    run = trained("translation", family, tmp_path, "task.decoding.beam_size=3")
    made = export(run, "ctranslate2")
    assert made.comparison.same == made.comparison.rows
    wanted = [str(answer) for answer in textmill.load(run)(ASKED)]
    assert [str(answer) for answer in textmill.exported.load(made.folder)(ASKED)] == wanted
