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
from textmill.models.poolings import MeanPooling
from textmill.models.tagger import Tagger
from textmill.runtime.devices import Env, Experiment
from textmill.tasks.classification import DocumentClassification
from textmill.tasks.several.multitask import Multitask, TaskSource, share_parameters
from textmill.tasks.tagging import WordTagging
from textmill.text.features.labels import Labels
from textmill.text.tokenizers.word_tokenizer import WordTokenizer
from textmill.training import AdamW, Constant, Every, Selection, Trainer

WORDS = ("cat", "dog", "runs", "eats")
TEXTS = [f"{a} {b}" for a in WORDS for b in WORDS]
DOCUMENTS = [{"text": text, "label": "pet" if text[0] in "cd" else "act"} for text in TEXTS]
TAGGED = [
    {"words": text, "tags": " ".join("N" if word in WORDS[:2] else "V" for word in text.split())}
    for text in TEXTS
]


def sources():
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
            name=name, task=task, train_data=data[:10], valid_data=data[10:], test_data=data[:4]
        )
        for name, (task, data) in rows.items()
    ]


def make(folder, *callbacks, given=None, several=None, **settings):
    xp = Experiment(folder=folder, recipe="joint")
    folder.mkdir(parents=True, exist_ok=True)
    given = sources() if given is None else given
    defaults = {
        "max_steps": 30, "accumulate": 2, "evaluate_every": Every(10), "save_every": Every(3),
        "report_every": Every(5), "selection": Selection.Config(metric="tags/token_accuracy"),
    }  # fmt: skip
    task = Multitask.Config(share=(), **several or {}).build(sources=given)
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
    with pytest.raises(Killed):
        make(tmp_path / "killed", KillAt(17)).fit()
    resumed = make(tmp_path / "killed")
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


def test_sources_are_drawn_by_weight_size_and_progress_by_seed_and_step_alone(tmp_path):
    def drawn(seed=1, steps=range(1, 401), **several):
        given = sources()
        given[1] = replace(given[1], train_data=TAGGED[:10] * 100)
        trainer = make(tmp_path, given=given, seed=seed, several=several)
        names = [group.source.name for step in steps for group in trainer.data.groups(step, 400)]
        sizes.update({source.name: source.size for source in trainer.data.all})
        return names, Counter(names)["tags"] / len(names)

    sizes = {}

    shares = {"weights": {"tags": 3.0}, "size_power": 0.0}
    first, share = drawn(**shares)
    assert 0.7 < share < 0.8  # 3 of 4
    assert drawn(steps=range(201, 221), **shares)[0] == first[200:220]
    assert drawn(seed=2, **shares)[0] != first
    assert 0.45 < drawn(size_power=0.0)[1] < 0.55
    share = sizes["tags"] / sum(sizes.values())
    assert share > 0.6
    assert abs(drawn()[1] - share) < 0.05
    annealed = {"last_size_power": 0.0}
    early, late = range(1, 101), range(301, 401)
    assert drawn(steps=early, **annealed)[1] > drawn(steps=late, **annealed)[1] + 0.1


def test_a_step_of_all_tasks_is_the_weighted_sum_of_their_mean_losses(tmp_path):
    several = {"steps": "all", "weights": {"tags": 0.5}}
    trainer = make(tmp_path, several=several, accumulate=1, clip_norm=None)
    for module in trainer.task.module.modules():
        module.p = 0.0  # dropout
    groups = trainer.data.groups(1, None)
    assert [group.source.name for group in groups] == ["documents", "tags"]
    found = trainer.updates.gradient(groups, step=1)
    losses = [batch.loss() for group in groups for batch in group.batches]
    wanted = losses[0].total / losses[0].count + 0.5 * losses[1].total / losses[1].count
    expected = torch.autograd.grad(wanted, found.parameters)
    torch.testing.assert_close(found.total, wanted.detach())
    torch.testing.assert_close(found.tensors, list(expected))
    torch.testing.assert_close(found.norm, torch.stack([g.norm() for g in expected]).norm())


def test_an_epoch_of_several_tasks_has_all_their_batches(tmp_path):
    trainer = make(tmp_path, max_steps=None, max_epochs=2, accumulate=1)
    batches = sum(source.size for source in trainer.data.all)
    assert trainer.total == 2 * batches
    progress = trainer.fit()
    assert (progress.epochs, progress.steps) == (2, 2 * batches)


