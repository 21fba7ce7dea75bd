"""What holds for every task with weights: a row of weight 2 is the row twice, in all values."""

import json

import pytest
import torch

import textmill
from tests.tasks.rows import data_of, evaluated
from textmill.errors import DataError, UserError
from textmill.models.crf import LinearChainCrf
from textmill.models.label_losses import BinaryCrossEntropy, CrossEntropyLoss
from textmill.runs.ensemble import ensemble_of
from textmill.tasks import Loss
from textmill.tasks.tagging import TagHead

WORDS = "tokenizer.type=fitted_words"
KNOWN = (WORDS, "tokenizer.min_count=1", "model.word_dropout=0")
TASKS = {
    "label": ("classification/docnn/local", WORDS),
    "labels": ("classification/docnn/local", WORDS, "labels.multiple=true", "labels.separator=-"),
    "weights of labels": ("classification/docnn/local", WORDS, "task.loss.weights={odd: 3}"),
    "number": ("regression/docnn/local",),
    "pairs": ("pairs/classification/local",),
    "ranking": ("pairs/ranking/local",),
    "words": ("tagging/bilstm/local", *KNOWN),
    "sentences": ("tagging/bilstm/local", *KNOWN, "model.crf=true"),
    "trees": ("trees/bilstm/local", *KNOWN),
    "actions": ("trees/rnng/local", *KNOWN),
    "frames": ("joint/bilstm/local", *KNOWN),
    "frames of sentences": ("joint/bilstm/local", *KNOWN, "model.crf=true"),
    "answers": ("question/drqa/local",),
    "summaries": ("summarization/extractive-lstm/local", "train_data.lists=[]"),
    "targets": ("parsing/top/local", "model.dropout=0"),
    "smoothed targets": ("parsing/cogs/local", "task.label_smoothing=0.2"),
}
ROUNDED = ("loss", "perplexity")
UNWEIGHTED = ("spearman",)
"""Values of ranks, in which each row counts once."""
TEXTS = ["Ann met Bob", "so good", "New York is far away", "late", "Ann is late", "Bob is here"]
WEIGHTS = ["2", "1", "0", "0.5", "3", "1"]


def rows(weights=WEIGHTS):
    for number, (text, weight) in enumerate(zip(TEXTS, weights, strict=True)):
        words = text.split()
        tags = " ".join("B-per" if word in ("Ann", "Bob") else "O" for word in words)
        yield {
            **dict.fromkeys(("text", "words", "text1", "query", "context"), text),
            **dict.fromkeys(("text2", "positive", "question"), words[0]), "id": str(number),
            "negative": words[-1], "label": "odd" if number % 2 else "even",
            "score": str(number / 2), "source": f"{text}. It is late.",
            "target": f"[IN:{'AB'[number % 2]} {text}. It is late. ]", "tags": tags, "slots": tags,
            "answers": json.dumps([words[0]]), "answer_starts": "[0]", "weight": weight,
        }  # fmt: skip


Data = data_of([*rows()], batch_size=4)


def repeated(data):
    """Each row as often as its weight says, in halves: with a weight of one half."""
    return [{**row, "weight": "0.5"} for row in data for _ in range(int(2 * float(row["weight"])))]


def given(folder, *words):
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows()))
    columns = f"train_data.columns=[{', '.join(next(rows()))}]"
    paths = [f"{data}.path={path}" for data in ("train_data", "valid_data")]
    return [*paths, columns, "task.weight=weight", *words]


def made(folder, name, *words):
    experiment, *own = TASKS[name]
    return textmill.create_task(experiment, given(folder, *own, *words))


@pytest.fixture(params=TASKS)
def task(request, tmp_path):
    return made(tmp_path, request.param)


def stepped(task, data):
    """The loss of all rows in one step, and its gradient."""
    (batch,) = task.batches(Data(data, batch_size=99), train=True, seed=1)
    task.module.zero_grad()
    loss = task.training_step(batch)
    (loss.total / loss.count).backward()
    found = [p.grad for p in task.module.parameters() if p.grad is not None]
    return loss, torch.cat([grad.flatten() for grad in found])


@pytest.mark.parametrize("training", [True, False])
def test_a_step_is_that_of_rows_that_stand_there_so_often(task, training):
    task.module.train(training)
    for part in task.module.modules():
        if hasattr(part, "p"):
            part.p = 0.0  # dropout
    weighted, gradient = stepped(task, [*rows()])
    one_by_one, same = stepped(task, repeated(rows()))
    assert weighted.count == one_by_one.count > 0
    assert torch.allclose(weighted.total, one_by_one.total, rtol=1e-5)
    assert torch.allclose(gradient, same, rtol=1e-3, atol=1e-5)
    assert not torch.allclose(gradient, stepped(task, [*rows(["1"] * 6)])[1], rtol=1e-3, atol=1e-5)


def test_so_are_all_values_of_an_evaluation(task):
    weighted = evaluated(task, Data()).values
    one_by_one = evaluated(task, Data(repeated(rows()))).values
    exact = {n: v for n, v in weighted.items() if n not in ROUNDED + UNWEIGHTED}
    same = {name: one_by_one[name] for name in exact}
    assert exact == pytest.approx(same, rel=1e-12, nan_ok=True)
    assert weighted["loss"] == pytest.approx(one_by_one["loss"], rel=1e-5)


