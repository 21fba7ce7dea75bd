"""What is trained, on which data, and what it should reach: the rows of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.results.crf import Crf
from benchmarks.results.files import Files
from benchmarks.results.found import Found
from benchmarks.results.lead import OneSentence
from benchmarks.results.linear import Linear
from benchmarks.results.timed import Timed


class Measure(Protocol):
    """What is measured in this process: a baseline, fitted on the training file, scored on dev."""

    @property
    def name(self) -> str: ...

    def found(self, files: Files, reading: Mapping[str, Any]) -> Found:
        """Values by the names of textmill's own."""
        ...


@dataclass(frozen=True)
class Wanted:
    """What a figure should reach: a number, or the baseline's score and some of its errors."""

    number: float | None = None
    """The number; None: what the baseline has."""
    errors: float = 0.0
    """So many of the baseline's standard errors more; below 0: less."""
    at_most: bool = False
    """Whether lower is better."""

    def limit(self, score: float | None, error: float | None) -> float | None:
        """What is wanted; None where there is no baseline to say it."""
        if self.number is not None or score is None or error is None:
            return self.number
        return score + self.errors * error

    def reached(self, value: float, limit: float) -> bool:
        return value <= limit if self.at_most else value >= limit

    @property
    def sign(self) -> str:
        return "≤" if self.at_most else "≥"


@dataclass(frozen=True)
class Figure:
    """A value of a job that the table has."""

    metric: str
    """Its name in textmill's ``metrics.jsonl`` and among a baseline's scores."""
    name: str
    """What the table calls it."""
    wanted: Wanted | None = None
    elsewhere: float | None = None
    """The same baseline's score on the test part, measured when the data were split: a check."""
    percent: bool = True
    """Whether textmill's value is a share, from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One experiment on one set of data."""

    name: str
    experiment: str
    """Trained as it is shipped: ``textmill train EXPERIMENT`` with the data's places alone."""
    train: str
    """The training file in the folder of data."""
    dev: str = ""
    """The file of dev rows; empty: a tenth of the training file's is held out."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """How the files are read: settings of train_data."""
    figures: tuple[Figure, ...]
    baselines: tuple[Measure, ...] = ()
    seeds: int = 5
    encoder: bool = False
    """Whether it begins with a pretrained encoder: all-MiniLM-L6-v2."""
    own: Measure | None = None
    """What measures textmill, where it is not ``textmill train``."""

    @property
    def family(self) -> str:
        """The experiment's family: tagging, classification, ..."""
        return self.experiment.partition("/")[0]


TOKENS = {"columns": {"words": "tokens", "tags": "tags"}}
SNIPS = {"columns": ["label", "text", "slots"]}
NEAR = Wanted(errors=-1)

