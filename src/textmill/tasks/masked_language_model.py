"""Masked language modeling: the tokens of a text that a mask hides, from those around them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.data.block_batches import BlockBatch
from textmill.data.masking import MaskedBlocks, Masking
from textmill.errors import UserError
from textmill.metrics.metric import Metric
from textmill.metrics.streaming import Accuracy, Perplexity, SumCount
from textmill.models.masked_language_model import MaskedLanguageModel
from textmill.tasks import registries
from textmill.tasks.batches.text_blocks import RowSums, Sums, closed, counted, read_text, token_loss
from textmill.tasks.evaluation import inference
from textmill.tasks.task import Batches, Loss, Metrics, Outputs, Row, Task
from textmill.text.cells import Rows
from textmill.text.processors.language_model import MASK, Filled, FoundTokens, MaskedText
from textmill.text.tokenizers.tokenizer import Tokenizer

LABELS = 256
"""Targets scored at once in an evaluation: 34 MB over a vocabulary of 33,000."""
PREDICTION_TEXTS = 64
"""Texts answered together."""


class Judged(NamedTuple):
    """What a model judges beside masked tokens, of a batch."""

    logits: Tensor
    truth: Tensor  # 1.0 or 0.0, of the same shape
    weight: float  # of each, times the share of masked tokens


@registries.tasks.register("masked_language_modeling")
class MaskedLanguageModeling(Task):
    """Learns to find the tokens of a text that are masked, and fills masks in.

    What it learns is a beginning for classifiers, taggers and others (``trainer.initialize``).
    Rows are one sequence. Only the states of tokens that are to be found are scored.

    A model can judge more: whether segments follow each other (``model.next_sentence``), and which
    tokens were replaced (``model.generator``). Their mean losses are added to that of the masks.

    Source: Devlin et al. 2019, "BERT", section 3.1; Clark et al. 2020, "ELECTRA", section 2.
    """

    class Config(BaseConfig):
        column: str = "text"
        """The column of the text."""
        block: int = 128
        """Tokens that are read together."""
        masking: Masking = Masking()
        """Which tokens are masked, and what replaces them."""
        top_k: int = 5
        """How many tokens an answer has for each mask."""
        replaced_weight: float = 50.0
        """How much the loss of replaced tokens counts beside that of the masks."""

        def __post_init__(self) -> None:
            require(self, "task", sizes=["block", "top_k"], positive=["replaced_weight"])

    config: Config
    text: MaskedText
    module: MaskedLanguageModel

    def __init__(
        self, config: Config, *, module: MaskedLanguageModel, tokenizer: Tokenizer
    ) -> None:
        self.config, self.module = config, module
        if not isinstance(module, MaskedLanguageModel):
            raise UserError(
                f"Masked language modeling needs a MaskedLanguageModel, but the module is a "
                f"{type(module).__name__}. Set model.type=masked_language_model."
            )
        most = module.max_length
        if most is not None and config.block > most:
            raise UserError(
                f"task.block is {config.block}, but the model has positions for {most} tokens. "
                "Raise model.encoder.max_length, or lower task.block."
            )
        self.text = MaskedText.of(tokenizer, column=config.column)
        self.row_sums = RowSums()

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        if isinstance(data, Batches):
            return data
        ids, rows, blocking, mixture = read_text(self, data, train=train, seed=seed)
        return MaskedBlocks(
            ids,
            rows,
            replace(blocking, says_parts=self.module.rows_apart),
            masking=self.config.masking,
            pieces=self.text.pieces,
            train=train,
            mixture=mixture,
            segments=self.module.next_sentence is not None,
            draws=self.module.replaced is not None,
        )

    @override
    def training_step(self, batch: BlockBatch, examples: Rows = ()) -> Loss:
        states, targets, judged = self._read(batch)
        masks = token_loss(self.module, states, targets, on_cpu=self.device.type == "cpu")
        return self._with_judged(masks, judged)

    def _read(self, batch: BlockBatch) -> tuple[Tensor, Tensor, dict[str, Judged]]:
        """The states of the tokens to be found, :math:`(N,H)`, these, :math:`(N)`, and the rest."""
        batch, module = batch.to(self.device, non_blocking=True), self.module
        states = module.hidden(batch.inputs, parts=batch.parts)
        found, targets = counted(states, batch)
        judged = dict[str, Judged]()
        if module.replaced is not None and batch.draws is not None:
            with torch.no_grad():
                each = zip(found.split(LABELS), batch.draws.split(LABELS), strict=True)
                drawn = torch.cat([module.drawn(*part) for part in each])
            places = torch.ones_like(batch.targets).bool() if (c := batch.counted) is None else c
            read = batch.targets.masked_scatter(places, drawn)
            states = module.read(module.encoder, read, None, batch.parts)
            replaced = (read != batch.targets).float()
            logits = module.replaced(states)[..., 0]
            judged["replaced"] = Judged(logits, replaced, self.config.replaced_weight)
        if batch.follows is not None and batch.parts is not None:
            follows = module.follows(states, batch.parts)
            judged["next_sentence"] = Judged(follows, batch.follows, batch.inputs.shape[1])
        return found, targets, judged

    def _with_judged(self, masks: Loss, judged: Mapping[str, Judged]) -> Loss:
        """The loss of the masks with those of what else is judged.

        Each is a sum, times how many tokens are masked for each that it is of: so the mean over
        masked tokens is the sum of all means, and does not depend on how a step is divided.
        """
        total, sums = masks.total, dict(masks.sums)
        for name, (logits, truth, weight) in judged.items():
            loss = F.binary_cross_entropy_with_logits(logits.float(), truth, reduction="sum")
            added = loss * weight * self.config.masking.share
            total, sums = total + added, {**sums, name: added.detach()}
        if judged:
            sums["masked"] = masks.total.detach()
        return Loss(total, masks.count, sums)

    @override
    def validation_step(self, batch: BlockBatch, examples: Rows) -> Outputs:
        states, targets, judged = self._read(batch)
        nats, right = torch.zeros(2, len(targets), dtype=torch.float64)
        for start in range(0, len(targets), LABELS):
            part = slice(start, start + LABELS)
            logits = self.module.project(states[part]).float()
            nats[part] = F.cross_entropy(logits, targets[part], reduction="none").double().cpu()
            right[part] = (logits.argmax(-1) == targets[part]).double().cpu()
        whole = self.row_sums.add(batch, nats.numpy(), right.numpy())
        answers = {place: _found_tokens(*sums) for place, sums in whole.items()}
        count = torch.tensor(float(len(targets)))
        shares = {"masked_accuracy": (right.sum(), count)}
        for name, (logits, truth, _) in judged.items():
            shares |= {
                f"{name}_{share}": of for share, of in _shares(logits > 0, truth > 0).items()
            }
        sums = {name: part for name, (part, _) in shares.items()}
        sums |= {f"{name}_of": whole for name, (_, whole) in shares.items()}
        masks = Loss(nats.sum(), count, {**sums, "masked": nats.sum()})
        return Outputs(self._with_judged(masks, judged), answers)

    def unfinished(self) -> dict[int, Sums]:
        """What this rank has of rows whose blocks others have, too."""
        return self.row_sums.take_open()

    def finished(self, parts: Sequence[Mapping[int, Sums]]) -> Mapping[int, Any]:
        """What was found of each row whose parts the ranks have."""
        return {row: _found_tokens(*sums) for row, sums in closed(parts).items()}

    @override
    def loss_metrics(self) -> dict[str, Metric]:
        shares = ["masked_accuracy"]
        if self.module.next_sentence is not None:
            shares.append("next_sentence_accuracy")
        if self.module.replaced is not None:
            shares += [f"replaced_{name}" for name in ("accuracy", "precision", "recall", "f1")]
        made: dict[str, Metric] = {**super().loss_metrics(), "perplexity": Perplexity()}
        for name in shares:
            is_f1 = name.endswith("f1")
            made[name] = SumCount(name, better="higher") if is_f1 else Accuracy(name)
        return made

    @override
    def aggregate(self, metrics: Metrics, outputs: Outputs, examples: Rows) -> None:
        super().aggregate(metrics, outputs, examples)
        sums = outputs.loss.sums
        metrics["perplexity"].update(sums["masked"], outputs.loss.count)
        for name, metric in metrics.items():
            if name in sums:
                metric.update(sums[name], sums[f"{name}_of"])

    @override
    def predict(self, rows: Sequence[Row]) -> list[Filled]:
        given = [row[self.config.column] for row in rows]
        ids = self.text.masked(given, longest=self.module.finder.max_length)
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        found: dict[int, Filled] = {}
        with inference(self.module):
            for start in range(0, len(order), PREDICTION_TEXTS):
                chosen = order[start : start + PREDICTION_TEXTS]
                fills = self.text.decode(self._likeliest([ids[row] for row in chosen]))
                for row, masks in zip(chosen, fills, strict=True):
                    found[row] = self.text.filled(given[row], masks)
        return [found[row] for row in range(len(rows))]

    def _likeliest(self, texts: Sequence[Sequence[int]]) -> Iterator[tuple[Any, Any]]:
        """Of each text ids and probabilities of the likeliest tokens at its masks."""
        pad, width = self.text.tokenizer.vocab_info.pad_idx, max(map(len, texts))
        padded = np.array([[*ids, *[pad] * (width - len(ids))] for ids in texts], np.int64)
        read = torch.from_numpy(padded).to(self.device)
        lengths = torch.tensor([len(ids) for ids in texts], device=self.device)
        is_mask = read == self.text.mask_idx
        states = self.module.hidden(read, lengths)[is_mask]
        plain = torch.from_numpy(self.text.pieces.plain).to(self.device)
        count = min(self.config.top_k, int(plain.sum()))
        scores, ids = [], []
        for part in states.split(LABELS):
            logits = self.module.project(part).float().masked_fill(~plain, -torch.inf)
            best = logits.softmax(-1).topk(count)
            scores.append(best.values.cpu())
            ids.append(best.indices.cpu())
        masks = is_mask.sum(1).tolist()
        return zip(torch.cat(ids).split(masks), torch.cat(scores).split(masks), strict=True)

    @override
    def asked(self, row: Row) -> Row:
        return {self.config.column: " ".join([*row[self.config.column].split()[:-1], MASK])}

    @override
    def check(self, row: Row) -> None:
        self.text.masked([row[self.config.column]], longest=self.module.finder.max_length)


def _shares(said: Tensor, true: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """What is said of things that are true or not: shares by name, as a part and its whole."""
    both, positive = (said & true).sum(), said.sum() + true.sum()
    return {
        "accuracy": ((said == true).sum(), torch.tensor(true.numel())),
        "precision": (both, said.sum()),
        "recall": (both, true.sum()),
        "f1": (2 * both, positive),
    }


def _found_tokens(nats: float, right: float, tokens: float) -> FoundTokens:
    return FoundTokens(nats=nats, tokens=int(tokens), found=round(right))
