"""The registries of all rooms below, with the experiments and data of this one: for who plans."""

from textmill.config.recipe import experiments as experiments
from textmill.config.registry import all_registries as all_registries
from textmill.data.registries import datasets as datasets
from textmill.inference.registries import tokenizers as tokenizers
from textmill.metrics.registries import metrics as metrics
from textmill.metrics.registries import reporters as reporters
from textmill.models.registries import attentions as attentions
from textmill.models.registries import encoders as encoders
from textmill.models.registries import losses as losses
from textmill.models.registries import models as models
from textmill.models.registries import poolings as poolings
from textmill.tasks.registries import tasks as tasks
from textmill.text.registries import affixes as affixes
from textmill.text.registries import characters as characters
from textmill.text.registries import dense as dense
from textmill.text.registries import dictionaries as dictionaries
from textmill.text.registries import labels as labels
from textmill.text.registries import pieces as pieces
from textmill.text.registries import slots as slots
from textmill.training.registries import optimizers as optimizers
from textmill.training.registries import schedules as schedules

_EXPERIMENTS: dict[str, dict[str, tuple[str, ...]]] = {
    "generation": {
        "parsing": ("cogs", "mask-predict", "top"),
        "summarization": ("extractive-lstm", "scitldr"),
        "translation": ("demo", "tatoeba"),
    },
    "language": {"bert": ("electra", "pretraining"), "language": ("lstm", "transformer")},
    "pairs": {
        "embedding": ("pairs", "similarity"),
        "pairs": ("classification", "ngrams", "ranking", "regression"),
        "similarity": ("ngrams",),
    },
    "question": {"question": ("drqa", "transformer")},
    "tagging": {
        "joint": ("bilstm", "bilstm-crf", "context", "transformer"),
        "tagging": ("bilstm", "bilstm-crf", "ner", "references", "transformer", "turns"),
        "trees": ("bilstm", "rnng"),
    },
    "texts": {
        "classification": ("averaging", "bilstm", "docnn", "ngrams", "sentences", "transformer"),
        "regression": ("docnn", "ngrams"),
    },
}
"""By their module, and the family in their name; each has a tiny variant, ``/local``."""

experiments.add(
    {
        f"textmill.recipes.experiments.{module}": [
            f"{family}/{name}{size}"
            for family, names in families.items()
            for name in names
            for size in ("", "/local")
        ]
        for module, families in _EXPERIMENTS.items()
    }
)
_PRETRAINED = (
    *("classification", "embedding", "joint", "language", "ner", "pairs"),
    *("parsing", "question", "ranking", "regression", "similarity"),
    *("summarization", "tagging", "translation", "trees"),
)
"""What a pretrained model is fine-tuned for; there is none so small that it is ``/local``."""

experiments.add(
    {
        "textmill.recipes.experiments.pretrained": [
            *(f"{family}/pretrained" for family in _PRETRAINED),
            "classification/few",
            "summarization/extractive",
        ]
    }
)
experiments.add(
    {"textmill.recipes.experiments.multitask": ["multitask/pretrained", "multitask/words"]}
)
datasets.add({"textmill.recipes.corpus.data": ["corpus_pairs"]})
