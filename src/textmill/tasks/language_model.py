"""Language modeling: the next token of a text from those before it."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.batching import Batching, plan_epoch
from textmill.data.block_batches import BlockBatch, TextBlocks
from textmill.errors import UserError
from textmill.metrics.metric import Metric
from textmill.metrics.streaming import BitsPerByte, Perplexity
from textmill.models.decoding.decode import decode
from textmill.models.decoding.search_settings import Decoding
from textmill.models.language_model import LanguageModel
from textmill.tasks import registries
from textmill.tasks.batches.text_blocks import (
    Carried,
    RowSums,
    Sums,
    closed,
    counted,
    read_text,
    token_loss,
)
from textmill.tasks.evaluation import inference
from textmill.tasks.task import AnsweredConfig, Batches, Loss, Metrics, Outputs, Row, Task
from textmill.text.cells import Rows
from textmill.text.processors.language_model import Continued, LanguageText, MeasuredText
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import Tokenizer

LOG = logging.getLogger("textmill")

PREDICTION_TOKENS = 4096
"""Padded tokens of texts that are gone on with together, with what is added."""

LABELS = 256
"""Targets scored at once in an evaluation: 34 MB over a vocabulary of 33,000."""

LOOKED_AT = 200
"""Rows of an evaluation that are decoded again: enough to see a tokenizer that loses text."""


@registries.tasks.register("language_modeling")
class LanguageModeling(Task):
    """Learns rows of text as one sequence, measures how well it expects text, and goes on with it.

    Every token and every row's end is a target, the first one too: it follows a row's end, or the
    mark that the tokenizer begins texts with, which is read in place of the end before it.
    """

    class Config(AnsweredConfig):
        column: str = "text"
        """The column of the text."""
        block: int = 64
        """Tokens of a place of the text in one step. What came before them is known by the state
        that is carried on, or not at all."""
        stateful: bool | None = None
        """Whether batches are streams that go on where the one before ended, and the model's state
        goes with them (gradients do not); null: if the model has a state."""
        stride: int | None = None
        """In an evaluation without carried state: how far a block begins after the one before it.
        Below ``block`` every token has a longer past, for more time; null is ``block``."""
        until: Literal["row", "length"] = "row"
        """What ends an answer: the end of a row; or only ``decoding.max_length_b``, since rows are
        lines of one text. A line end in a given text is then the end of a row."""
        decoding: Decoding = Decoding(max_length_a=0.0, max_length_b=100, sample=True)
        """How texts are gone on with; ``max_length_a`` counts the tokens of the given text. The
        unknown token is no text and never in an answer, whatever ``unknown_penalty`` is."""

        def __post_init__(self) -> None:
            require(self, "task", sizes=["block", "stride"])
            if self.stride is not None and self.stride > self.block:
                raise UserError(
                    f"task.stride must be at most task.block ({self.block}), but is {self.stride}."
                )
            if self.until == "length" and self.decoding.min_length:
                raise UserError(
                    "task.decoding.min_length bans the end of a row, which ends no answer with "
                    "task.until=length. Leave one of them out."
                )

    config: Config
    text: LanguageText
    module: LanguageModel

    def __init__(self, config: Config, *, module: LanguageModel, tokenizer: Tokenizer) -> None:
        self.config, self.module = config, module
        if not isinstance(module, LanguageModel):
            raise UserError(
                f"Language modeling needs a textmill.models.language_model.LanguageModel, but the "
                f"module is a {type(module).__name__}. Set model.type=lstm_language_model, "
                "transformer_language_model or pretrained_language_model."
            )
        self.text = LanguageText.of(tokenizer, column=config.column)
        self.stateful = module.carries_state if config.stateful is None else config.stateful
        self._check(type(module).__name__)
        self.carried, self.carried_apart, self.row_sums = Carried(), Carried(), RowSums()

    def _check(self, name: str) -> None:
        """Refuses settings that the model cannot do, and says which is of no effect."""
        config, most = self.config, self.module.max_length
        if (penalty := config.decoding.unknown_penalty) not in (0, math.inf):
            LOG.info(
                f"task.decoding.unknown_penalty={penalty:g} is of no effect: the unknown token is "
                "never in an answer of a language model."
            )
        if self.stateful and not self.module.carries_state:
            raise UserError(
                f"task.stateful is true, but a {name} carries no state from block to block. Leave "
                "it out, or set model.type=lstm_language_model."
            )
        if self.stateful and config.stride is not None:
            raise UserError(
                "task.stride is for blocks that stand alone, but the model's state is carried on: "
                "every token has its whole past. Leave it out, or set task.stateful=false."
            )
        if config.until == "length" and self.module.rows_apart:
            raise UserError(
                "task.until=length goes on over line ends, but model.rows_apart=true lets a line "
                "know of itself alone. Set task.until=row, or leave model.rows_apart out."
            )
        if self.text.begin_idx != self.text.eos_idx and (
            config.until == "length" or self.module.rows_apart
        ):
            given = "model.rows_apart=true" if self.module.rows_apart else "task.until=length"
            raise UserError(
                f"{given} is for rows that begin with the end of the one before, but the tokenizer "
                "begins texts with a mark of its own. Leave it out."
            )
        if config.block > most:
            own = getattr(self.module, "config", None)
            sets = hasattr(own, "max_length") and not getattr(own, "pretrained", None)
            raise UserError(
                f"task.block is {config.block}, but the model has positions for {most} tokens. "
                f"{'Raise model.max_length, or lower' if sets else 'Lower'} task.block."
            )

    @property
    @override
    def parts(self) -> dict[str, Any]:
        return {"carried": self.carried} if self.stateful else {}

    @override
    def rolled_back(self) -> None:
        """Forgets the state: it is of a text that ends elsewhere than the next one begins."""
        self.carried.keep(None)

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        if isinstance(data, Batches):
            return data
        ids, rows, blocking, mixture = read_text(self, data, train=train, seed=seed)
        stride = None if train else self.config.stride
        blocking = replace(blocking, streams=self.stateful, stride=stride)
        details = {} if train else self._notes_on_bits(rows, ids)
        before = self.text.begin_idx
        return TextBlocks(ids, rows, blocking, before=before, mixture=mixture, details=details)

    def _notes_on_bits(self, rows: Sequence[Row], ids: Ragged) -> dict[str, str]:
        """Notes on the bits a byte where the tokens do not hold all of the text."""
        notes = []
        if unknown := int((ids.values == self.text.unk_idx).sum()):
            total = f"{len(ids.values):,}"
            notes.append(f"{unknown:,} of {total} tokens are unknown: their bytes are not scored.")
        looked = min(len(rows), LOOKED_AT)
        again = self.text.decode(ids[row][:-1] for row in range(looked))  # without the row's end
        given = [rows[row][self.config.column] for row in range(looked)]
        if changed := sum(a != b for a, b in zip(again, given, strict=True)):
            notes.append(
                f"The tokenizer changes the text of {changed:,} of the first {looked:,} rows "
                "(case, spaces, unknown words): the bytes are those of the text as given."
            )
        return {"bits_per_byte": " ".join(notes)} if notes else {}

    @override
    def training_step(self, batch: BlockBatch, examples: Rows = ()) -> Loss:
        states, targets = self._states(batch, self.carried)
        return token_loss(self.module, states, targets, on_cpu=self.device.type == "cpu")

    def _states(self, batch: BlockBatch, carried: Carried) -> tuple[Tensor, Tensor]:
        """The states of the counted targets, :math:`(N,D)`, and the targets, :math:`(N)`."""
        batch = batch.to(self.device, non_blocking=True)
        before = carried.into(batch, like=batch.inputs) if self.stateful else None
        inputs, begin, end = batch.inputs, self.text.begin_idx, self.text.eos_idx
        if begin != end:
            inputs = inputs.masked_fill(inputs == end, begin)
        states, after = self.module.hidden(inputs, before)
        if self.stateful:
            carried.keep(after)
        return counted(states, batch)

    @override
    def validation_step(self, batch: BlockBatch, examples: Rows) -> Outputs:
        states, targets = self._states(batch, self.carried_apart)
        parts = zip(states.split(LABELS), targets.split(LABELS), strict=True)
        nats = torch.cat(
            [F.cross_entropy(self.module.project(s).float(), t, reduction="none") for s, t in parts]
        )
        whole = self.row_sums.add(batch, nats.double().cpu().numpy())
        answers = {n: MeasuredText(nats, int(tokens)) for n, (nats, tokens) in whole.items()}
        loss = Loss(nats.double().sum(), torch.tensor(float(len(targets))))
        return Outputs(loss, answers)

    def unfinished(self) -> dict[int, Sums]:
        """What this rank has of rows whose blocks others have, too."""
        return self.row_sums.take_open()

    def finished(self, parts: Sequence[Mapping[int, Sums]]) -> Mapping[int, Any]:
        """How well each row was expected whose parts the ranks have."""
        return {n: MeasuredText(nats, int(tokens)) for n, (nats, tokens) in closed(parts).items()}

    @override
    def loss_metrics(self) -> dict[str, Metric]:
        return {**super().loss_metrics(), "perplexity": Perplexity()}

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        return {"bits": BitsPerByte()}

    @override
    def aggregate(self, metrics: Metrics, outputs: Outputs, examples: Rows) -> None:
        super().aggregate(metrics, outputs, examples)
        metrics["perplexity"].update(outputs.loss.total, outputs.loss.count)

    @override
    def measure(self, metrics: Metrics, answers: Sequence[MeasuredText], rows: Rows) -> None:
        """Adds rows with their bytes; the end of a row stands for a line end, one byte."""
        for found, row in zip(answers, rows, strict=True):
            metrics["bits"].update(found.nats, len(row[self.config.column].encode()) + 1)

    @override
    def predict(self, rows: Sequence[Row]) -> list[Any]:
        begun = self._begun(rows)
        decoding, lengths = self.config.decoding, np.array([len(ids) for ids in begun], np.int64)
        # What is generated takes memory too.
        whole = lengths + np.ceil(decoding.max_length_a * lengths).astype(np.int64)
        batching = Batching(max_tokens=PREDICTION_TOKENS, shuffle=False)

        found: dict[int, Continued] = {}
        with inference(self.module):
            for numbers in plan_epoch([whole + decoding.max_length_b], batching, seed=0, epoch=0):
                answers = self._continued([begun[i] for i in numbers])
                found.update(zip(numbers.tolist(), answers, strict=True))
        return [found[i] for i in range(len(rows))]

    def _continued(self, begun: Sequence[list[int]]) -> list[Continued]:
        width = max(map(len, begun))
        lengths = torch.tensor([len(ids) for ids in begun], device=self.device)
        source = torch.from_numpy(
            np.array([ids + [self.text.eos_idx] * (width - len(ids)) for ids in begun], np.int64)
        )
        found = decode(
            self.module,
            source.to(self.device),
            lengths,
            replace(self.config.decoding, unknown_penalty=math.inf),
            prefix=[self.text.begin_idx],
            eos_idx=self.text.eos_idx if self.config.until == "row" else -1,
            unk_idx=self.text.unk_idx,
            forced=begun,
        )
        hypotheses = [[(one.ids, one.score) for one in each] for each in found]
        return self.text.continued(begun, hypotheses)

    def _begun(self, rows: Sequence[Row]) -> list[list[int]]:
        texts, most = [row[self.config.column] for row in rows], self.module.max_length - 1
        return self.text.begun(texts, lines=self.config.until == "length", longest=most)

    @override
    def check(self, row: Row) -> None:
        self._begun([row])
