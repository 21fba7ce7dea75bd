"""The registries, one per concept, and where the library's own names live."""

from collections.abc import Iterator
from typing import Any

from weft.config.registry import Registry

__all__ = ["all_registries", "find_name", "for_ingredient"]

_EXPERIMENTS = {
    "bert": ("pretraining",),
    "classification": ("averaging", "bilstm", "docnn", "ngrams", "transformer"),
    "joint": ("bilstm", "bilstm-crf", "transformer"),
    "language": ("lstm", "transformer"),
    "pairs": ("classification", "ngrams", "ranking", "regression"),
    "parsing": ("cogs", "top"),
    "question": ("drqa", "transformer"),
    "regression": ("docnn", "ngrams"),
    "summarization": ("scitldr",),
    "tagging": ("bilstm", "bilstm-crf", "ner", "transformer"),
    "translation": ("demo", "tatoeba"),
}
"""Each family has a module of its name; each experiment has a tiny variant, ``/local``."""

experiments: Registry[Any] = Registry(
    "experiment",
    {
        f"{family}/{name}{size}": f"weft.recipes.experiments.{family}"
        for family, names in _EXPERIMENTS.items()
        for name in names
        for size in ("", "/local")
    },
)
tasks: Registry[Any] = Registry(
    "task",
    {
        "document_classification": "weft.tasks.classification",
        "document_regression": "weft.tasks.regression",
        "intent_slots": "weft.tasks.intent_slots",
        "language_modeling": "weft.tasks.language_model",
        "masked_language_modeling": "weft.tasks.masked_language_model",
        "pair_classification": "weft.tasks.pairs",
        "pair_regression": "weft.tasks.pairs",
        "query_document_ranking": "weft.tasks.pairs",
        "question_answering": "weft.tasks.question_answering",
        "semantic_parsing": "weft.tasks.parsing",
        "summarization": "weft.tasks.summarization",
        "translation": "weft.tasks.translation",
        "word_tagging": "weft.tasks.tagging",
    },
)
models: Registry[Any] = Registry(
    "model",
    {
        "classifier": "weft.models.classifier",
        "drqa_reader": "weft.models.readers.reader",
        "intent_slot_model": "weft.models.intent_slots",
        "joined_reader": "weft.models.readers.reader",
        "lstm_language_model": "weft.models.language_model",
        "masked_language_model": "weft.models.masked_language_model",
        "ngram_classifier": "weft.models.ngrams",
        "ngram_pair_classifier": "weft.models.ngrams",
        "ngram_pair_regressor": "weft.models.ngrams",
        "ngram_regressor": "weft.models.ngrams",
        "lstm_seq2seq": "weft.models.lstm_seq2seq",
        "pair_classifier": "weft.models.pairs",
        "pair_regressor": "weft.models.pairs",
        "ranker": "weft.models.pairs",
        "regressor": "weft.models.classifier",
        "tagger": "weft.models.tagger",
        "transformer": "weft.models.transformer",
        "transformer_language_model": "weft.models.causal_transformer",
    },
)
encoders: Registry[Any] = Registry(
    "encoder",
    {
        "averaging": "weft.models.encoders.averaging",
        "cnn": "weft.models.encoders.cnn",
        "lstm": "weft.models.encoders.lstm",
        "self_attention": "weft.models.encoders.self_attention",
    },
)
losses: Registry[Any] = Registry(
    "loss",
    dict.fromkeys(
        ("auto", "binary_cross_entropy", "cross_entropy", "focal", "hinge", "squared_hinge"),
        "weft.models.label_losses",
    ),
)
poolings: Registry[Any] = Registry(
    "pooling", dict.fromkeys(("attention", "last", "max", "mean"), "weft.models.poolings")
)
attentions: Registry[Any] = Registry(
    "attention",
    {
        "multi_head": "weft.models.layers.attention",
        "talking_heads": "weft.models.layers.attention",
    },
)
feed_forwards: Registry[Any] = Registry(
    "feed_forward",
    {"gated": "weft.models.layers.feed_forward", "mlp": "weft.models.layers.feed_forward"},
)
norms: Registry[Any] = Registry(
    "norm", dict.fromkeys(("layer_norm", "rms_norm"), "weft.models.layers.norms")
)
positions: Registry[Any] = Registry(
    "positions",
    {
        "learned": "weft.models.layers.positions",
        "rotary": "weft.models.layers.positions",
        "sinusoidal": "weft.models.layers.positions",
    },
)
tokenizers: Registry[Any] = Registry(
    "tokenizer",
    {
        "bytes": "weft.text.tokenizers.character_tokenizers",
        "characters": "weft.text.tokenizers.character_tokenizers",
        "fitted": "weft.text.tokenizers.fitted_tokenizer",
        "fitted_ngrams": "weft.text.tokenizers.ngram_tokenizer",
        "fitted_words": "weft.text.tokenizers.word_tokenizer",
        "huggingface": "weft.text.tokenizers.huggingface",
        "multilingual": "weft.text.tokenizers.multilingual",
        "ngrams": "weft.text.tokenizers.ngram_tokenizer",
        "of_run": "weft.inference.tokenizer_from_run",
        "words": "weft.text.tokenizers.word_tokenizer",
    },
)
datasets: Registry[Any] = Registry(
    "data",
    {
        "corpus_pairs": "weft.recipes.corpus.data",
        "huggingface_pairs": "weft.data.huggingface",
        "text_lines": "weft.data.text_lines",
        "text_pairs": "weft.data.text_pairs",
        "text_rows": "weft.data.text_rows",
    },
)
labels: Registry[Any] = Registry("labels", {"fitted": "weft.text.features.labels"})
dense: Registry[Any] = Registry("dense", {"fitted": "weft.text.columns.numbers"})
slots: Registry[Any] = Registry("slots", {"fitted": "weft.text.features.slots"})
characters: Registry[Any] = Registry("characters", {"fitted": "weft.text.features.characters"})
affixes: Registry[Any] = Registry("affixes", {"fitted": "weft.text.features.affixes"})
dictionaries: Registry[Any] = Registry(
    "dictionary",
    {"given": "weft.text.features.dictionaries", "phrases": "weft.text.features.dictionaries"},
)
optimizers: Registry[Any] = Registry(
    "optimizer",
    {
        "adafactor": "weft.training.optimizers.torch_optimizers",
        "adam": "weft.training.optimizers.torch_optimizers",
        "adamw": "weft.training.optimizers.torch_optimizers",
        "lamb": "weft.training.optimizers.lamb",
        "lbfgs": "weft.training.optimizers.lbfgs",
        "lion": "weft.training.optimizers.lion",
        "muon": "weft.training.optimizers.muon",
        "sgd": "weft.training.optimizers.torch_optimizers",
    },
)
schedules: Registry[Any] = Registry(
    "lr_scheduler",
    dict.fromkeys(
        (
            "constant",
            "cosine",
            "exponential",
            "inverse_square_root",
            "linear",
            "one_cycle",
            "plateau",
            "polynomial",
            "step",
        ),
        "weft.training.schedules.decay",
    ),
)
metrics: Registry[Any] = Registry(
    "metric",
    {
        "bleu": "weft.metrics.translation",
        "chrf": "weft.metrics.translation",
        "exact_match": "weft.metrics.accumulators",
        "rouge": "weft.metrics.rouge",
    },
)
reporters: Registry[Any] = Registry(
    "reporter",
    {
        "console": "weft.metrics.reporters.console",
        "html": "weft.runs.html_reporter",
        "jsonl": "weft.metrics.reporters.jsonl",
        "mlflow": "weft.metrics.reporters.mlflow",
        "predictions": "weft.metrics.reporters.predictions",
        "tensorboard": "weft.metrics.reporters.tensorboard",
        "trackio": "weft.metrics.reporters.trackio",
        "wandb": "weft.metrics.reporters.wandb",
    },
)

_INGREDIENTS = {"train_data": datasets, "valid_data": datasets, "test_data": datasets}


def all_registries() -> dict[str, Registry[Any]]:
    """Every registry by its plural name, as ``weft list`` takes it."""
    return {name: value for name, value in globals().items() if isinstance(value, Registry)}


def for_ingredient(name: str) -> Registry[Any] | None:
    """The registry whose names can fill the ingredient ``name``."""
    by_concept = {registry.concept: registry for registry in all_registries().values()}
    return _INGREDIENTS.get(name) or by_concept.get(name)


def find_name(entry: object) -> tuple[Registry[Any], str] | None:
    """The registry and the name under which an object is filed."""
    for registry in _each():
        name = registry.name_of(entry)
        if name is not None:
            return registry, name
    return None


def _each() -> Iterator[Registry[Any]]:
    yield from all_registries().values()