def test_slots_can_have_a_weight_of_their_own(tmp_path):
    task = made(tmp_path, "frames", "task.weight=null", "task.slot_weight=weight")
    task.module.eval()
    apart, _ = stepped(task, [*rows(["0"] * 6)])  # intents alone
    assert apart.count == 3  # half of six: what has no slots to learn counts half
    task = made(tmp_path, "frames", "task.slot_weight=id")
    task.module.eval()
    both, _ = stepped(task, [{**row, "id": "2"} for row in rows()])
    alike, _ = stepped(task, [{**row, "id": row["weight"]} for row in rows()])
    only = alike.total * 0
    for row in rows():
        one, _ = stepped(task, [{**row, "weight": "1", "id": "0"}])
        two, _ = stepped(task, [{**row, "weight": "0", "id": "1"}])
        only = only + float(row["weight"]) * one.total + 2 * two.total
    assert torch.allclose(both.total, only, rtol=1e-5)
    assert (both.count, alike.count) == ((7.5 + 12) / 2, 7.5)


def losses():
    """What gives the loss of rows with their weights, from random scores."""
    names, scores = ["O", "B-x", "I-x"], torch.randn(2, 4, 3)
    labels, real = torch.tensor([[0, 1, 2, 0], [1, 0, 0, 0]]), torch.ones(2, 4, dtype=torch.bool)
    single = CrossEntropyLoss.Config(weights={"O": 0.3}).build(names=names, multiple=False)
    several = BinaryCrossEntropy.Config().build(names=names, multiple=True)
    field = torch.nn.Module()
    field.crf = LinearChainCrf(names)
    heads = [TagHead(torch.nn.Module(), names), TagHead(field, names)]
    return [
        lambda at, w: Loss.of_rows(scores[at, 0, 0], w),
        lambda at, w: Loss.of(single(scores[at, 0], labels[at, 0], w), single),
        lambda at, w: Loss.of(several(scores[at, 0], real[at, :3].float(), w), several),
        *(lambda at, w, head=head: head.loss(scores[at], labels[at], real[at], None, w)
          for head in heads),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(5))
def test_the_sum_is_the_same_to_the_bit(number):
    torch.manual_seed(number)
    loss = losses()[number]
    twice = loss([0, 0], torch.ones(2))
    double = loss([0], torch.tensor([2.0]))
    assert torch.equal(twice.total, double.total)
    assert torch.equal(twice.count, double.count)
    assert torch.equal(loss([0, 1], torch.tensor([1.0, 0.0])).total, loss([0], None).total)


BAD = {
    "-1": "wanted a number of 0 or more, found '-1'",
    "much": "wanted a number, found 'much'",
    "nan": "wanted a finite number, found 'nan'",
    "1e39": "wanted a number that a float32 holds, found '1e39'",
}


@pytest.mark.parametrize("cell", BAD)
def test_a_bad_weight_is_named_by_its_row(cell, tmp_path):
    task = made(tmp_path, "label")
    with pytest.raises(DataError, match=f"Row 2, column 'weight': {BAD[cell]}"):
        evaluated(task, Data([*rows(["1", "1", cell, "1", "1", "1"])]))


def test_a_row_without_one_says_which_columns_there_are(tmp_path):
    without = [{"text": row["text"], "label": row["label"]} for row in rows()]
    with pytest.raises(DataError, match="Row 0 has no column 'weight'; its columns: text, label"):
        evaluated(made(tmp_path, "label"), Data(without))


def test_a_run_names_the_line_and_what_has_no_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refused(experiment, *words):
        with pytest.raises((DataError, UserError)) as caught:
            textmill.train(experiment, given(tmp_path, *words))
        return str(caught.value)

    wrong = refused("classification/docnn/local", "task.weight=target")
    assert wrong.startswith(f"{tmp_path / 'rows.jsonl'}:1: column 'target': wanted a number")
    unknown = refused("embedding/similarity/local")
    assert unknown == "task.weight: TextEmbedding has no weights of rows. Leave it out."
    solved = refused("classification/ngrams")
    assert "task.weight is for training by steps" in solved


def test_a_row_to_predict_needs_no_weight(task):
    assert "weight" in task.text.target_columns
    assert "weight" not in task.asked(next(rows()))


def test_a_prefix_of_an_answer_needs_none_either(tmp_path):
    task = made(tmp_path, "targets", "task.answer_prefix='[IN:A'")
    (answer,) = task.predict([{"source": "Ann met Bob"}])
    assert answer.text.startswith("[IN:A")


def test_the_linear_classifier_of_a_frame_is_fitted_to_weighted_rows(tmp_path):
    ngrams = "ngrams.type=fitted_ngrams"
    task = made(tmp_path, "frames", ngrams, "ngrams.columns=[text]", "ngrams.min_count=1")
    tables = []
    for data in ([*rows()], repeated(rows()), [*rows(["1"] * 6)]):
        task.batches(Data(data, batch_size=99), train=True, seed=1)
        task.initialize()
        tables.append(task.module.wide.table.clone())
    assert torch.allclose(tables[0], tables[1], atol=1e-3)
    assert not torch.allclose(tables[0], tables[2], atol=1e-2)


def test_an_ensemble_measures_by_the_weights_of_its_first_member(tmp_path):
    weighted = made(tmp_path, "label")
    plain = textmill.create_task(TASKS["label"][0], given(tmp_path, WORDS, "task.weight=null"))
    for tasks, support in (([weighted, plain], 1 + 0.5 + 1), ([plain, weighted], 3)):
        found = evaluated(ensemble_of(tasks), Data()).values
        assert found["label/odd/support"] == support