JOBS = (
    Job(
        name="sms-spam",
        experiment="classification/docnn",
        train="sms-spam/train.tsv",
        dev="sms-spam/dev.tsv",
        reading={"columns": {"label": 0, "text": 1}},
        baselines=(Linear(),),
        figures=(Figure("accuracy", "accuracy", NEAR, elsewhere=99.42),),
    ),
    Job(
        name="snips-intents",
        experiment="classification/docnn",
        train="snips/train.tsv",
        dev="snips/dev.tsv",
        reading={"columns": {"label": 0, "text": 1}},
        baselines=(Linear(),),
        figures=(Figure("accuracy", "accuracy", NEAR, elsewhere=97.86),),
    ),
    Job(
        name="cora",
        experiment="tagging/bilstm-crf",
        train="refstrings/cora.train.jsonl",
        dev="refstrings/cora.dev.jsonl",
        reading=TOKENS,
        baselines=(Crf(spans="io"),),
        figures=(
            Figure("token_accuracy", "words", NEAR, elsewhere=94.00),
            Figure("whole_sentence", "whole references", elsewhere=68.0),
        ),
    ),
    Job(
        name="anystyle",
        experiment="tagging/bilstm-crf",
        train="refstrings/anystyle.core.jsonl",
        reading=TOKENS,
        baselines=(Crf(spans="io"),),
        figures=(
            Figure("token_accuracy", "words", NEAR),
            Figure("whole_sentence", "whole references"),
        ),
    ),
    Job(
        name="dataset-mentions",
        experiment="tagging/ner",
        train="dataset-mentions/train.conll",
        dev="dataset-mentions/dev.conll",
        reading={"columns": {"words": 0, "tags": -1}},
        baselines=(Crf(spans="bio"),),
        figures=(Figure("span_f1", "F1 of mentions", NEAR, elsewhere=81.02),),
    ),
    Job(
        name="wnut17",
        experiment="tagging/ner",
        train="wnut17/train.conll",
        dev="wnut17/dev.conll",
        reading={"columns": {"words": 0, "tags": -1}},
        baselines=(Crf(spans="bio"),),
        figures=(Figure("span_f1", "F1 of names", Wanted(errors=2), elsewhere=16.0),),
    ),
    Job(
        name="snips",
        experiment="joint/bilstm-crf",
        train="snips/train.tsv",
        dev="snips/dev.tsv",
        reading=SNIPS,
        baselines=(
            Linear(score="intent_accuracy"),
            Crf(words="text", tags="slots", spans="bio", prefix="slot"),
        ),
        figures=(
            Figure("intent_accuracy", "intents", NEAR, elsewhere=97.86),
            Figure("slot_f1", "F1 of slots", NEAR, elsewhere=93.30),
            Figure("frame_accuracy", "whole frames"),
        ),
    ),
    Job(
        name="ud-ewt",
        experiment="tagging/bilstm",
        train="ud-ewt/train.tsv",
        dev="ud-ewt/dev.tsv",
        reading={"format": "conll", "columns": {"words": 0, "tags": 1}},
        baselines=(Crf(),),
        figures=(
            Figure("token_accuracy", "words", NEAR, elsewhere=94.84),
            Figure("whole_sentence", "whole sentences", elsewhere=64.81),
        ),
        seeds=1,
    ),
    Job(
        name="snli-small",
        experiment="pairs/classification",
        train="snli-small/train.tsv",
        dev="snli-small/dev.tsv",
        reading={"columns": {"label": 0, "text1": 1, "text2": 2}},
        baselines=(Linear(texts=("text2",)),),  # the hypothesis alone (Poliak et al. 2018)
        figures=(Figure("accuracy", "accuracy"),),
    ),
    Job(
        name="tinyshakespeare",
        experiment="language/transformer",
        train="tinyshakespeare/train.txt",
        dev="tinyshakespeare/dev.txt",
        figures=(Figure("loss", "nats a character", Wanted(1.75, at_most=True), percent=False),),
        seeds=1,
    ),
    Job(
        name="cogs",
        experiment="parsing/cogs",
        train="cogs/train.tsv",
        dev="cogs/dev.tsv",
        figures=(Figure("exact_match", "exact", Wanted(95.0)),),
        seeds=1,
    ),
    Job(
        name="top-en",
        experiment="parsing/top",
        train="top-en/train.tsv",
        dev="top-en/dev.tsv",
        figures=(
            Figure("exact_match", "exact"),
            Figure("tree/overall_f1", "F1 of trees"),
        ),
        seeds=1,
    ),
    Job(
        name="scitldr",
        experiment="summarization/scitldr",
        train="scitldr/train.jsonl",
        dev="scitldr/dev.jsonl",
        baselines=(OneSentence(),),
        figures=(
            Figure("rouge1", "ROUGE-1"),
            Figure("rouge2", "ROUGE-2"),
            Figure("rougeL", "ROUGE-L"),
        ),
        seeds=1,
    ),
    Job(
        name="squad-dev",
        experiment="question/drqa",
        train="squad-dev/train.json",
        dev="squad-dev/dev.json",
        figures=(Figure("exact_match", "exact"), Figure("f1", "F1 of words")),
        seeds=1,
    ),
    Job(
        name="squad-dev-transformer",
        experiment="question/transformer",
        train="squad-dev/train.json",
        dev="squad-dev/dev.json",
        figures=(Figure("exact_match", "exact"), Figure("f1", "F1 of words")),
        seeds=1,
    ),
    Job(
        name="wikitext-2-masked",
        experiment="bert/pretraining",
        train="wikitext-2/train.txt",
        dev="wikitext-2/valid.txt",
        figures=(
            Figure("masked_accuracy", "masked tokens"),
            Figure("perplexity", "perplexity of masked tokens", percent=False),
        ),
        seeds=1,
    ),
    Job(
        name="wikitext-2",
        experiment="language/lstm",
        train="wikitext-2/train.txt",
        dev="wikitext-2/valid.txt",
        baselines=(Timed("plain"),),
        figures=(Figure("perplexity", "perplexity", Wanted(at_most=True), percent=False),),
        seeds=1,
        own=Timed("textmill"),
    ),
)
"""From the cheap ones to the dear ones."""


def chosen(words: Sequence[str], jobs: Sequence[Job] = JOBS) -> tuple[Job, ...]:
    """The jobs of some names or families; all where none is named.

    Raises:
        ValueError: A name is neither.
    """
    known = {job.name for job in jobs} | {job.family for job in jobs}
    for word in words:
        if word not in known:
            raise ValueError(f"unknown result {word!r}; known: {', '.join(sorted(known))}")
    return tuple(job for job in jobs if not words or {job.name, job.family} & set(words))
