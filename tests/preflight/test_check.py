"""``textmill check``: every kind of fault is found, said once, and does not hide the next."""

import functools
import itertools
import re
from pathlib import Path

import pytest

from textmill.cli.main import main
from textmill.preflight.check import check
from textmill.runtime.disk import operations
from textmill.text.processors.seq2seq import Seq2SeqText
from textmill.training import Trainer

SCRIPT = '''
"""A translator of five words."""
from pathlib import Path

import torch

from textmill import data, like
from textmill.data import TextPairs
from textmill.models import Transformer
from textmill.tasks import Loss, Translation
from textmill.text import FittedTokenizer
from textmill.training import Selection, Trainer

train_data = TextPairs.Config(path=Path("train.tsv"))
valid_data = like("train_data", path=Path("dev.tsv"), shuffle=False)
tokenizer = FittedTokenizer.Config(vocab_size=22)
model = Transformer.Config(dim=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
trainer = Trainer.Config(max_steps=2)
'''

READY = """
del tokenizer


def tokenizer():
    from textmill.text import MultilingualTokenizer, train_sentencepiece

    path = Path("spm.model")
    if not path.exists():
        lines = Path("train.tsv").read_text().splitlines()
        train_sentencepiece(lines, path, vocab_size=22)
    return MultilingualTokenizer.from_file(path, source_langs=["a"], target_langs=["b"])


def train_data(tokenizer, source_mode: str = "source"):
    def column(mode, number):
        read = data.read_text(Path("train.tsv"), rtrim=True)
        encoder = tokenizer.create_encoder(mode=mode)
        return read.map(lambda line: line.split("\\t")[number]).map(encoder).and_return()

    pad_idx = tokenizer.vocab_info.pad_idx
    pairs = data.zip_pipelines([column(source_mode, 0), column("target", 1)])
    made = pairs.batch(8, pad_idx=pad_idx)
    return made.map(lambda p: data.Seq2SeqBatch.from_padded(*p, pad_idx=pad_idx)).and_return()


valid_data = None
"""

TASK = """

class Mine(Translation):
    def {0}
        {1}


task = Mine.Config()
"""

MODULE = """

def module(model: Transformer.Config, tokenizer):
    made = model.build(tokenizer=tokenizer)
    {0}
    return made
"""


@pytest.fixture
def recipe(tmp_path):
    """Writes the data and the script with a text added to it."""
    words = ["un", "deux", "trois", "quatre", "cinq"]
    rows = [f"{a} {b}\t{b} {a}" for a in words for b in words]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    other = [f"{a} {a} {b}\t{b} {a} {a}" for a, b in itertools.pairwise(words)]
    (tmp_path / "dev.tsv").write_text("\n".join(other) + "\n")

    def write(added="", base=SCRIPT):
        (tmp_path / "recipe.py").write_text(base + added)
        return str(tmp_path / "recipe.py")

    return write


def test_a_good_recipe_is_ready_and_every_step_is_said(recipe, capsys):
    assert main(["check", recipe()]) == 0
    said = capsys.readouterr().out
    names = [line.partition(":")[0] for line in said.splitlines()]
    assert names == [
        "plan", "train_data", "valid_data", "build", "train_data begins with", "encode",
        "loss and backward", "metrics", "optimizer", "checkpoint", "predict", "trainer", "memory",
        "Ready to train.",
    ]  # fmt: skip
    assert "train_data: 25 rows, 0 bad (" in said
    assert re.search(r"\nmemory: at most \S+ [MG]B so far, \S+ [MG]B free ", said)


