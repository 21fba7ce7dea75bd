"""Experiments of intents with slots; set ``train_data.path`` and ``valid_data.path``.

Rows are an intent, a text and a tag for each word, as ``O B-time I-time``; where slots are spans of
characters, as ``16:24:time``, set ``slots.format=spans``, and ``train_data.columns`` to the order
of the file. Intents begin with a linear classifier of n-grams, to whose scores the encoder adds.
"""

from functools import partial
from pathlib import Path

from textmill.config.recipe import Recipe, like
from textmill.data.text_rows import TextRows
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.layers.word_embeddings import CharacterCnn
from textmill.models.tagger import IntentSlotModel
from textmill.recipes.experiments.tagging import LSTM, SMALL_ATTENTION, SMALL_LSTM, local
from textmill.recipes.experiments.tiny import register_with_local
from textmill.tasks.intent_slots import IntentSlots
from textmill.text.features.labels import FittedLabels
from textmill.text.features.slots import FittedSlots
from textmill.text.features.spelling import FittedAffixes, FittedCharacters
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Linear, Selection, Trainer

ATTENTION: SequenceEncoder.Config = SelfAttentionEncoder.Config(
    num_layers=2, num_heads=4, ffn_dim=256
)


def joint(doc: str, encoder: SequenceEncoder.Config, *, crf: bool, lr: float = 2e-3) -> Recipe:
    """A recipe that trains on rows of an intent, a text and its slots."""
    return Recipe(
        doc=doc,
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
            max_epochs=30,
            ema=0.999,
            selection=Selection.Config(metric="frame_accuracy"),
        ),
    )


@register_with_local("joint/bilstm", partial(local, encoder=SMALL_LSTM))
def joint_bilstm() -> Recipe:
    """One BiLSTM for the intent and the slots of a text (Liu and Lane 2016)."""
    return joint("Train a BiLSTM that finds intents and slots.", LSTM, crf=False)


@register_with_local("joint/bilstm-crf", partial(local, encoder=SMALL_LSTM))
def joint_bilstm_crf() -> Recipe:
    """The same with a conditional random field over sequences of tags."""
    return joint("Train a BiLSTM-CRF that finds intents and slots.", LSTM, crf=True)


@register_with_local("joint/transformer", partial(local, encoder=SMALL_ATTENTION))
def joint_transformer() -> Recipe:
    """A Transformer encoder for the intent and the slots of a text."""
    doc = "Train a Transformer that finds intents and slots."
    return joint(doc, ATTENTION, crf=True, lr=1e-3)
