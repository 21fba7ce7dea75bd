"""Translation: sequence to sequence, judged by BLEU and chrF of generated text."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from textmill.metrics.metric import Metric
from textmill.metrics.translation import Bleu, ChrF
from textmill.tasks import registries
from textmill.tasks.seq2seq import GenerationConfig, Seq2Seq
from textmill.tasks.task import Metrics, Row
from textmill.text.cells import Rows, joined_text


@registries.tasks.register("translation")
class Translation(Seq2Seq):
    """Translates text; evaluated by its loss, and by sacreBLEU and chrF of generated text.

    A source that stands on several rows with different targets is translated once and scored
    against all of them (``bleu``, ``chrf``); ``bleu_single`` scores every row against its own
    target alone.
    """

    class Config(GenerationConfig):
        """Settings of the task."""

    @override
    def with_references(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The rows with all references of each source, at the first of its rows."""
        return with_references(rows)

    @override
    def is_answered(self, example: Mapping[str, Any]) -> bool:
        """Each source is translated where it occurs first."""
        return bool(example.get("references", True))

    @override
    def text_metrics(self) -> dict[str, Metric]:
        return {
            "bleu": Bleu.Config().build(),
            "chrf": ChrF.Config().build(),
            "bleu_single": Bleu.Config(name="bleu_single").build(),
        }

    @override
    def score(self, metrics: Metrics, texts: Sequence[str], examples: Rows) -> None:
        references = [example.get("references") or [example["target"]] for example in examples]
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
    sources = [joined_text(row["source"]) for row in rows]
    for source, row in zip(sources, rows, strict=True):
        targets.setdefault(source, []).append(row["target"])
    return [
        {**row, "references": targets.pop(source, [])}
        for source, row in zip(sources, rows, strict=True)
    ]
