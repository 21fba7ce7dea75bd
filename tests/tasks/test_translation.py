"""Translation: which references a source has, against sacrebleu by hand."""

import re

import pytest
import sacrebleu
import torch

from tests.tasks.conftest import ROWS, Plain
from tests.tasks.test_conformance import Data
from textmill.errors import UserError
from textmill.tasks import Translated, Translation, evaluate


class Canned(Translation):
    """Answers with the source's first reference, every second one spoilt: BLEU is not 0 or 100."""

    def generate(self, source, source_lengths):
        texts = self.text.decode(source.tolist())
        return [Translated(answer(text), -1.0) for text in texts]


def answer(source: str) -> str:
    target = next(row["target"] for row in ROWS if row["source"] == source)
    return target if len(source) % 2 else target.replace("le ", "la ").replace("Un", "Des")


@pytest.mark.parametrize("batching", [{"batch_size": 9}, {"max_tokens": 50}, {"batch_size": 1}])
def test_scores_are_those_of_sacrebleu_over_distinct_sources(make_task, batching):
    task = make_task(Canned)
    values = evaluate(task, task.batches(Data(**batching), train=False, seed=1)).values
    sources = list(dict.fromkeys(row["source"] for row in ROWS))
    references = [[r["target"] for r in ROWS if r["source"] == s] for s in sources]
    most = max(map(len, references))
    streams = [[many[i] if i < len(many) else None for many in references] for i in range(most)]
    texts = [answer(source) for source in sources]
    assert 5 < values["bleu"] < 95
    assert values["bleu"] == pytest.approx(sacrebleu.corpus_bleu(texts, streams).score)
    assert values["chrf"] == pytest.approx(sacrebleu.corpus_chrf(texts, streams).score)
    every = [answer(row["source"]) for row in ROWS]
    single = sacrebleu.corpus_bleu(every, [[row["target"] for row in ROWS]]).score
    assert values["bleu_single"] == pytest.approx(single)
    assert single < values["bleu"]


def test_the_first_row_of_a_source_has_the_references_of_all(make_task):
    found = [row["references"] for row in make_task().with_references(ROWS)]
    assert found[0] == ["Le chat dort.", "Le chat est en train de dormir."]
    assert found[3] == ["Va !", "Allez !", "Vas-y maintenant, mon ami !"]
    assert [found[i] for i in (2, 5, 7)] == [[], [], []]


def test_without_generation_only_the_loss_is_measured(make_task):
    task = make_task(generate=False)
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    assert sorted(found.values) == ["accuracy", "loss", "perplexity"]
    assert found.rows == []


def test_a_module_that_cannot_generate_is_refused_before_training(make_task, tokenizer):
    module = Plain(tokenizer.vocab_info.size)
    task = make_task(module=module)
    task.batches(Data(), train=True, seed=1)
    with pytest.raises(UserError, match=r"^Plain can be trained, but generates no text: it has no"):
        task.batches(Data(), train=False, seed=1)
    with pytest.raises(UserError, match=re.escape("Plain can be trained, but")):
        task.predict([{"source": "Go."}])


def test_a_module_that_is_not_ours_generates_by_the_same_steps(make_task, make_module):
    """A wrapper with the five methods alone: no subclass, no hidden states."""

    class Wrapped(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.max_length = inner, inner.max_length
            self.encode, self.start, self.step = inner.encode, inner.start, inner.step

        def forward(self, source, source_lengths, target_in):
            return self.inner(source, source_lengths, target_in)

    inner = make_module()
    ours, wrapped = make_task(module=inner), make_task(module=Wrapped(inner))
    one = evaluate(ours, ours.batches(Data(), train=False, seed=1))
    two = evaluate(wrapped, wrapped.batches(Data(), train=False, seed=1))
    # By another way through torch, so sums may differ in their last digit, as by the processor.
    scores = [[row.pop("score") for row in found.rows] for found in (two, one)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)
    assert two.rows == one.rows
    assert two.values == pytest.approx(one.values, rel=1e-5)


def test_a_target_that_is_too_long_counts_as_a_reference_but_not_in_the_loss(make_task):
    """Only a source over the limit leaves a row out of the scores of translations."""
    rows = [{"source": "The cat sleeps. " * 6, "target": "Le chat dort."}, *ROWS]
    whole = make_task(Canned)
    lengths = whole.text.encode(ROWS, with_targets=True)["target"].lengths
    limit = int(sorted(lengths)[5])
    over = [i for i, length in enumerate(lengths) if length > limit]
    assert 0 < len(over) < 5
    short = [row for i, row in enumerate(ROWS) if i not in over]
    task = make_task(Canned, over_length="skip", max_source_length=40, max_target_length=limit)
    for size in (100, 1):  # 1: batches in which no target counts
        found = evaluate(task, task.batches(Data(rows, batch_size=size), train=False, seed=1))
        all_rows = evaluate(whole, whole.batches(Data(batch_size=size), train=False, seed=1))
        of_short = evaluate(whole, whole.batches(Data(short, batch_size=size), train=False, seed=1))
        for name in ("bleu", "chrf", "bleu_single"):
            assert found.values[name] == all_rows.values[name], name
        for name in ("loss", "perplexity", "accuracy"):
            assert found.values[name] == pytest.approx(of_short.values[name], rel=1e-5), name
        assert [row["row"] - 1 for row in found.rows] == [row["row"] for row in all_rows.rows]
        left_out = "1 of 10 rows left out: more than 40 tokens of 'source' or "
        assert found.details["over_length"].startswith(left_out)
        assert found.details["loss"] == (
            f"{len(over)} of 10 rows do not count in the loss: more than {limit} tokens of "
            "'target'."
        )
