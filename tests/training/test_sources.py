"""Several tasks in one run: drawn by weight, named, sharing an encoder, and going on bitwise."""

import json
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.bench import KillAt, Killed, differences, metrics_of
from textmill.checkpoint import Checkpoints
from textmill.errors import UserError
from textmill.metrics.reporters.jsonl import JsonLines, Predictions
from textmill.models.classifier import Classifier
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.tagger import Tagger
from textmill.runtime.devices import Env, Experiment
from textmill.tasks.classification import DocumentClassification
from textmill.tasks.tagging import WordTagging
from textmill.text.features.labels import Labels
from textmill.text.tokenizers.word_tokenizer import WordTokenizer
from textmill.training import AdamW, Constant, Every, Selection, Trainer
from textmill.training.sources import JointTask, TaskSource

WORDS = ("cat", "dog", "runs", "eats")
TEXTS = [f"{a} {b}" for a in WORDS for b in WORDS]
DOCUMENTS = [{"text": text, "label": "pet" if text[0] in "cd" else "act"} for text in TEXTS]
TAGGED = [
    {"words": text, "tags": " ".join("N" if word in WORDS[:2] else "V" for word in text.split())}
    for text in TEXTS
]


def sources(**weights):
    """Documents and words, read by one embedding and one encoder."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  # what code of one's own may draw from
    words = WordTokenizer.Config(words=WORDS).build()
    parts = {
        "embedding": WordEmbedding.Config(dim=8), "encoder": LstmEncoder.Config(hidden_dim=6),
        "dropout": 0.1,
    }  # fmt: skip
    given = {"tokenizer": words, "labels": Labels(["act", "pet"])}
    documents = DocumentClassification.Config().build(
        module=Classifier.Config(**parts).build(**given), **given
    )
    given["labels"] = Labels(["N", "V"], column="tags", multiple=True)
    tags = WordTagging.Config().build(module=Tagger.Config(**parts).build(**given), **given)
    tags.module.embedding = documents.module.text.embedding
    tags.module.encoder = documents.module.text.encoder
    rows = {"documents": (documents, DOCUMENTS), "tags": (tags, TAGGED)}
    return [
        TaskSource(
            name=name, task=task, train_data=data[:10], valid_data=data[10:], test_data=data[:4],
            weight=weights.get(name, 1.0),
        )
        for name, (task, data) in rows.items()
    ]  # fmt: skip


def make(folder, *callbacks, given=None, **settings):
    xp = Experiment(folder=folder, recipe="joint")
    folder.mkdir(parents=True, exist_ok=True)
    given = sources() if given is None else given
    defaults = {
        "max_steps": 30, "accumulate": 2, "evaluate_every": Every(10), "save_every": Every(3),
        "report_every": Every(5), "selection": Selection.Config(metric="tags/token_accuracy"),
    }  # fmt: skip
    task = JointTask(given)
    return Trainer.Config(**{**defaults, **settings}).build(
        task=task, train_data=(), optimizer=AdamW.Config(lr=2e-2).build(module=task.module),
        lr_scheduler=Constant.Config().build(), env=Env(), xp=xp,
        reporters=[JsonLines.Config().build(xp=xp), Predictions.Config().build(xp=xp)],
        callbacks=callbacks,
    )  # fmt: skip


def test_two_tasks_learn_on_one_encoder_and_a_killed_run_goes_on_bitwise(tmp_path):
    whole = make(tmp_path / "whole")
    whole.fit()
    lines = metrics_of(tmp_path / "whole")
    for name in ("documents/loss", "tags/loss"):
        first, *_, last = [line[name] for line in lines if line["split"] == "train" if name in line]
        assert last < first / 2
    (tested,) = [line for line in lines if line["split"] == "test"]
    assert min(tested["documents/accuracy"], tested["tags/token_accuracy"]) > 0.8
    assert whole.selection.config.metric in whole.summary["best"]
    assert len({line["source"] for line in answered(tmp_path / "whole")}) == 2
    for step in (4, 17):
        folder = tmp_path / str(step)
        with pytest.raises(Killed):
            make(folder, KillAt(step)).fit()
        resumed = make(folder)
        resumed.fit()
        assert differences(outcome_of(whole), outcome_of(resumed)) == []


def answered(folder):
    files = sorted((folder / "predictions").glob("valid*"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def outcome_of(trainer):
    path = trainer.checkpoints.last()
    parts = ("model", "optimizer", "data.documents", "data.tags", "sums.tags")
    found = {name: Checkpoints.load_part(path, name) for name in parts}
    found["sums.tags"] |= {"seconds": 0}
    return found | {"metrics": metrics_of(trainer.xp.folder), "summary": trainer.summary}


def test_what_tasks_share_is_counted_moved_and_saved_once(tmp_path):
    trainer = make(tmp_path)
    own = [list(task.module.parameters()) for task in trainer.task.tasks.values()]
    shared = {*own[0]} & {*own[1]}
    held = [p for group in trainer.optimizer.param_groups for p in group["params"]]
    assert len(held) == len({*held}) == len(own[0]) + len(own[1]) - len(shared)
    trainer.start()
    trainer.save(best=False)
    path = trainer.checkpoints.last()
    weights = sum(p.numel() for p in held) * 4
    assert weights < (path / "model.safetensors").stat().st_size < weights + 4096
    assert sorted(p.name for p in (path / "text").iterdir()) == ["documents", "tags"]


def test_sources_are_drawn_by_weight_and_by_seed_and_step_alone(tmp_path):
    def drawn(seed, steps):
        trainer = make(tmp_path, given=sources(tags=3.0), seed=seed)
        return [trainer.data.group(step).source.name for step in steps]

    first = drawn(1, range(1, 401))
    assert 0.7 < Counter(first)["tags"] / 400 < 0.8
    assert drawn(1, range(201, 221)) == first[200:220]
    assert drawn(2, range(1, 401)) != first


def test_a_run_of_several_sources_ends_when_each_has_had_its_epochs(tmp_path):
    trainer = make(tmp_path, max_steps=None, max_epochs=2, given=sources(tags=9.0))
    assert trainer.total is None
    progress = trainer.fit()
    assert progress.epochs == 2
    assert trainer.data.all[1].groups.epochs > 2


def test_what_is_shared_is_saved_by_any_of_its_names(tmp_path):
    names = ("documents.text.encoder", "tags.encoder")
    make(tmp_path, max_steps=1, save_modules=names).fit()
    one, other = (Checkpoints.load_part(tmp_path / "modules", name) for name in names)
    assert one.keys() == other.keys()


def without(name):
    """Sources of which one is not measured."""
    return [replace(s, valid_data=None) if s.name == name else s for s in sources()]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (lambda: {"selection": Selection.Config()}, "is 'loss', .* measures: documents/loss, "),
        (lambda: {"given": [*sources(), *sources()]}, "told apart by their names"),
        (lambda: {"given": sources(tags=0.0)}, "weight of a source must be positive"),
        (
            lambda: {"given": [replace(each, name="") for each in sources()]},
            r"these are \['', ''\]",
        ),
        (lambda: {"given": [replace(sources()[0], name="train")]}, r"these are \['train'\]"),
        (lambda: {"given": without("tags")}, "is 'tags/token_accuracy', which this .* not measure"),
        (lambda: {"initialize": "runs/other"}, "fills the module of one task"),
    ],
)
def test_what_several_sources_cannot_have_is_refused(tmp_path, settings, said):
    with pytest.raises(UserError, match=said):
        make(tmp_path, **settings())
