"""Labels of words, intents with slots, trees; set ``train_data.path`` and ``valid_data.path``.

Files of ``tagging`` are CoNLL by default, words in the first column and tags in the last, those of
references JSON lines; for others set ``train_data.format`` and ``train_data.columns``, which the
other data follow. Rows of ``joint`` are an intent, a text and a tag for each word, as ``O B-time
I-time``; where slots are spans of characters, as ``16:24:time``, set ``slots.format=spans``, and
``train_data.columns`` to the order of the file. Its intents begin with a linear classifier of
n-grams, to whose scores the encoder adds. ``trees`` wants what ``parsing/top`` wants, domain,
sentence and tree, and labels each word with what opens and closes at it, where ``parsing/top``
writes the tree word by word.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like
from textmill.data.text_rows import TextRows
from textmill.models.classifier import TextsConfig
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import CnnEncoder, SequenceEncoder
from textmill.models.layers.word_embeddings import AffixEmbedding, CharacterCnn, WordEmbedding
from textmill.models.parsers.rnng import Rnng
from textmill.models.tagger import IntentSlotModel, Tagger, TextTagger
from textmill.recipes.experiments.variants import register_with_local, tiny
from textmill.tasks.intent_slots import IntentSlots
from textmill.tasks.parsing import ShiftReduceParsing
from textmill.tasks.tagging import TreeTagging, WordTagging
from textmill.text.features.labels import FittedLabels
from textmill.text.features.slots import FittedSlots
from textmill.text.features.spelling import FittedAffixes, FittedCharacters
from textmill.text.features.tree_actions import FittedTreeActions
from textmill.text.features.tree_tags import FittedTreeTags
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Linear, Selection, Trainer

LSTM: SequenceEncoder.Config = LstmEncoder.Config(hidden_dim=128)
ATTENTION: SequenceEncoder.Config = SelfAttentionEncoder.Config(
    num_layers=2, num_heads=4, ffn_dim=512
)
SMALL_LSTM: SequenceEncoder.Config = LstmEncoder.Config(hidden_dim=8)
SMALL_ATTENTION: SequenceEncoder.Config = SelfAttentionEncoder.Config(
    num_layers=1, num_heads=2, ffn_dim=32
)


def tagging(
    encoder: SequenceEncoder.Config, *, crf: bool, metric: str = "auto", epochs: int = 20
) -> Recipe:
    """A recipe that trains a tagger on sentences of words and tags."""
    return Recipe(
        train_data=TextRows.Config(
            path=Path("data/train.conll"), columns={"words": 0, "tags": -1}, batch_size=16
        ),
        valid_data=like("train_data", path=Path("data/dev.conll"), shuffle=False),
        # Words that occur once train the vector of those that training never saw.
        tokenizer=FittedWords.Config(columns=("words",), min_count=2),
        characters=FittedCharacters.Config(),
        affixes=FittedAffixes.Config(),
        labels=FittedLabels.Config(column="tags", multiple=True),
        model=Tagger.Config(
            embedding=WordEmbedding.Config(dim=100),
            character_cnn=CharacterCnn.Config(dim=32, filters=40, widths=(2, 3, 4)),
            encoder=encoder,
            dropout=0.5,
            word_dropout=0.1,
            crf=crf,
        ),
        task=WordTagging.Config(),
        optimizer=Adam.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=50),
        trainer=Trainer.Config(
            max_epochs=epochs, ema=0.999, selection=Selection.Config(metric=metric)
        ),
    )


def local(recipe: Recipe, encoder: SequenceEncoder.Config, **parts: Any) -> Recipe:
    """The recipe with a tiny model."""
    made = recipe.ingredients
    model = replace(
        made["model"],
        embedding=WordEmbedding.Config(dim=12),
        character_cnn=CharacterCnn.Config(dim=4, filters=4),
        affix_embedding=AffixEmbedding.Config(dim=2),
        encoder=encoder,
        **parts,
    )
    return tiny(recipe, model=model, trainer=replace(made["trainer"], ema=None))


@register_with_local("tagging/bilstm", partial(local, encoder=SMALL_LSTM))
def tagging_bilstm() -> Recipe:
    """A BiLSTM over words and their characters that gives each word a label on its own.

    Its ten epochs are for treebanks, of ten thousand sentences and more.
    """
    return tagging(LSTM, crf=False, epochs=10)


@register_with_local("tagging/bilstm-crf", partial(local, encoder=SMALL_LSTM))
def tagging_bilstm_crf() -> Recipe:
    """A BiLSTM with a conditional random field over sequences of labels (Ma and Hovy 2016)."""
    return tagging(LSTM, crf=True)


@register_with_local("tagging/transformer", partial(local, encoder=SMALL_ATTENTION))
def tagging_transformer() -> Recipe:
    """A Transformer encoder over words and their characters that gives each word a label."""
    return tagging(ATTENTION, crf=False)


@register_with_local("tagging/ner", partial(local, encoder=SMALL_LSTM))
def tagging_ner() -> Recipe:
    """A BiLSTM-CRF for names in BIO or BILOU tags, selected by the F1 of its spans."""
    return tagging(LSTM, crf=True, metric="span_f1")


@register_with_local("tagging/references", partial(local, encoder=SMALL_LSTM))
def tagging_references() -> Recipe:
    """The fields of references: a BiLSTM-CRF of words, their characters, affixes and shapes.

    Rows are JSON lines of ``tokens`` and ``tags``, as ``examples/prepare_references.py`` writes.
    """
    made = tagging_bilstm_crf().ingredients
    rows = TextRows.Config(
        path=Path("data/references/train.jsonl"),
        columns={"words": "tokens", "tags": "tags"},
        batch_size=16,
    )
    made["train_data"] = rows
    valid = Path("data/references/valid.jsonl")
    made["valid_data"] = like("train_data", path=valid, shuffle=False)
    made["task"] = WordTagging.Config(scheme="io")  # a field is a span
    # As many for 300 references as for 2,000: with 20 epochs of 300 a linear model is as good.
    best = Selection.Config(metric="token_accuracy")
    made["trainer"] = replace(made["trainer"], max_epochs=None, max_steps=2500, selection=best)
    return Recipe(**made)


JOINT_ATTENTION: SequenceEncoder.Config = SelfAttentionEncoder.Config(
    num_layers=2, num_heads=4, ffn_dim=256
)


def joint(encoder: SequenceEncoder.Config, *, crf: bool, lr: float = 2e-3) -> Recipe:
    """A recipe that trains on rows of an intent, a text and its slots."""
    return Recipe(
        train_data=TextRows.Config(
            path=Path("data/train.tsv"),
            columns=("label", "text", "slots"),
            optional=("slots",),  # a text without slots, where they are spans
        ),
        valid_data=like("train_data", path=Path("data/dev.tsv"), shuffle=False),
        # Words that occur once train the vector of those that training never saw.
        tokenizer=FittedWords.Config(min_count=2),
        characters=FittedCharacters.Config(column="text"),
        affixes=FittedAffixes.Config(column="text"),
        ngrams=FittedNgrams.Config(vocab_size=30_000),
        labels=FittedLabels.Config(),
        slots=FittedSlots.Config(),
        model=IntentSlotModel.Config(
            character_cnn=CharacterCnn.Config(dim=32, filters=60),
            encoder=encoder,
            dropout=0.5,
            word_dropout=0.1,
            crf=crf,
        ),
        task=IntentSlots.Config(),
        optimizer=Adam.Config(lr=lr),
        lr_scheduler=Linear.Config(warmup_steps=20),
        trainer=Trainer.Config(
            max_epochs=30, ema=0.999, selection=Selection.Config(metric="frame_accuracy")
        ),
    )


@register_with_local("joint/bilstm", partial(local, encoder=SMALL_LSTM))
def joint_bilstm() -> Recipe:
    """One BiLSTM for the intent and the slots of a text (Liu and Lane 2016)."""
    return joint(LSTM, crf=False)


@register_with_local("joint/bilstm-crf", partial(local, encoder=SMALL_LSTM))
def joint_bilstm_crf() -> Recipe:
    """A BiLSTM for the intent and, with a conditional random field, the slots of a text."""
    return joint(LSTM, crf=True)


@register_with_local("joint/transformer", partial(local, encoder=SMALL_ATTENTION))
def joint_transformer() -> Recipe:
    """A Transformer encoder for the intent and the slots of a text."""
    return joint(JOINT_ATTENTION, crf=True, lr=1e-3)


SMALL_TEXTS: dict[str, Any] = {
    "embedding": WordEmbedding.Config(dim=12),
    "encoder": CnnEncoder.Config(filters=8),
    "sequence": LstmEncoder.Config(hidden_dim=8),
}


@register_with_local(
    "joint/context", partial(local, encoder=SMALL_LSTM, context=TextsConfig(**SMALL_TEXTS))
)
def joint_context() -> Recipe:
    """A BiLSTM for the intent and the slots of the last turn of a conversation, which it reads.

    Rows are an intent, a list of turns, in TSV as JSON, and a tag for each word of the last one.
    """
    made = joint_bilstm().ingredients
    data, last = made["train_data"], "turns.-1"
    changed = {
        "train_data": replace(data, columns=("label", "turns", "slots"), lists=("turns",)),
        "tokenizer": replace(made["tokenizer"], columns=("turns",)),
        "ngrams": replace(made["ngrams"], columns=(last,)),
        "slots": FittedSlots.Config(text=last),
        "model": replace(made["model"], context=TextsConfig()),
        "task": IntentSlots.Config(column=last, context="turns"),
    }
    spelling = {name: replace(made[name], column=last) for name in ("characters", "affixes")}
    return Recipe(**{**made, **changed, **spelling})


@register_with_local("tagging/turns", partial(tiny, model=TextTagger.Config(**SMALL_TEXTS)))
def tagging_turns() -> Recipe:
    """A label for each text of a list, such as a turn: a convolution over each, a BiLSTM over all.

    A line of the file is a text: its session, the text and its label; texts of one session stand
    one after the other.
    """
    made = tagging_bilstm().ingredients
    return Recipe(
        train_data=TextRows.Config(
            path=Path("data/train.tsv"), columns=("session", "text", "label"), group_by="session"
        ),
        valid_data=like("train_data", path=Path("data/dev.tsv"), shuffle=False),
        tokenizer=FittedWords.Config(min_count=2),
        labels=FittedLabels.Config(column="label", multiple=True),
        model=TextTagger.Config(),
        task=WordTagging.Config(column="text", max_length=128, max_texts=500),
        **{name: made[name] for name in ("optimizer", "lr_scheduler", "trainer")},
    )


@register_with_local("trees/bilstm", partial(local, encoder=SMALL_LSTM))
def trees_bilstm() -> Recipe:
    """A BiLSTM that parses sentences into trees: a word's label is what opens and closes at it."""
    made = tagging_bilstm().ingredients
    column = {"column": "source"}
    changed = {
        "train_data": TextRows.Config(
            path=Path("data/top/train.tsv"), columns={"source": 1, "target": 2}, batch_size=16
        ),
        "valid_data": like("train_data", path=Path("data/top/dev.tsv"), shuffle=False),
        "tokenizer": replace(made["tokenizer"], columns=("source",)),
        "characters": replace(made["characters"], **column),
        "affixes": replace(made["affixes"], **column),
        "labels": FittedTreeTags.Config(),
        "task": TreeTagging.Config(),
        "trainer": replace(
            made["trainer"], max_epochs=20, selection=Selection.Config(metric="exact_match")
        ),
    }
    return Recipe(**{**made, **changed})


def local_rnng(recipe: Recipe) -> Recipe:
    """The recipe with a tiny model."""
    small = local(recipe, SMALL_LSTM).ingredients
    return Recipe(**{**small, "model": replace(small["model"], dim=16)})


@register_with_local("trees/rnng", local_rnng)
def trees_rnng() -> Recipe:
    """A parser over a stack, a recurrent neural network grammar (Gupta et al. 2018)."""
    made = trees_bilstm().ingredients
    tagger = made["model"]
    same = ("embedding", "character_cnn", "encoder", "dropout", "word_dropout")
    made["model"] = Rnng.Config(**{name: getattr(tagger, name) for name in same})
    made["labels"] = FittedTreeActions.Config()
    made["task"] = ShiftReduceParsing.Config()
    return Recipe(**made)
