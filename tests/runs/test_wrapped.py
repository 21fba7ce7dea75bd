"""Modules that a recipe has wrapped for many ranks itself: left as they are, and the same run."""

import re

import pytest
import torch

import textmill
from tests.runs.many_ranks import largest_difference, lines_of, write_data
from tests.runs.tiny import write_recipe
from textmill.checkpoint.parts import load_part

RECIPE = """
from pathlib import Path

import torch
from torch.distributed.fsdp import fully_shard

from textmill import like
from textmill.data.text_rows import TextRows
from textmill.models.classifier import Classifier
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Selection, Trainer

train_data = TextRows.Config(path=Path("data/train.tsv"), batch_size=4, max_tokens=None)
valid_data = like("train_data", path=Path("data/dev.tsv"), shuffle=False)
tokenizer = FittedWords.Config()
labels = FittedLabels.Config()
model = Classifier.Config(
    dropout=0.0,
    embedding=WordEmbedding.Config(dim=8, dropout=0.0),
    encoder=SelfAttentionEncoder.Config(num_layers=2, num_heads=2, dropout=0.0),
)


def module(model, tokenizer, labels, env, wrap: str = "nothing"):
    module = model.build(tokenizer=tokenizer, labels=labels)
    if env.world_size > 1 and wrap == "ddp":
        return torch.nn.parallel.DistributedDataParallel(module)
    if env.world_size > 1 and wrap == "fully_shard":
        return fully_shard(module)
    if env.world_size > 1 and wrap == "a part":
        module.text = torch.nn.parallel.DistributedDataParallel(module.text)
    return module


task = DocumentClassification.Config()
optimizer = Adam.Config(lr=2e-3)
trainer = Trainer.Config(
    max_steps=17, accumulate=2, report_every="1 steps", selection=Selection.Config(metric="loss")
)
"""


SLOW = pytest.mark.slow

TRANSLATOR = """
from torch.distributed.fsdp import fully_shard

from textmill.data import Seq2SeqBatch
from textmill.text import MultilingualTokenizer


class Shuffled:
    \"\"\"Ready batches whose order follows from how often it was iterated over.\"\"\"

    def __init__(self, batches):
        self.batches, self.epoch = batches, 0

    def __iter__(self):
        order = torch.randperm(len(self.batches), generator=torch.manual_seed(self.epoch))
        self.epoch += 1
        yield from (self.batches[number] for number in order.tolist())


def train_data(tokenizer: MultilingualTokenizer):
    encode = [tokenizer.create_encoder(mode=mode) for mode in ("source", "target")]
    lines = Path("train.tsv").read_text().splitlines()
    rows = [[e(text) for e, text in zip(encode, line.split("\\t"))] for line in lines]
    pad = torch.nn.utils.rnn.pad_sequence
    batches = []
    for first in range(0, 26, 5):  # the last of 1 row
        ids = [[torch.as_tensor(row) for row in column] for column in zip(*rows[first : first + 5])]
        padded = [pad(column, True, tokenizer.vocab_info.pad_idx) for column in ids]
        batches.append(Seq2SeqBatch.from_padded(*padded, pad_idx=tokenizer.vocab_info.pad_idx))
    return Shuffled(batches)


class Noting(Translation):
    \"\"\"Notes how many rows it gets, by the rank.\"\"\"

    def training_step(self, batch, examples=()):
        with open(f"rows-{torch.distributed.get_rank()}.txt", "a") as file:
            file.write(f"{len(batch)} ")
        return super().training_step(batch, examples)


def task(module, tokenizer, env):
    return (Noting if env.world_size > 1 else Translation).Config().build(
        module=module, tokenizer=tokenizer
    )


def module(model, tokenizer, env, wrap: str = "nothing"):
    module = model.build(tokenizer=tokenizer)
    if wrap == "fully_shard" and env.world_size > 1:
        for layer in (*module.encoder.layers, *module.decoder.layers):
            fully_shard(layer)
        fully_shard(module)
    return module
"""


@pytest.mark.parametrize("wrap", [pytest.param("nothing", marks=SLOW), "fully_shard"])
def test_a_translator_learns_by_the_rows_of_ready_batches_on_each_rank(runs, tmp_path, wrap):
    """Its task calls parts of the module; the batches count their epochs; the last has one row."""
    lines = []
    for size in (1, 2):
        folder = write_recipe(tmp_path / str(size))
        recipe = folder / "tiny.py"
        text = recipe.read_text().replace("dim=16", "dropout=0.0, dim=16")
        text = re.sub(r"^task = .*\n", "", text, flags=re.MULTILINE)
        text = text.replace("train_data = ", "rows = ").replace('"train_data"', '"rows"')
        text = text.replace('("fra",))', '("fra",)).given(train_data="rows")')
        text = text.replace("optimizer =", f"import torch\n{TRANSLATOR}\n\noptimizer =")
        recipe.write_text(text)
        words = f"module.wrap={wrap}", "trainer.max_steps=9"
        codes, said = runs.run(folder, "train", "tiny.py", *words, size=size)
        assert codes == [0] * size, said
        assert "ranks share whole" not in "".join(said)
        lines.append(lines_of(folder))
    assert largest_difference(*lines) < 1e-5
    assert lines[0][-1]["epoch"] == 3
    counts = [[*map(int, (folder / f"rows-{r}.txt").read_text().split())] for r in (0, 1)]
    filled = 3 if wrap == "fully_shard" else 0  # it computes with a row that is not its own
    assert (sum(counts[0]), sum(counts[1])) == (3 * 16, 3 * 10 + filled)


def trained(runs, folder, *words, size):
    write_data(folder)
    (folder / "own.py").write_text(RECIPE)
    return runs.run(folder, "train", "own.py", *words, size=size)


@pytest.fixture(scope="module")
def alone(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    codes, said = trained(runs, folder, size=1)
    assert codes == [0], said
    return folder


@pytest.mark.parametrize(
    ("wrap", "size"),
    [
        pytest.param("ddp", 2, marks=SLOW), ("fully_shard", 2), pytest.param("ddp", 3, marks=SLOW),
        pytest.param("fully_shard", 3, marks=SLOW), pytest.param("nothing", 2, marks=SLOW),
    ],
)  # fmt: skip
def test_a_wrapped_module_is_trained_as_by_one_process(runs, alone, tmp_path, wrap, size):
    """Steps of 8 rows in two batches; the last of an epoch has 1 row, which one rank alone has."""
    codes, said = trained(runs, tmp_path, f"module.wrap={wrap}", size=size)
    assert codes == [0] * size, said
    assert largest_difference(lines_of(alone), lines_of(tmp_path)) < 1e-6
    (run,) = tmp_path.glob("runs/own/*")
    (other,) = alone.glob("runs/own/*")
    ours, theirs = (load_part(max(r.glob("checkpoints/step-*")), "model") for r in (run, other))
    assert ours.keys() == theirs.keys()  # those of the module inside
    weights = [name for name in theirs if name.endswith("weight")]
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-5) for name in weights)
    assert textmill.load(run, allow_code=True)("the cat sees a bird").label in ("ham", "spam")


def test_what_cannot_be_divided_is_said_to_be_divided_by_the_recipe(runs, tmp_path):
    words = "module.wrap=fully_shard", "optimizer.type=adafactor"
    codes, said = trained(runs, tmp_path, *words, size=2)
    assert 0 not in codes, said
    text = " ".join("".join(said).split())
    assert "With the recipe's fully_shard a rank has a share of each parameter, and" in text
    assert "or a module without fully_shard." in text
    assert "data_parallelism" not in text
