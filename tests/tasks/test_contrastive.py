"""Classification that also compares the texts of a batch: its loss, and what it cannot do."""

import math

import pytest
import torch

from tests.tasks.rows import data_of
from textmill.errors import UserError
from textmill.models.classifier import Classifier
from textmill.models.ngrams import NgramClassifier
from textmill.tasks.classification import ContrastiveClassification, DocumentClassification
from textmill.tasks.several.soft_labels import SoftLabels
from textmill.text.columns.numbers import FittedNumbers
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.text.tokenizers.word_tokenizer import FittedWords

ROWS = [
    {"label": label, "text": text, "dense": str(number)}
    for number, (label, text) in enumerate(
        [
            ("play", "play some jazz"), ("play", "a song please"), ("rain", "is it wet outside"),
            ("play", "more jazz"), ("rain", "will it rain"), ("book", "a table for two"),
        ]
    )
]  # fmt: skip
Data = data_of(ROWS, batch_size=len(ROWS))
TEMPERATURE = 0.25


def parts_of(labels=None, *, beside=False):
    made = {
        "tokenizer": FittedWords.Config().build(train_data=ROWS),
        "labels": (labels or FittedLabels.Config()).build(train_data=ROWS),
    }
    more = {
        "dense": FittedNumbers.Config().build(train_data=ROWS),
        "ngrams": FittedNgrams.Config().build(train_data=ROWS),
    }
    return made | more if beside else made


def make(*, beside=False, **settings):
    torch.manual_seed(0)
    given = parts_of(beside=beside)
    module = Classifier.Config(dropout=0.0).build(**given)
    config = ContrastiveClassification.Config(temperature=TEMPERATURE, **settings)
    return config.build(module=module, **given)


VARIANTS = {"text": {}, "beside": {"beside": True}}


def khosla(vectors, labels, i):
    """Equation 2 of Khosla et al. 2020 for one row, by loops."""
    units = [[x / math.hypot(*row) for x in row] for row in vectors]
    scores = [sum(map(float.__mul__, units[i], unit)) / TEMPERATURE for unit in units]
    others = [j for j in range(len(labels)) if j != i]
    total = sum(math.exp(scores[j]) for j in others)
    same = [j for j in others if labels[j] == labels[i]]
    losses = [-math.log(math.exp(scores[p]) / total) for p in same]
    return sum(losses) / len(losses) if losses else 0.0


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("weights", [{}, {"play": 3.0, "book": 0.5}])
def test_the_loss_is_that_of_labels_and_the_published_one_of_vectors(weights, weight, beside):
    settings = {"loss": {"weights": weights}, "weight": weight}
    task = make(beside=beside, contrast=0.7, **settings)
    rows = [{**row, "weight": number / 2} for number, row in enumerate(ROWS)]
    (batch,) = task.batches(Data(rows), train=True, seed=1)
    alone = DocumentClassification.Config(**settings)
    given = parts_of(beside=beside)
    wanted = alone.build(module=task.module, **given).training_step(batch)
    found = task.training_step(batch)
    vectors = task.module.text(batch["text"], batch.lengths["text"]).tolist()
    names = task.text.label.labels.names
    labels = [names[n] for n in batch["label"].tolist()]
    each = [
        weights.get(labels[i], 1.0) * (row / 2 if weight else 1) * khosla(vectors, labels, i)
        for i, row in enumerate(batch.rows.tolist())
    ]
    assert found.count == wanted.count
    assert found.sums["contrastive"].item() == pytest.approx(sum(each), rel=1e-4)
    assert found.total.item() == pytest.approx(wanted.total.item() + 0.7 * sum(each), rel=1e-4)
    found.total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in task.module.parameters())


def test_a_row_without_another_to_compare_with_has_a_gradient_of_its_label_alone():
    task = make()
    (batch,) = task.batches(Data(ROWS[:1]), train=True, seed=1)
    wanted = DocumentClassification.Config().build(module=task.module, **parts_of())
    gradients = []
    for each in (task, wanted):
        task.module.zero_grad()
        each.training_step(batch).total.backward()
        gradients.append([p.grad.clone() for p in task.module.parameters()])
    assert all(torch.equal(one, two) for one, two in zip(*gradients, strict=True))


def test_what_it_cannot_compare_is_refused():
    several = parts_of(FittedLabels.Config(multiple=True, separator=","))
    config = ContrastiveClassification.Config()
    with pytest.raises(UserError, match=r"labels\.multiple is true\. Set task\.type=document"):
        config.build(module=Classifier.Config().build(**several), **several)
    linear = {**parts_of(), "tokenizer": FittedNgrams.Config().build(train_data=ROWS)}
    module = NgramClassifier.Config().build(**linear)
    with pytest.raises(UserError, match="but the model is a NgramClassifier"):
        config.build(module=module, **linear)
    with pytest.raises(UserError, match=r"task\.soft_labels is for task\.type=document_class"):
        make(soft_labels=SoftLabels.Config(column="soft"))
    with pytest.raises(UserError, match=r"task\.temperature must be"):
        ContrastiveClassification.Config(temperature=0.0)
