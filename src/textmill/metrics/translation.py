"""BLEU and chrF of generated text, by sacrebleu, from statistics that add up.

sacrebleu scores a corpus from a short list of integers per sentence (n-gram matches, n-gram totals,
lengths). Only their sum is kept: memory does not grow with the corpus, two halves merge exactly,
and the scores are those of ``sacrebleu.corpus_bleu`` and ``sacrebleu.corpus_chrf`` on all sentences
at once.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, final

from typing_extensions import override

from textmill.metrics import registries
from textmill.metrics.accumulators import TextMetric
from textmill.metrics.metric import Direction, MetricError, State

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as Scorer
    from sacrebleu.metrics.base import Score

_SPACES = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u2009": " "})


def plain_spaces(text: str) -> str:
    """Turns the narrow no-break, no-break and thin space into a plain one.

    Example:
        >>> plain_spaces("Vraiment\u202f?")
        'Vraiment ?'
    """
    return text.translate(_SPACES)


class CorpusScore(TextMetric):
    """Base of corpus scores by sacrebleu, as sums of integers; ``details`` has the signature."""

    def __init__(self, name: str, scorer: "Scorer", *, normalize_spaces: bool) -> None:
        self.name = name
        self._scorer, self._normalize = scorer, normalize_spaces
        self.reset()

    @final
    @override
    def update(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        """Adds generated texts, each with one or more correct ones; rows may have other numbers.

        Raises:
            MetricError: The lengths differ, or a row has no reference.
        """
        self._check(hypotheses, references)
        if not hypotheses:
            return
        if self._normalize:
            hypotheses = [plain_spaces(text) for text in hypotheses]
            references = [[plain_spaces(text) for text in texts] for texts in references]
        # sacrebleu takes references as streams: all first ones, all second ones, ...
        streams: list[Any] = [list(stream) for stream in itertools.zip_longest(*references)]
        # These two functions of it are not public, and nothing public gives chrF's statistics; that
        # they do what corpus_bleu and corpus_chrf do is held by tests/metrics/test_translation.py.
        rows = self._scorer._extract_corpus_statistics(list(hypotheses), streams)
        self._add([sum(column) for column in zip(*rows, strict=True)], len(rows))
        self._num_references.update(len(texts) for texts in references)

    @final
    @override
    def compute(self) -> dict[str, float]:
        return {self.name: float(self.score().score) if self._rows else math.nan}

    @final
    def score(self) -> "Score":
        """Sacrebleu's own object, with precisions and brevity penalty; there must be a row."""
        if not self._rows:
            raise MetricError(f"{self.name} has seen no text yet, so it has no score.")
        score: Score = self._scorer._compute_score_from_stats(list(self._statistics))
        return score

    @final
    @override
    def directions(self) -> Mapping[str, Direction]:
        return {self.name: "higher"}

    @final
    @override
    def details(self) -> dict[str, str]:
        """Sacrebleu's signature; ``nrefs:var`` where rows differ in their number of references."""
        if not self._rows:
            return {}
        self._scorer.num_refs = (  # sacrebleu sets it when it reads references
            min(self._num_references) if len(self._num_references) == 1 else -1
        )
        return {self.name: str(self._scorer.get_signature())}

    @final
    @override
    def reset(self) -> None:
        self._rows = 0
        self._statistics: list[int] = []
        self._num_references: set[int] = set()

    @final
    @override
    def state_dict(self) -> State:
        return {
            "settings": self._settings(),
            "rows": self._rows,
            "statistics": list(self._statistics),
            "num_references": sorted(self._num_references),
        }

    @final
    @override
    def merge_state(self, state: Mapping[str, Any]) -> None:
        if state.get("settings") != self._settings():
            raise MetricError(
                f"{self.name} counts with the settings {self._settings()}, "
                f"but the state to add was counted with {state.get('settings')}."
            )
        if state["rows"]:
            self._add(state["statistics"], state["rows"])
            self._num_references.update(state["num_references"])

    def _settings(self) -> str:
        signature = self._scorer._SIGNATURE_TYPE({**vars(self._scorer), "num_refs": 0})
        signature.info["nrefs"] = None  # the one part that the data decides
        return f"{signature}|plain_spaces:{'yes' if self._normalize else 'no'}"

    def _add(self, statistics: Sequence[int], rows: int) -> None:
        mine = self._statistics or [0] * len(statistics)
        self._statistics = [a + int(b) for a, b in zip(mine, statistics, strict=True)]
        self._rows += rows

    def _check(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        if len(hypotheses) != len(references):
            raise MetricError(
                f"{self.name} needs the references of each text, but was given "
                f"{len(hypotheses)} texts and {len(references)} lists of references."
            )
        for row, texts in enumerate(references):
            if isinstance(texts, str) or not texts:
                found = "a bare string" if isinstance(texts, str) else "none"
                raise MetricError(
                    f"{self.name} needs a list of one or more references per text, "
                    f"but text {row + 1} of {len(references)} has {found}."
                )


@final
@registries.metrics.register("bleu")
class Bleu(CorpusScore):
    """BLEU of a corpus, from 0 to 100 (Papineni et al. 2002), with several references per row.

    Example:
        >>> bleu = Bleu.Config().build()
        >>> bleu.update(
        ...     ["Le chat dort sur le lit."], [["Le chat dort sur le lit.", "Le chat dort au lit."]]
        ... )
        >>> {name: round(value, 1) for name, value in bleu.compute().items()}
        {'bleu': 100.0}
        >>> bleu.details()["bleu"].split("|version")[0]
        'nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp'
    """

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


@final
@registries.metrics.register("chrf")
class ChrF(CorpusScore):
    """chrF of a corpus, from 0 to 100 (Popović 2015); each row counts its best reference.

    Example:
        >>> chrf = ChrF.Config().build()
        >>> chrf.update(["Le chat dort."], [["Le chat dort."]])
        >>> chrf.compute()
        {'chrf': 100.0}
    """

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