def test_word_vectors_are_read_and_a_file_that_is_missing_is_a_problem():
    Path("train.tsv").write_text("a\tgood soup\nb\tbad soup\n" * 4)
    words = ["train_data.path=train.tsv", "valid_data.path=train.tsv", "model.embedding.dim=2"]
    words += ["tokenizer.type=fitted_words", "model.embedding.vectors=words.txt"]
    found = check("classification/averaging/local", words, device="cpu")
    assert found.problems == ["build: The word vectors cannot be read. words.txt: missing."]
    Path("words.txt").write_text("soup 0.1 0.2\n")
    said = []
    found = check("classification/averaging/local", words, device="cpu", say=said.append)
    assert found.problems == []
    line = "Word vectors of words.txt: 1 of 3 words have one of its 1 vectors (33.3 %)."
    assert any(text.startswith("build: ") and line in text for text in said)


def test_bad_rows_of_two_files_are_listed_at_once(recipe, tmp_path, capsys):
    for name in ("train.tsv", "dev.tsv"):
        with (tmp_path / name).open("ab") as file:
            file.write(b"no tab here\nun\tdeux\n\xff\tdeux\n")
    assert main(["check", recipe()]) == 2
    text = capsys.readouterr().err
    assert text.startswith("2 problems:\n  train_data: ")
    assert "\n  valid_data: " in text
    assert "train.tsv" in text
    assert "dev.tsv" in text
    assert "Traceback" not in text


def loss(body: str) -> str:
    return TASK.format("loss(self, logits, targets):", body)


