"""Extractive question answering: the part of a context that answers a question, or none."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.errors import DataError, UserError
from textmill.exported.forward import Forward, WindowForward
from textmill.metrics.accumulators import SquadScores as AnswerScores
from textmill.metrics.metric import Metric
from textmill.models.readers.answer_spans import (
    SpanScores,
    Windows,
    best_spans,
    right_spans,
    windows_of,
)
from textmill.tasks import registries
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.task import Loss, Metrics, Row
from textmill.text.cells import Rows
from textmill.text.features.passages import read_passages
from textmill.text.features.spelling import Characters
from textmill.text.processors.question_answering import (
    AnswerTokens,
    FoundAnswer,
    GoldAnswers,
    QuestionText,
)
from textmill.text.tokenizers.tokenizer import Tokenizer

WINDOWS = 64
"""Windows read together in prediction: memory does not grow with a context."""


@registries.tasks.register("question_answering")
class QuestionAnswering(ColumnsTask):
    """Finds the answer to a question in a context, or abstains.

    A long context is read in windows that overlap; the scores of a token are those of the window
    in which it has most around it, and the most probable span of the whole context is the answer.

    The module is called as ``module(question, lengths, context, lengths, matches)``, with the
    characters of both texts after them if the recipe has them, and gives
    :class:`~textmill.models.readers.answer_spans.SpanScores`. Its attribute ``no_answer``, if it
    has one, says whether a question can have none. Its method ``check_lengths(question, context)``,
    if it has one, refuses numbers of tokens that it does not take.

    The loss of a question is the negative log probability that its answer is a right one (Clark and
    Gardner 2018, "Simple and Effective Multi-Paragraph Reading Comprehension", section 3.3: the sum
    over all of them, shared by the windows of a context).
    """

    class Config(ColumnsTask.Config):
        question: str = "question"
        """The column of the question."""
        context: str = "context"
        """The column of the text that has the answer."""
        answers: str = "answers"
        """The column of the right answers: a list of texts, or a list as JSON; empty if the
        question has no answer. Or an object with the lists text and answer_start, as Hugging Face
        has them."""
        answer_starts: str = "answer_starts"
        """The column of the characters they begin at in the context, from 0: a list likewise."""
        max_question_length: int = 64
        """Most tokens of a question."""
        over_length: Literal["truncate", "skip", "error"] = "truncate"
        """What becomes of a row whose question has more tokens: the question is cut, in prediction
        too; or the row is left out of training and evaluation, and counted; or it is an error."""
        max_length: int = 400
        """Most tokens of a window over a context."""
        stride: int = 200
        """Tokens from the beginning of a window to that of the next."""
        max_answer_length: int = 20
        """Most tokens of a predicted answer."""
        no_answer_threshold: float = 0.0
        """Margin by which log p(no answer) must exceed the best span's for the model to give no
        answer (model.no_answer). A lower one gives no answer more often."""

        def __post_init__(self) -> None:
            require(
                self,
                "task",
                sizes=["max_question_length", "max_length", "stride", "max_answer_length"],
            )
            if self.stride > self.max_length:
                raise UserError(
                    f"task.stride must be at most task.max_length ({self.max_length}), or what is "
                    f"between two windows is never read; it is {self.stride}."
                )

        @override
        def row_check(self, labels: Any = None) -> GoldAnswers:
            return GoldAnswers(self.context, self.answers, self.answer_starts)

    text: QuestionText
    length_settings = "task.max_question_length"

    def __init__(
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        characters: Characters | None = None,
    ) -> None:
        super().__init__(config, module=module)
        self.text = QuestionText.of(
            tokenizer,
            question=config.question,
            context=config.context,
            answers=config.answers,
            starts=config.answer_starts,
            max_question_length=config.max_question_length,
            characters=characters,
            weights=self.with_weights({}),
        )
        self.text.always_answers = not getattr(module, "no_answer", True)

    @override
    def check_lengths(self) -> None:
        if check := getattr(self.module, "check_lengths", None):
            check(self.config.max_question_length, self.config.max_length)

    @override
    def row_notes(self, rows: Sequence[Row], *, train: bool) -> dict[str, str]:
        self._check_answers(rows)
        off, every, first = self.text.off_tokens(rows)
        note = (
            f"{off} of {every} answers in '{self.config.answers}' do not begin and end with a "
            f"token, the first in row {first}. Training takes the whole tokens; no prediction is "
            "exactly such an answer."
        )
        return {"off_tokens": note} if off else {}

    def _check_answers(self, rows: Sequence[Row]) -> None:
        if not self.text.always_answers:
            return
        none = [number for number, row in enumerate(rows) if not self.text.gold(row, number=number)]
        if none:
            raise DataError(
                f"{len(none)} of {len(rows)} questions have no answer in '{self.config.answers}', "
                f"the first in row {none[0]}, but the model always gives one. Set "
                "model.no_answer=true."
            )

    @override
    def scores(self, batch: ColumnBatch) -> SpanScores:
        context, lengths = batch["context"], batch.lengths["context"]
        width, size = max(context.shape[1], 1), self.config.max_length
        if context.shape[1] <= size:
            return _padded(self._read(batch, None), width)
        windows = windows_of(lengths, size=size, stride=self.config.stride)
        parts = _parts(windows, len(windows.rows) if torch.is_grad_enabled() else WINDOWS)
        found = [_padded(self._read(batch, part), size) for part in parts]
        start, end = (
            windows.joined(torch.cat(each), width)
            for each in zip(*((one.start, one.end) for one in found), strict=True)
        )
        none = [one.none for one in found if one.none is not None]
        return SpanScores(start, end, windows.least(torch.cat(none)) if none else None)

    def _read(self, batch: ColumnBatch, windows: Windows | None) -> SpanScores:
        given, lengths = dict(batch.columns), dict(batch.lengths)
        if windows is not None:
            for role, column in self.text.inputs.items():
                if role.startswith("question"):
                    given[role] = given[role][windows.rows]
                else:
                    given[role] = windows.cut(given[role], pad=column.pad)
            lengths["question"] = lengths["question"][windows.rows]
            lengths["context"] = windows.lengths
        inputs = [
            *(part for role in ("question", "context") for part in (given[role], lengths[role])),
            given["matches"],
            *(given[role] for role in self.text.inputs if role.endswith("characters")),
        ]
        out: SpanScores = self.module(*inputs)
        return out

    @override
    def loss(self, scores: SpanScores, batch: ColumnBatch) -> Loss:
        start, end, none = scores.log_probabilities(_real(scores, batch))
        answers = batch["answers"]
        right = right_spans(start, end, answers)
        has = batch.lengths["answers"] > 0
        chance = right if scores.none is None else torch.where(has, right, none)
        return Loss.of_rows(-chance, self.weights(batch))

    @override
    def answers(self, scores: SpanScores, batch: ColumnBatch) -> list[AnswerTokens]:
        real = _real(scores, batch.to(scores.start.device))
        start, end, none = scores.log_probabilities(real)
        best = best_spans(start, end, most=self.config.max_answer_length)
        without = (none - best.score > self.config.no_answer_threshold) | ~real.any(dim=1)
        chance = torch.where(without, none, best.score).exp()
        rows = (
            best.first.masked_fill(without, -1),
            best.last.masked_fill(without, -1),
            chance,
            none.exp(),
        )
        return self.text.decode(zip(*(part.tolist() for part in rows), strict=True))

    @property
    @override
    def exported_forward(self) -> Forward:
        config = self.config
        return WindowForward(
            size=config.max_length,
            stride=config.stride,
            longest=config.max_answer_length,
            threshold=config.no_answer_threshold,
            pads={role: column.pad for role, column in self.text.inputs.items()},
        )

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        return tuple(part for part in self._read(batch, None) if part is not None)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        return {"answers": AnswerScores()}

    @override
    def measure(self, metrics: Metrics, answers: Sequence[FoundAnswer], rows: Rows) -> None:
        gold = [[text for text, _ in self.text.gold(row)] for row in rows]
        metrics["answers"].update([str(answer) for answer in answers], gold)

    @override
    def read_batch(self, batch: ColumnBatch) -> list[dict[str, Any]]:
        rows = super().read_batch(batch)
        if "answers" in batch:
            for row, n, spans in zip(
                rows, batch.lengths["answers"].tolist(), batch["answers"].tolist(), strict=True
            ):
                text = row[self.config.context]
                places = read_passages(self.text.tokenizer, [text])[0].places
                found = [(places[first][0], places[last][1]) for first, last in spans[:n]]
                row[self.config.answers] = [text[start:end] for start, end in found]
                row[self.config.answer_starts] = [start for start, _ in found]
        return rows


def _real(scores: SpanScores, batch: ColumnBatch) -> Tensor:
    """True at the tokens of contexts. *Shape:* :math:`(B,L)`."""
    place = torch.arange(scores.start.shape[1], device=scores.start.device)
    return place < batch.lengths["context"][:, None]


def _padded(scores: SpanScores, width: int) -> SpanScores:
    start, end = (F.pad(part, (0, width - part.shape[1])) for part in scores[:2])
    return SpanScores(start, end, scores.none)


def _parts(windows: Windows, most: int) -> list[Windows]:
    split = (part.split(most) for part in (windows.rows, windows.begins, windows.lengths))
    return [Windows(*parts) for parts in zip(*split, strict=True)]