def test_a_task_without_training_data_is_measured_alone(tmp_path):
    documents, tags = sources()
    given = [replace(each, selected="loss") for each in (documents, tags)]
    other = replace(given[0], name="other", train_data=None, valid_data=DOCUMENTS[:3])
    trainer = make(tmp_path, given=[*given, other], max_steps=10)
    trainer.fit()
    (line,) = [line for line in metrics_of(tmp_path) if line["split"] == "valid"]
    assert line["other/accuracy"] != line["documents/accuracy"]
    assert not [name for name in trainer.parts if "other" in name]
    assert line["mean"] == -(line["documents/loss"] + line["tags/loss"]) / 2


def test_the_mean_of_what_tasks_are_selected_by_selects(tmp_path):
    given = [replace(sources()[0], selected="accuracy"), replace(sources()[1], selected="loss")]
    trainer = make(tmp_path, given=given, selection=Selection.Config(metric="mean"))
    trainer.fit()
    for line in (line for line in metrics_of(tmp_path) if line["split"] == "valid"):
        assert line["mean"] == (line["documents/accuracy"] - line["tags/loss"]) / 2


def test_parts_of_one_name_share_their_parameters_and_others_are_refused():
    parts = {
        "embedding": WordEmbedding.Config(dim=8), "encoder": LstmEncoder.Config(hidden_dim=6),
        "pooling": MeanPooling.Config(),
    }  # fmt: skip
    given = {"tokenizer": WordTokenizer.Config(words=WORDS).build()}
    labels = {"one": Labels(["act", "pet"]), "two": Labels(["N", "V"])}
    modules = {
        name: Classifier.Config(**parts).build(labels=labels[name], **given) for name in labels
    }
    share_parameters(modules, ["encoder", "embedding"])
    one, two = ({*module.parameters()} for module in modules.values())
    whole = {*modules["one"].text.encoder.parameters()}
    assert one & two == whole | {*modules["one"].text.embedding.parameters()}
    ids, lengths = torch.tensor([[3, 4, 5]]), torch.tensor([3])
    vectors = [module.eval().text(ids, lengths) for module in modules.values()]
    torch.testing.assert_close(*vectors)
    with pytest.raises(UserError, match="names 'crf', but a part of that name is in no task"):
        share_parameters(modules, ["crf"])
    parts["encoder"] = LstmEncoder.Config(hidden_dim=5)
    modules["two"] = Classifier.Config(**parts).build(labels=labels["two"], **given)
    with pytest.raises(UserError, match="encoder of two is not of the size of that of one: layers"):
        share_parameters(modules, ["encoder"])


def test_what_is_shared_is_saved_by_any_of_its_names(tmp_path):
    names = ("documents.text.encoder", "tags.encoder")
    make(tmp_path, max_steps=1, save_modules=names).fit()
    one, other = (Checkpoints.load_part(tmp_path / "modules", name) for name in names)
    assert one.keys() == other.keys()


def without(name):
    """Sources of which one is not measured."""
    return [replace(s, valid_data=None) if s.name == name else s for s in sources()]


class Stream:
    """Ready batches, of which nobody knows how many there are."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def streamed():
    documents, tags = sources()
    batches = list(tags.task.batches(TAGGED[:10], train=True, seed=1))
    return [documents, replace(tags, train_data=Stream(batches))]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (lambda: {"selection": Selection.Config()}, "is 'loss', .* measures: documents/loss, "),
        (lambda: {"several": {"weights": {"tag": 2.0}}}, "names 'tag'; the tasks are documents, t"),
        (lambda: {"given": [*sources(), *sources()]}, "told apart by their names"),
        (lambda: {"several": {"weights": {"tags": 0.0}}}, "task.weights must be positive"),
        (
            lambda: {"given": [replace(each, name="") for each in sources()]},
            r"these are \['', ''\]",
        ),
        (lambda: {"given": [replace(sources()[0], name="train")]}, r"these are \['train'\]"),
        (lambda: {"given": without("tags")}, "is 'tags/token_accuracy', which this .* not measure"),
        (lambda: {"given": streamed()}, "tags.train_data .* how often it is .* task.size_power=0"),
        (lambda: {"given": streamed(), "max_steps": None}, "how long the run is: set .*max_steps"),
        (lambda: {"initialize": "runs/other"}, "fills the module of one task"),
    ],
)
def test_what_several_sources_cannot_have_is_refused(tmp_path, settings, said):
    with pytest.raises(UserError, match=said):
        make(tmp_path, **settings())
