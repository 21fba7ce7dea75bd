"""Labels of words: what all tasks of them share, word tagging, and trees over words."""

import operator
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.errors import UserError
from textmill.exported.forward import CrfForward, Forward, TagForward
from textmill.metrics.accumulators import ExactMatch
from textmill.metrics.classification import Classification, Spans
from textmill.metrics.frames import Trees
from textmill.metrics.metric import Metric
from textmill.metrics.streaming import Accuracy
from textmill.models.crf import LinearChainCrf, tag_scheme
from textmill.models.label_losses import AutoLoss, LabelLoss, averaged_scores
from textmill.tasks import registries
from textmill.tasks.batches.device import at_places, real_places
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.rows_task import UnseenLabelsConfig
from textmill.tasks.task import Loss, Metrics, Row
from textmill.text.cells import Rows
from textmill.text.columns.column import Column
from textmill.text.columns.inputs import BesideWords, word_columns
from textmill.text.columns.labels import TagsColumn, TreesColumn
from textmill.text.features.labels import UNSEEN, Labels
from textmill.text.features.tag_spans import Scheme, tag_spans
from textmill.text.features.tree_tags import TreeTags
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.tagging import (
    Parsed,
    Tagged,
    TaggingText,
    TagsCheck,
    TreeCheck,
    TreesText,
)
from textmill.text.tokenizers.tokenizer import Tokenizer


class TagHead:
    """The labels of words: loss, answers and exported outputs of their scores.

    Where the module has a conditional random field, its submodule ``crf``, loss and answers are of
    whole sequences; else each word is for itself, with ``loss`` (None: the cross entropy), which a
    field refuses.
    """

    def __init__(
        self, module: nn.Module, names: Sequence[str], loss: LabelLoss.Config | None = None
    ) -> None:
        crf = dict(module.named_children()).get("crf")
        self.crf = crf if isinstance(crf, LinearChainCrf) else None
        if loss is not None and self.crf is not None:
            raise UserError(
                "task.loss is the loss of each word for itself, but a model with model.crf=true "
                "has the likelihood of whole sequences for its loss: leave one of them out."
            )
        self.criterion: LabelLoss = (loss or AutoLoss.Config()).build(names=names, multiple=False)

    def loss(
        self,
        scores: Tensor,
        tags: Tensor,
        real: Tensor,
        count: int | None,
        weights: Tensor | None = None,
    ) -> Loss:
        """The loss, summed over words without padding.

        Args:
            scores: Unnormalized scores of labels. *Shape:* :math:`(B,T,L)`.
            tags: The right labels. *Shape:* :math:`(B,T)`.
            real: True at words. *Shape:* :math:`(B,T)`.
            count: How many words there are, where training has seen all their labels. None: words
                with others are left out; with a random field, whole sentences.
            weights: How often each row counts, with its words; None: once. *Shape:* :math:`(B)`.
        """
        if self.crf is not None:
            if count is None:
                seen = (tags != UNSEEN).all(dim=1)
                scores, tags, real = scores[seen], tags[seen], real[seen]
                weights = None if weights is None else weights[seen]
            losses, words = -self.crf.log_likelihood(scores, tags, real), real.sum()
            if weights is not None:
                losses, words = losses * weights, real.sum(dim=1).to(weights) @ weights
            return Loss(losses.sum(), words)
        kept = scored_words(scores, tags, real, count, weights)
        return Loss.of(self.criterion(*kept), self.criterion)

    def chances(
        self, scores: Tensor, batch: ColumnBatch
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """The number and the probability of the label of each word, row by row."""
        if self.crf is None:
            chances, numbers = self.criterion.probabilities(scores).max(dim=-1)
        else:
            real = batch.mask("words").to(scores.device)
            numbers, chances = self.crf.decode_with_chances(scores, real)
        lengths = batch.lengths["words"].tolist()
        rows = zip(lengths, numbers.cpu().numpy(), chances.float().cpu().numpy(), strict=True)
        return [(row[:n], scored[:n]) for n, row, scored in rows]

    def averaged(self, heads: Sequence["TagHead"], scores: Sequence[Tensor]) -> Tensor:
        """Scores with the mean of the probabilities of words; of random fields, the mean scores.

        With the mean of the transitions, too, which :meth:`join` takes, the probability of a
        sequence is the geometric mean of the members', brought to a sum of 1 (a logarithmic opinion
        pool: Smith, Cohn and Osborne 2005).
        """
        if self.crf is not None:
            return torch.stack([*scores]).float().mean(dim=0)
        return averaged_scores([head.criterion for head in heads], scores)

    def join(self, heads: Sequence["TagHead"]) -> None:
        """Takes the mean of the transitions of random fields for its own."""
        fields = [head.crf for head in heads if head.crf is not None]
        if len(fields) not in (0, len(heads)):
            raise UserError(
                f"{len(fields)} of the {len(heads)} members have a random field (model.crf=true) "
                "and the others none: their scores are of different kinds."
            )
        if self.crf is not None:
            mean = torch.stack([field.transitions.detach() for field in fields]).mean(dim=0)
            self.crf.transitions.data.copy_(mean)

    def outputs(self, scores: Tensor) -> tuple[Tensor, ...]:
        """What an exported graph gives: numbers and probabilities, or scores for the field."""
        if self.crf is not None:
            return (scores.float(),)
        chances, numbers = self.criterion.probabilities(scores).max(dim=-1)
        return numbers, chances.float()

    @property
    def forward(self) -> Forward:
        """How an export answers from :meth:`outputs`, without torch."""
        if self.crf is None:
            return TagForward()
        return CrfForward(self.crf.answering_transitions().detach().cpu().numpy())


def scored_words(
    scores: Tensor, tags: Tensor, real: Tensor, count: int | None, weights: Tensor | None
) -> list[Tensor]:
    """Scores, labels and, if given, weights of words that count, :math:`(N,L)` and :math:`(N)`.

    The arguments are those of :meth:`TagHead.loss`.
    """
    places = real & (tags >= 0) if count is None else real_places(real, count)
    own = [] if weights is None else [weights[:, None].expand_as(tags)]
    return [at_places(part, places) for part in (scores, tags, *own)]


class TagTask(ColumnsTask):
    """Base of tasks whose answer is a label for each word.

    The module gives scores, :math:`(B,T,L)`. Where it has a conditional random field as its
    attribute ``crf``, loss and answers are of whole sequences.
    """

    text: Any

    def __init__(
        self,
        config: Any,
        *,
        module: nn.Module,
        tokenizer: Tokenizer,
        labels: Labels,
        **beside: Unpack[BesideWords],
    ) -> None:
        super().__init__(config, module=module)
        how: Any = {n: getattr(config, n, None) for n in ("column", "max_length", "max_texts")}
        words = word_columns(tokenizer, **how, **beside)
        self.head = TagHead(module, labels.names, config.loss)
        self.text = self.text_of(words, labels)

    @abstractmethod
    def text_of(self, words: dict[str, Column], labels: Any) -> ColumnsText:
        """The text processor of the columns of words, with the target ``tags``."""

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        count = batch.count("words") if self.module.training else None
        real = batch.mask("words")
        return self.head.loss(scores, batch["tags"], real, count, self.weights(batch))

    @override
    def averaged(self, members: Sequence["TagTask"], scores: Sequence[Tensor]) -> Tensor:
        return self.head.averaged([member.head for member in members], scores)

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Any]:
        found: list[Any] = self.text.decode(self.head.chances(scores, batch))
        return found

    @property
    @override
    def exported_forward(self) -> Forward:
        return self.head.forward

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        return self.head.outputs(self.scores(batch))


