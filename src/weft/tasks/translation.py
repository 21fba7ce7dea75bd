"""Translation: sequence to sequence, judged by BLEU and chrF of generated text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from typing_extensions import override

from weft.config import registries
from weft.data.seq2seq import Seq2SeqBatch
from weft.metrics.metric import Metric
from weft.metrics.translation import Bleu, ChrF
from weft.tasks.modules import generator_of
from weft.tasks.row_batches import RowBatches
from weft.tasks.seq2seq import Seq2Seq
from weft.tasks.task import Batches, Outputs, Row

__all__ = ["Translation"]


@registries.tasks.register("translation")
class Translation(Seq2Seq):
    """Translates text; evaluated by its loss, and by sacreBLEU and chrF of generated text.

    A source that stands on several rows with different targets is translated once and scored
    against all of them (``bleu``, ``chrf``); ``bleu_single`` scores every row against its own
    target alone.
    """

    class Config(Seq2Seq.Config):
        """Settings of the task."""

        generate: bool = True
        """Whether evaluation generates text for BLEU and chrF; else only the loss is measured."""

    config: Config

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        """Batches; those for evaluation know all references of each source.

        Raises:
            UserError: The evaluation is to generate text, and the module cannot.
        """
        if not train and self.config.generate:
            generator_of(self.module)
        batches = super().batches(data, train=train, seed=seed)
        if not train and isinstance(batches, RowBatches):
            batches.rows = with_references(batches.rows)
        return batches

    @override
    def validation_step(
        self, batch: Seq2SeqBatch, examples: Sequence[Mapping[str, Any]]
    ) -> Outputs:
        """Loss of a batch, and a translation of each source where it occurs first."""
        outputs = super().validation_step(batch, examples)
        first = [i for i, example in enumerate(examples) if example.get("references", True)]
        if not (self.config.generate and first):
            return outputs
        rows = torch.tensor(first, device=batch.source.device)
        lengths = batch.source_lengths[rows]
        source = batch.source[rows][:, : int(lengths.max())]
        return Outputs(outputs.loss, dict(zip(first, self.generate(source, lengths), strict=True)))

    @override
    def metrics(self) -> dict[str, Metric]:
        """Those of sequence to sequence, and BLEU and chrF of generated text."""
        if not self.config.generate:
            return super().metrics()
        return {
            **super().metrics(),
            "bleu": Bleu.Config().build(),
            "chrf": ChrF.Config().build(),
            "bleu_single": Bleu.Config(name="bleu_single").build(),
        }

    @override
    def aggregate(
        self,
        metrics: Mapping[str, Metric],
        outputs: Outputs,
        examples: Sequence[Mapping[str, Any]],
    ) -> None:
        """Adds a batch's sums and its translations."""
        super().aggregate(metrics, outputs, examples)
        if not outputs.answers:
            return
        texts = [answer.text for answer in outputs.answers.values()]
        found = [examples[position] for position in outputs.answers]
        references = [example.get("references") or [example["target"]] for example in found]
        for name in ("bleu", "chrf"):
            metrics[name].update(texts, references)
        pairs = [(text, [r]) for text, many in zip(texts, references, strict=True) for r in many]
        metrics["bleu_single"].update([text for text, _ in pairs], [one for _, one in pairs])


def with_references(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Gives the first row of each source the targets of all its rows, and the later ones none.

    Example:
        >>> rows = [{"source": "Go.", "target": "Va !"}, {"source": "Go.", "target": "Allez !"}]
        >>> [row["references"] for row in with_references(rows)]
        [['Va !', 'Allez !'], []]
    """
    targets: dict[str, list[str]] = {}
    for row in rows:
        targets.setdefault(row["source"], []).append(row["target"])
    return [{**row, "references": targets.pop(row["source"], [])} for row in rows]
