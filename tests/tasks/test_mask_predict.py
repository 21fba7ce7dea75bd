"""Parsing by mask-predict: what is masked and learned, and what answers can be asked for."""

import pytest
import torch
from torch.nn import functional as F

from tests.tasks.conftest import ROWS
from tests.tasks.rows import data_of, evaluated, learn
from tests.training.bench import Bench, prove
from textmill.errors import DataError, UserError
from textmill.exported.row_predictor import AnswerOptions
from textmill.inference import Predictor
from textmill.inference.export.folder import refuse_unsupported
from textmill.models.decoders.mask_predict import MaskPredict
from textmill.models.decoding.mask_predict import MaskPredictDecoding
from textmill.tasks.generation import SemanticParsing
from textmill.tasks.mask_predict import MaskPredictParsing

Data = data_of(ROWS, batch_size=100)


@pytest.fixture
def make_parser(tokenizer, make_task):
    def make(model=(), **settings):
        torch.manual_seed(0)
        module = MaskPredict.Config(**{
            "dim": 32, "num_heads": 2, "ffn_dim": 64, "dropout": 0.0, "max_length": 64,
            "num_encoder_layers": 1, "num_decoder_layers": 1, **dict(model),
        }).build(tokenizer=tokenizer)  # fmt: skip
        return make_task(MaskPredictParsing, module, **settings)

    return make


def batch_of(task, rows=ROWS):
    (batch,) = task.batches(Data(rows), train=True, seed=1)
    return batch


@pytest.fixture
def masks(monkeypatch):
    """What was masked, each time."""
    seen, read = [], MaskPredict.read

    def spied(self, ids, masked, *others):
        seen.append(masked)
        return read(self, ids, masked, *others)

    monkeypatch.setattr(MaskPredict, "read", spied)
    return seen


@pytest.mark.parametrize(("share", "whole"), [(0.0, 1 / 8), (0.4, 0.4 + 0.6 / 8), (1.0, 1.0)])
def test_the_number_of_masked_tokens_is_uniform(make_parser, masks, share, whole):
    task = make_parser(all_masked=share)
    ids = torch.randint(10, 60, (2000, 8))
    batch = batch_of(task)
    batch = type(batch).from_padded(ids[:, :2], torch.cat([ids[:, :1], ids], 1), pad_idx=-1)
    with torch.no_grad():
        task.training_step(batch)
    counts = torch.bincount(masks[0].sum(dim=1), minlength=9) / 2000
    expected = [0.0, *[(1 - whole) / 7] * 7, whole]
    assert counts.tolist() == pytest.approx(expected, abs=0.04)
    if share < 1:  # each place as often as any other
        assert masks[0].float().mean(dim=0).tolist() == pytest.approx(
            [float(masks[0].float().mean())] * 8, abs=0.05
        )


@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_torch_s_of_tokens_and_lengths(make_parser, copies, smoothing):
    task = make_parser({"copies": copies}, label_smoothing=smoothing)
    module, total, count = task.module, 0.0, 0
    for row in ROWS:  # one by one: nothing is padded
        batch = batch_of(task, [row])
        labels = module.with_copies(batch.labels, batch.source)
        lengths, masked = batch.target_lengths, torch.ones_like(labels, dtype=torch.bool)
        memory = module.encode(batch.source, None)
        moves = module.move_scores(memory)
        places, known = module.moved(moves), torch.zeros_like(batch.source, dtype=torch.bool)
        for place, label in enumerate(labels[0].tolist()):
            if label >= module.size:
                places[0, label - module.size], known[0, label - module.size] = place, True
        places[0, -1], known[0, -1] = labels.shape[1] - 1, True
        decoded = module.read(labels * 0, masked, lengths, memory, places)
        scores = module.scores(decoded, masked, memory)
        right = (places - torch.arange(places.shape[1]) + module.config.longest_move)[known]
        for each, wanted in ((scores, labels[0]), (moves[known], right)):
            total += F.cross_entropy(each, wanted, label_smoothing=smoothing, reduction="sum")
        count += labels.shape[1]
    loss = task.measured_loss(batch_of(task))
    assert loss.count == count
    torch.testing.assert_close(loss.total, total, rtol=1e-4, atol=1e-3)


def test_it_learns_its_rows_and_answers_them_alone_as_together(make_parser):
    rows = [ROWS[i] for i in (0, 1, 3)]
    task = make_parser(decoding=MaskPredictDecoding(iterations=2), all_masked=0.5)
    learn(task, task.batches(Data(rows), train=True, seed=1), epochs=100, lr=0.01)
    evaluation = evaluated(task, Data(rows, batch_size=2))
    assert evaluation.values["exact_match"] == evaluation.values["length_accuracy"] == 1
    predict = Predictor(task)
    answers = predict([row["source"] for row in rows])
    assert [answer.text for answer in answers] == [row["target"] for row in rows]
    for row, answer in zip(rows, answers, strict=True):
        alone = predict(row["source"])
        assert alone.text == answer.text
        assert alone.score == pytest.approx(answer.score, abs=1e-4)
        assert not alone.alternatives
    two = predict.with_options(AnswerOptions(n_best=3))([row["source"] for row in rows])
    assert {len(answer.alternatives) for answer in two} == {2}


def test_words_that_were_never_written_are_not_answered(make_parser):
    task = make_parser()
    task.training_step(batch_of(task))
    (batch,) = task.batches(Data(), train=True, seed=1)
    labels = task.module.with_copies(batch.labels, batch.source)
    written = set(task.module.written.nonzero()[:, 0].tolist())
    assert written
    assert written <= set(labels.flatten().tolist())


def test_a_killed_run_is_resumed_bitwise(tokenizer, tmp_path):
    task = {"all_masked": 0.2, "decoding": MaskPredictDecoding(iterations=2)}
    bench = Bench(
        folder=tmp_path, tokenizer=tokenizer, task_class=MaskPredictParsing, model=MaskPredict,
        task=task,
    )  # fmt: skip
    prove(bench, steps=(4, 7))


def test_what_it_cannot_do_is_said(make_parser, make_task, make_module):
    parser = make_parser()
    with pytest.raises(UserError, match=r"the model is a Transformer. Set model.type=mask_predict"):
        make_task(MaskPredictParsing, make_module())
    other = make_task(SemanticParsing, parser.module)
    with pytest.raises(UserError, match=r"set task.type=mask_predict_parsing"):
        batch_of(other)
    with pytest.raises(UserError, match=r"^task.answer_prefix is 'Le', but all tokens"):
        make_parser(answer_prefix="Le")
    with pytest.raises(DataError, match=r"^'prefix' is given, but all tokens"):
        Predictor(parser)([{"source": "Go.", "prefix": "Va"}])
    for name in ("onnx", "ctranslate2", "huggingface"):
        with pytest.raises(UserError, match=r"[Uu]se the run itself"):
            refuse_unsupported(parser, name)