@registries.tasks.register("word_tagging")
class WordTagging(TagTask):
    """Gives each word of a text a label: parts of speech, names, fields.

    With ``max_texts`` a row is a list of texts, such as a conversation, and each text has a label.
    """

    class Config(UnseenLabelsConfig):
        column: str = "words"
        """The column of the words: text, split at white space (one to answer: as the training data
        is), or a list."""
        max_length: int = 512
        """Longest text, in words; over_length says what happens to longer ones."""
        max_texts: int | None = None
        """Most texts of a row, if the labels are of texts, such as the turns of a conversation: a
        model ``text_tagger`` reads the first ``max_length`` tokens of each. null: of words."""
        over_length: Literal["truncate", "skip", "error"] = "error"
        """What happens to a text with more words than that: error refuses it; skip leaves it out of
        training and evaluation, and counts it; truncate cuts it, and the words after the limit get
        no label and count in no metric."""
        scheme: Literal["auto", "bio", "bilou", "io", "none"] = "auto"
        """How labels mark spans. auto: bio or bilou, where all labels are such, else none; io:
        neighbouring words with one label are a span, but for the label O. The answers of a random
        field keep to bio and bilou."""
        loss: AutoLoss.Config | LabelLoss.Config | None = None
        """The loss of a word, for a model without a random field; null and auto are
        cross_entropy."""

        def __post_init__(self) -> None:
            require(self, "task", sizes=["max_length", "max_texts"])

        @override
        def row_check(self, labels: Any = None) -> TagsCheck | None:
            texts = self.max_texts is not None
            return labels and TagsCheck(self.column, labels.column, labels.separator, texts)

    text: TaggingText
    scheme: Scheme | None

    @override
    def text_of(self, words: dict[str, Column], labels: Labels) -> TaggingText:
        text = TaggingText(words, self.with_weights({"tags": TagsColumn(labels)}))
        self.scheme = text.scheme = _scheme(self.config.scheme, labels)
        if self.head.crf is not None:
            self.head.crf.keep_to(None if self.scheme == "io" else self.scheme)
        return text

    @override
    def row_notes(self, rows: Sequence[Row], *, train: bool) -> dict[str, str]:
        crf, column = self.head.crf, self.text.tags
        if not train or crf is None or crf.allowed.all():
            return {}
        # Each row between the numbers of start and end; nothing forbids the step to the next row.
        size = crf.num_labels
        tags = column.encode([row[column.name] for row in rows]).wrapped([size], [size + 1])
        before, after = tags.values[:-1], tags.values[1:]
        wrong = np.flatnonzero(~crf.allowed.cpu().numpy()[before, after])
        if not len(wrong):
            return {}
        first = int(np.searchsorted(tags.offsets, wrong[0], side="right")) - 1
        names = [*column.labels.names, "the beginning", "the end"]
        note = (
            f"{len(wrong)} steps from a label of '{column.name}' to the next break the labels' "
            f"scheme, the first from {names[before[wrong[0]]]} to {names[after[wrong[0]]]} in row "
            f"{first}. They are trained on, but no answer can have one. If they are right, as in "
            "IOB1, set model.constrained=false."
        )
        return {"forbidden": note}

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        names = self.text.tags.labels.names
        if (scheme := self.scheme) in ("bio", "bilou"):
            kinds = dict.fromkeys(s.kind for name in names for s in tag_spans([name], scheme))
            return {"spans": Spans(scheme, kinds=[*kinds])}
        labels = Classification(names)
        if self.scheme:
            return {"labels": labels, "spans": Spans(self.scheme)}
        tokens, sentences = Accuracy("token_accuracy"), Accuracy("whole_sentence")
        return {"labels": labels, "tokens": tokens, "sentences": sentences}

    @property
    @override
    def selected(self) -> str:
        """The F1 of spans where labels mark such, else the share of words."""
        return "span_f1" if self.scheme else "token_accuracy"

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Tagged], rows: Rows) -> None:
        given = [list(answer.tags) for answer in answers]
        column = self.text.tags
        gold = [column.names(row[column.name]) for row in rows]
        gold = [right[: len(tags)] for right, tags in zip(gold, given, strict=True)]
        if "spans" in metrics:
            marked = [[self._marked(tag) for tag in tags] for tags in gold]
            metrics["spans"].update(marked, given)
        flat = [[tag for tags in rows for tag in tags] for rows in (gold, given)]
        if "labels" in metrics:
            metrics["labels"].update(*flat)
        if "tokens" in metrics:
            metrics["tokens"].update(sum(map(operator.eq, *flat)), len(flat[0]))
            metrics["sentences"].update(sum(map(operator.eq, gold, given)), len(gold))

    def _marked(self, tag: str) -> str:
        """A right tag as one of the scheme: an unseen one of no scheme is a span never found."""
        assert self.scheme, "asked only where labels mark spans"
        if self.text.tags.labels.has(tag):
            return tag
        try:
            tag_spans([tag], self.scheme)
        except ValueError:
            return f"B-{tag} (no tag of {self.scheme})"
        return tag


