"""An encoder trained on bare text: killed and gone on with, loaded, and fine-tuned for tasks."""

import json
import random
import re
import shutil
from types import SimpleNamespace

import pytest

import textmill
from textmill.errors import CheckpointError, UserError
from textmill.inference import of_run as run_tokenizer
from textmill.inference.checkpoints import use_checkpoint
from textmill.inference.of_run import RunTokenizer
from textmill.runs.train import train
from textmill.training.initial_weights import Initial

TOPICS = {
    topic: words.split()
    for topic, words in {
        "animal": "cat dog cow horse sheep goat mouse rabbit lion wolf fox bear",
        "tool": "hammer saw drill file wrench pliers chisel plane axe knife ruler clamp",
    }.items()
}
LABELLED = 4
"""Words of each topic that labelled rows have; of the others only text without labels has some."""
MODEL = ["model.embedding.dim=32", "model.encoder.dropout=0"]
LOCAL = "bert/pretraining/local"
TEXT = ["train_data.path=text.txt", "valid_data.path=text.txt", "trainer.fast.linear=torch"]


def write(folder):
    """Text of topics, and labelled rows for each kind of task."""
    draw = random.Random(0)
    lines = [" ".join(draw.choices(TOPICS[draw.choice([*TOPICS])], k=8)) for _ in range(300)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    for part in ("train", "valid"):
        files: dict[str, list[str]] = {name: [] for name in ("label", "score", "pair", "joint")}
        files["tags"] = []
        for number in range(32):
            topic, other = [*TOPICS] if number % 2 else [*TOPICS][::-1]
            known = slice(LABELLED) if part == "train" else slice(LABELLED, None)
            words = draw.choices(TOPICS[topic][known], k=2 if part == "train" else 1)
            text, same = " ".join(words), number % 4 < 2
            second = draw.choice(TOPICS[topic if same else other][known])
            files["label"].append(f"{topic}\t{text}")
            files["score"].append(f"{number % 2}\t{text}")
            files["pair"].append(f"{'same' if same else 'other'}\t{text}\t{second}")
            files["joint"].append(f"{topic}\t{text}\t{' '.join(f'B-{topic}' for _ in words)}")
            files["tags"] += [*(f"{word} {topic}" for word in words), ""]
        for name, rows in files.items():
            suffix = "conll" if name == "tags" else "tsv"
            (folder / f"{name}-{part}.{suffix}").write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """The folder of a run that has read the text, and of the data."""
    folder = tmp_path_factory.mktemp("pretrained")
    write(folder)
    words = [
        f"train_data.path={folder / 'text.txt'}", f"valid_data.path={folder / 'text.txt'}",
        "trainer.fast.linear=torch", "train_data.shuffle=false", "task.block=8",
        "optimizer.lr=0.01", "trainer.max_steps=100", "trainer.evaluate_every=100 steps", *MODEL,
    ]  # fmt: skip
    train(LOCAL, words, run_dir=folder / "pre")
    return folder


def tuned(name, pretrained, tmp_path, *words, files="label", fresh=False, tokenizer=None):
    """A run of a tiny experiment, by default one that begins with the pretrained one."""
    theirs = ("tokenizer.type=of_run", f"tokenizer.path={pretrained / 'pre'}")
    begin = [] if fresh else [f"trainer.initialize={pretrained / 'pre'}"]
    suffix = "conll" if files == "tags" else "tsv"
    data = [f"{p}_data.path={pretrained / f'{files}-{p}.{suffix}'}" for p in ("train", "valid")]
    return train(
        f"{name}/local",
        [
            *data, *MODEL, "model.encoder.positions=rotary", "model.encoder.num_layers=1",
            "model.encoder.ffn_dim=32", *(tokenizer or theirs), "optimizer.lr=3e-3",
            "trainer.max_steps=20", "trainer.evaluate_every=20 steps", "trainer.fast.linear=torch",
            *begin, *words,
        ],
        run_dir=tmp_path / ("fresh" if fresh else "tuned"),
    )  # fmt: skip


def log_of(run):
    return [line.split(": ", 1)[-1] for line in (run.folder / "log.txt").read_text().splitlines()]


ATTENTION = ("model.encoder.type=self_attention", "model.encoder.num_heads=2")
BARE = ("characters=null", "affixes=null")
CASES = {
    "classification/transformer": ("label", "accuracy", ()),
    "regression/docnn": ("score", "spearman", (*ATTENTION, "trainer.max_steps=40")),
    "pairs/classification": ("pair", "accuracy", ATTENTION),
    "joint/transformer": ("joint", "intent_accuracy", (*BARE, "ngrams=null")),
    "tagging/transformer": ("tags", "token_accuracy", BARE),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_was_read_without_labels_helps_where_labels_are_few(name, pretrained, tmp_path):
    files, metric, words = CASES[name]
    words = (*words, f"trainer.selection.metric={metric}")
    after = tuned(name, pretrained, tmp_path, *words, files=files)
    fresh = tuned(name, pretrained, tmp_path, *words, files=files, fresh=True)
    assert after.result["best"][metric] > fresh.result["best"][metric] + 0.15
    assert after.result["best"][metric] > 0.85
    (said,) = [line for line in log_of(after) if "Initialized from" in line]
    assert re.search(r": 1\d of \d\d tensors\.$", said)


def test_a_reader_of_questions_begins_with_it(pretrained, tmp_path):
    answers = [{"text": "dog", "answer_start": 4}]
    asked = [{"id": str(i), "question": "cat horse", "answers": answers} for i in range(4)]
    squad = {"data": [{"paragraphs": [{"context": "cow dog fox", "qas": asked}]}]}
    (tmp_path / "squad.json").write_text(json.dumps(squad))
    words = [f"{part}_data.path={tmp_path / 'squad.json'}" for part in ("train", "valid")]
    words += [*MODEL, "model.encoder.num_layers=1", "model.encoder.ffn_dim=32"]
    words += ["model.encoder.num_heads=2", "model.encoder.positions=rotary"]
    words += ["tokenizer.type=of_run", f"tokenizer.path={pretrained / 'pre'}"]
    task = textmill.create_task("question/transformer/local", words)
    (first, *others) = Initial(str(pretrained / "pre"), {}, task=task).load()
    shared = [n for n in task.module.state_dict() if n.startswith(("embedding.", "encoder."))]
    assert f": {len(shared)} of " in first
    assert not any("shape" in line or "another name" in line for line in others)


def test_another_vocabulary_is_refused_and_says_what_to_do(pretrained, tmp_path):
    own = ("tokenizer.type=fitted_words",)
    with pytest.raises(UserError) as caught:
        tuned("classification/transformer", pretrained, tmp_path, tokenizer=own)
    text = str(caught.value)
    assert "trainer.initialize: text.embedding.tokens.weight has a vector for each token" in text
    assert "has another vocabulary (10 ids here, 26 there; id " in text
    assert f"tokenizer.type=of_run tokenizer.path={pretrained / 'pre'}" in text
    assert not (tmp_path / "tuned" / "checkpoints").exists()


@pytest.mark.parametrize("place", ["", "modules", "checkpoints"])
def test_the_tokenizer_is_that_of_the_run(pretrained, tmp_path, place):
    run = pretrained / "pre"
    if place == "modules":
        words = [*TEXT, "trainer.max_steps=1", "trainer.save_modules=[encoder]"]
        words[:2] = [f"{p}_data.path={pretrained / 'text.txt'}" for p in ("train", "valid")]
        run = train(LOCAL, words, run_dir=tmp_path / "run").folder / "modules"
    if place == "checkpoints":
        run = next((run / "checkpoints").glob("step-*"))
    tokenizer = RunTokenizer.Config(path=run).build()
    assert set(tokenizer.config.words) == {word for words in TOPICS.values() for word in words}
    text = use_checkpoint(pretrained / "pre", "best", lambda opened: opened.text)
    assert tokenizer.config.words == text.tokenizer.config.words or place == "modules"


def test_a_tokenizer_that_is_not_there_or_damaged_is_refused(pretrained, tmp_path, monkeypatch):
    with pytest.raises(UserError) as caught:
        RunTokenizer.Config(path=tmp_path).build()
    assert str(caught.value).startswith(f"{tmp_path} is not a run folder; wanted a folder that")
    shutil.copytree(pretrained / "pre", tmp_path / "pre")
    for words in tmp_path.glob("pre/checkpoints/*/text/columns/text/tokenizer/words.txt"):
        words.write_text(words.read_text().replace("lion", "lamb"))
    with pytest.raises(CheckpointError, match=r"words\.txt"):
        RunTokenizer.Config(path=tmp_path / "pre").build()
    without = SimpleNamespace(text=SimpleNamespace(ingredients={}))
    monkeypatch.setattr(run_tokenizer, "use_checkpoint", lambda path, name, use: use(without))
    with pytest.raises(UserError) as caught:
        RunTokenizer.Config(path=tmp_path / "pre").build()
    assert str(caught.value).startswith(f"tokenizer.path is {tmp_path / 'pre'}, whose text")


def test_a_run_goes_on_with_the_tokenizer_it_has_when_the_other_run_is_gone(pretrained, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(pretrained / "pre", other)
    theirs = ("tokenizer.type=of_run", f"tokenizer.path={other}")
    name, longer = "classification/transformer", "trainer.max_steps=9"
    words = ("trainer.evaluate_every=3 steps", f"trainer.initialize={other}")
    begun = tuned(name, pretrained, tmp_path, *words, "trainer.max_steps=6", tokenizer=theirs)
    shutil.copytree(begun.folder, tmp_path / "copy")
    train(begun.folder, [longer])
    shutil.rmtree(other)
    run = train(tmp_path / "copy", [longer])
    assert run.result["steps"] == 9
    assert "Resumed at step 6." in log_of(run)
    last, whole = (
        folder / "checkpoints" / "step-00000009" / "model.safetensors"
        for folder in (run.folder, begun.folder)
    )
    assert last.read_bytes() == whole.read_bytes()
    with pytest.raises(UserError) as caught:  # a fresh one has none yet
        tuned(name, pretrained, tmp_path / "new", *words, tokenizer=theirs)
    assert f"{other} is not a run folder" in str(caught.value)


def test_real_text(shared_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (shared_data / "wikitext-2" / "valid.txt").read_text().splitlines(keepends=True)
    (tmp_path / "text.txt").write_text("".join(text[:500]))
    words = [*TEXT, "trainer.max_steps=30", "trainer.evaluate_every=30 steps"]
    words += ["tokenizer={type: fitted, kind: bpe, vocab_size: 500}", "optimizer.lr=0.02"]
    run = train(LOCAL, words, run_dir=tmp_path / "run")
    assert run.result["best"]["perplexity"] < 250  # of 500 pieces
    assert textmill.load(run.folder)("the [MASK] of the").text.startswith("the ")