NAN = loss("return Loss(logits.sum() * float('nan'), torch.tensor(2.0))")
UNSAVED = MODULE.format(
    "made.register_state_dict_post_hook(lambda m, s, *_: s.update(odd=object()))"
)
FAULTS = {
    "weights of a run that is not there": (
        *("", ["trainer.initialize=nowhere"]),
        "trainer: trainer.initialize is 'nowhere', where no checkpoint is; ",
    ),
    "a NaN loss": (NAN, [], "loss and backward: the loss of the first batch is nan; wanted a fin"),
    "a loss over nothing": (
        *(loss("return Loss(logits.sum() * 0, torch.tensor(0.0))"), []),
        "loss and backward: the loss is a sum over 0 targets; wanted at least one.",
    ),
    "a gradient that is not finite": (
        *(loss("return Loss((logits * 0).sum().sqrt(), torch.tensor(1.0))"), []),
        "loss and backward: gradients that are not finite, at a loss of 0: ",
    ),
    "a task method that raises": (
        *(TASK.format("aggregate(self, metrics, outputs, examples):", "return 1 / 0"), []),
        "metrics: ZeroDivisionError: division by zero\nraised at {script}:23",
    ),
    "a loss that raises": (
        *(loss("raise RuntimeError('boo')"), []),
        "loss and backward: RuntimeError: boo\nraised at {script}:23",
    ),
    "a source encoded as a target": (
        *(READY, ["train_data.source_mode=target"]),
        "batches against the text processor: 8 of the batch's sequences have other ids than",
    ),
    "a wrong metric": (
        *("", ["trainer.selection.metric=blue"]),
        "trainer: trainer.selection.metric is 'blue', which this task does not measure. ",
    ),
    "a checkpoint that cannot be saved": (UNSAVED, [], "checkpoint: "),
    "an optimizer without parameters": (
        "\n\ndef optimizer(module):\n    made = torch.optim.SGD([torch.zeros(1)], lr=0.1)\n"
        "    made.param_groups[0]['params'] = []\n    return made\n",
        *([], "optimizer: the optimizer has no parameters: nothing would be trained."),
    ),
    "a frozen module": (
        *(MODULE.format("made.requires_grad_(False)"), []),
        "optimizer: ValueError: optimizer got an empty parameter list",
    ),
    "a module that cannot be built": (
        *(MODULE.format("raise KeyError('x')"), []),
        "build: KeyError: 'x'\nin the ingredient 'module' ({script}:",
    ),
    "no room for the vocabulary": ("", ["tokenizer.vocab_size=6"], "build: vocab_size=6 is too"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_listed(recipe, name):
    added, words, wanted = FAULTS[name]
    script = recipe(added)
    found = check(script, words, device="cpu")
    wanted = wanted.replace("{script}", script)
    assert any(problem.startswith(wanted) for problem in found.problems), found.problems


def test_the_room_that_checkpoints_take_is_said_and_looked_for(recipe, capsys, monkeypatch):
    sizes = []
    for keep, policy in ((2, "stop"), (5, "rollback")):
        words = [f"trainer.keep={keep}", f"trainer.on_nonfinite={policy}"]
        assert main(["check", recipe(), *words]) == 0
        said = re.search(
            r"checkpoint: ([\d.]+) MB, (\d+) at a time: ([\d.,]+) MB, of [\d.,]+ MB free",
            capsys.readouterr().out,
        )
        size, count, needed = (float(said[i].replace(",", "")) for i in (1, 2, 3))
        assert count == keep + 2 + (policy == "rollback")
        assert needed == pytest.approx(count * size, abs=0.05 * (count + 1))
        sizes.append(size)
    assert sizes[0] == sizes[1]
    free = operations.free
    monkeypatch.setattr(operations, "free", lambda folder: min(free(folder), 700_000))
    found = check(recipe(), ["trainer.keep=9999"], device="cpu")
    assert len(found.problems) == 1
    assert found.problems[0].startswith("checkpoint: 10001 checkpoints of ")
    assert found.problems[0].endswith(
        " 0.7 MB free. Make room, lower trainer.keep, or run on another disk."
    )


def test_faults_do_not_hide_each_other(recipe, capsys):
    assert main(["check", recipe(NAN + UNSAVED), "trainer.selection.metric=blue"]) == 2
    problems = re.findall(r"^  ([a-z ]+): ", capsys.readouterr().err, flags=re.MULTILINE)
    assert problems == ["loss and backward", "checkpoint", "trainer"]


def test_a_parameter_that_no_gradient_reaches_is_noted(recipe):
    added = MODULE.format("made.unused = torch.nn.Linear(2, 2)")
    found = check(recipe(added), device="cpu")
    assert found.problems == []
    assert (
        "no gradient reaches unused.weight, unused.bias: the loss does not depend on it, so "
        "training never changes it." in found.notes
    )


def test_ready_batches_are_compared_with_the_text_path(recipe):
    said = []
    found = check(recipe(READY), device="cpu", say=said.append)
    assert found.problems == []
    assert any(line.startswith("batches against the text processor: the same ids") for line in said)


def test_each_text_is_encoded_once(recipe, monkeypatch):
    """The trainer takes the rows as they were encoded for the check, from their first batch on."""
    encoded, places = [], []
    encode, make = Seq2SeqText.encode, Trainer.__init__

    def counted(self, rows, *, with_targets, **settings):
        encoded.extend(rows if with_targets else [])
        return encode(self, rows, with_targets=with_targets, **settings)

    @functools.wraps(make)  # what it needs is read from its signature
    def made(self, *given, **needs):
        make(self, *given, **needs)
        places.extend([self.data.data.state_dict(), self.valid.state_dict()])

    monkeypatch.setattr(Seq2SeqText, "encode", counted)
    monkeypatch.setattr(Trainer, "__init__", made)
    found = check(recipe(), ["train_data.batch_size=4", "trainer.seed=7"], device="cpu")
    assert found.problems == []
    assert places == [{"epoch": 0, "position": 0}] * 2
    assert len(encoded) == 25 + 4


def test_a_module_that_is_built_otherwise_for_prediction_is_a_problem(recipe):
    added = "\nbuilt = []\n"
    added += MODULE.format("built.append(1); made.more = torch.nn.Linear(1, len(built))")
    found = check(recipe(added), device="cpu")
    assert [problem.partition("\n")[0] for problem in found.problems] == [
        "checkpoint: A run could be trained, but not loaded: the module that is built for "
        "prediction has other weights than the one that is trained."
    ]
    assert "'more.weight' wants float32[2, 1], found float32[1, 1]" in found.problems[0]