def _scheme(chosen: str, labels: Labels) -> Scheme | None:
    marks = tag_scheme(labels.names)
    if chosen == "auto":
        return marks
    fits = {"bio": ("bio",), "bilou": ("bio", "bilou")}
    if chosen in fits and marks not in fits[chosen]:
        raise UserError(
            f"task.scheme={chosen} needs labels that are O or a mark with a kind, as B-person. "
            f"{labels.listed} Set task.scheme=none, or io."
        )
    schemes: dict[str, Scheme] = {"bio": "bio", "bilou": "bilou", "io": "io"}
    return schemes.get(chosen)


class TreeTask(ColumnsTask):
    """Base of tasks whose answer is a tree over the words of its sentence."""

    class Config(UnseenLabelsConfig):
        column: str = "source"
        """The column of the sentence: text, split at white space, or a list."""
        max_length: int = 256
        """Most words of a sentence."""

        def __post_init__(self) -> None:
            require(self, "task", sizes=["max_length"])

        @override
        def row_check(self, labels: Any = None) -> TreeCheck | None:
            return labels and TreeCheck(self.column, labels.column)

    text: TreesText

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        return {"exact_match": ExactMatch.Config().build(), "trees": Trees()}

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Parsed], rows: Rows) -> None:
        column: TreesColumn = self.text.tags
        gold = [column.written(row[column.name]) for row in rows]
        given = [answer.tree for answer in answers]
        metrics["exact_match"].update(given, [[tree] for tree in gold])
        metrics["trees"].update(gold, given)


@registries.tasks.register("tree_tagging")
class TreeTagging(TreeTask, TagTask):
    """Parses sentences into trees of intents and slots over their own words.

    What opens before a word and closes after it is its label (``labels.type=trees``), so any
    model that labels words is a parser, and every answer is a tree, but of a sentence that has
    brackets of its own. Evaluated as
    :class:`~textmill.tasks.generation.SemanticParsing` is.
    """

    class Config(TreeTask.Config):
        loss: AutoLoss.Config | LabelLoss.Config | None = None
        """The loss of a word, for a model without a random field; null and auto are
        cross_entropy."""

    text: TreesText

    @override
    def text_of(self, words: dict[str, Column], labels: Labels) -> TreesText:
        if type(labels) is not TreeTags:
            raise UserError(
                "The labels of words must be what opens and closes at them: set labels.type=trees."
            )
        return TreesText(words, self.with_weights({"tags": TreesColumn(labels)}))
