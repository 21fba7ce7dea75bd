"""The registries of all rooms below, with the experiments and data of this one: for who plans."""

from weft.config.recipe import experiments as experiments
from weft.config.registry import all_registries as all_registries
from weft.data.registries import datasets as datasets
from weft.inference.registries import tokenizers as tokenizers
from weft.metrics.registries import metrics as metrics
from weft.metrics.registries import reporters as reporters
from weft.models.registries import attentions as attentions
from weft.models.registries import encoders as encoders
from weft.models.registries import feed_forwards as feed_forwards
from weft.models.registries import losses as losses
from weft.models.registries import models as models
from weft.models.registries import norms as norms
from weft.models.registries import poolings as poolings
from weft.models.registries import positions as positions
from weft.tasks.registries import tasks as tasks
from weft.text.registries import affixes as affixes
from weft.text.registries import characters as characters
from weft.text.registries import dense as dense
from weft.text.registries import dictionaries as dictionaries
from weft.text.registries import labels as labels
from weft.text.registries import pieces as pieces
from weft.text.registries import slots as slots
from weft.training.registries import optimizers as optimizers
from weft.training.registries import schedules as schedules

_FAMILIES = {
    "bert": ("pretraining",),
    "classification": ("averaging", "bilstm", "docnn", "ngrams", "transformer"),
    "embedding": ("pairs", "similarity"),
    "joint": ("bilstm", "bilstm-crf", "transformer"),
    "language": ("lstm", "transformer"),
    "pairs": ("classification", "ngrams", "ranking", "regression"),
    "parsing": ("cogs", "top"),
    "question": ("drqa", "transformer"),
    "regression": ("docnn", "ngrams"),
    "summarization": ("extractive-lstm", "scitldr"),
    "tagging": ("bilstm", "bilstm-crf", "ner", "references", "transformer"),
    "translation": ("demo", "tatoeba"),
    "trees": ("bilstm",),
}
"""Each family has a module of its name; each experiment has a tiny variant, ``/local``."""

experiments.add(
    {
        f"weft.recipes.experiments.{family}": [
            f"{family}/{n}{size}" for n in names for size in ("", "/local")
        ]
        for family, names in _FAMILIES.items()
    }
)
_PRETRAINED = (
    *("classification", "embedding", "joint", "language", "ner", "pairs"),
    *("parsing", "question", "ranking", "regression", "summarization"),
    *("tagging", "translation", "trees"),
)
"""What a pretrained model is fine-tuned for; there is none so small that it is ``/local``."""

experiments.add(
    {
        "weft.recipes.experiments.pretrained": [
            *(f"{family}/pretrained" for family in _PRETRAINED),
            "summarization/extractive",
        ]
    }
)
datasets.add({"weft.recipes.corpus.data": ["corpus_pairs"]})
