"""BLEU and chrF of generated text, by sacrebleu."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import override

from textmill.metrics import registries
from textmill.metrics.accumulators import TextMetric
from textmill.metrics.metric import Direction, MetricError, with_references

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as Scorer
    from sacrebleu.metrics.base import Score

_SPACES = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u2009": " "})


def plain_spaces(text: str) -> str:
    """Turns the narrow no-break, no-break and thin space into a plain one."""
    return text.translate(_SPACES)


class CorpusScore(TextMetric):
    """Base of corpus scores by sacrebleu, which scores all texts at once."""

    def __init__(self, name: str, scorer: "Scorer", *, normalize_spaces: bool) -> None:
        self.name = name
        self._scorer = scorer
        self._read = plain_spaces if normalize_spaces else str
        self._texts: list[str] = []
        self._references: list[list[str]] = []
        self._score: Score | None = None

    @override
    def update(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for text, right in with_references(self, texts, references):
            self._texts.append(self._read(text))
            self._references.append([self._read(one) for one in right])
        self._score = None

    @override
    def compute(self) -> dict[str, float]:
        return {self.name: float(self.score().score) if self._texts else math.nan}

    def score(self) -> "Score":
        """Sacrebleu's own object, with precisions and brevity penalty; there must be a row."""
        if not self._texts:
            raise MetricError(f"{self.name} has seen no text yet, so it has no score.")
        if self._score is None:
            # sacrebleu takes references as streams: all first ones, all second ones, ...
            streams: list[Any] = [list(each) for each in itertools.zip_longest(*self._references)]
            self._score = self._scorer.corpus_score(self._texts, streams)
        return self._score

    @override
    def directions(self) -> Mapping[str, Direction]:
        return {self.name: "higher"}

    @override
    def details(self) -> dict[str, str]:
        """Sacrebleu's signature; ``nrefs:var`` where rows differ in their number of references."""
        if not self._texts:
            return {}
        self.score()  # it is of the references that sacrebleu read last
        return {self.name: str(self._scorer.get_signature())}


@registries.metrics.register("bleu")
class Bleu(CorpusScore):
    """BLEU of a corpus, from 0 to 100 (Papineni et al. 2002), with several references per row."""

    class Config(TextMetric.Config):
        """Settings of BLEU; the defaults are sacrebleu's, as in published figures."""

        name: str = "bleu"
        """The name of the value."""
        tokenize: Literal["13a", "intl", "char", "zh", "none"] = "13a"
        """How words are found: as in WMT (``13a``), by international punctuation, by character, for
        Chinese, or at spaces only."""
        lowercase: bool = False
        """Whether case is ignored."""
        normalize_spaces: bool = True
        """Whether special spaces (U+202F, U+00A0, U+2009) become plain ones on both sides. French
        puts them before ``! ? : ;``, tokenizers that normalize (NFKC) never generate them, and no
        reader tells them apart, so they should never cost a match. The tokenizers of sacrebleu 2.6
        split at all of them anyway: the score is the same either way; with this it stays so."""

    config: Config

    def __init__(self, config: Config) -> None:
        from sacrebleu.metrics.bleu import BLEU

        self.config = config
        # force: it silences a warning about texts ending in " .", which 100 rows of some corpora
        # rightly do.
        scorer = BLEU(lowercase=config.lowercase, tokenize=config.tokenize, force=True)
        super().__init__(config.name, scorer, normalize_spaces=config.normalize_spaces)


@registries.metrics.register("chrf")
class ChrF(CorpusScore):
    """chrF of a corpus, from 0 to 100 (Popović 2015); each row counts its best reference."""

    class Config(TextMetric.Config):
        """Settings of chrF; the defaults are those of sacrebleu (chrF2)."""

        name: str = "chrf"
        """The name of the value."""
        char_order: int = 6
        """Longest character n-gram."""
        word_order: int = 0
        """Longest word n-gram; 2 makes it chrF++ (Popović 2017)."""
        beta: int = 2
        """How many times as much recall counts as precision."""
        lowercase: bool = False
        """Whether case is ignored."""
        normalize_spaces: bool = True
        """Whether U+202F, U+00A0 and U+2009 become plain spaces on both sides; see BLEU's."""

    config: Config

    def __init__(self, config: Config) -> None:
        from sacrebleu.metrics.chrf import CHRF

        self.config = config
        scorer = CHRF(
            char_order=config.char_order,
            word_order=config.word_order,
            beta=config.beta,
            lowercase=config.lowercase,
        )
        super().__init__(config.name, scorer, normalize_spaces=config.normalize_spaces)
