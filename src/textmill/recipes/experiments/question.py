"""Experiments of question answering from texts; set ``train_data.path`` and ``valid_data.path``.

Files are SQuAD's by default; for others set ``train_data.columns``, which the other data follow.
Where questions can have no answer, as in SQuAD 2.0, set ``model.no_answer=true``.
"""

from functools import partial
from pathlib import Path
from typing import Any

from textmill.config.component import Config
from textmill.config.recipe import Recipe, like
from textmill.data.text_rows import TextRows
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.layers.word_embeddings import CharacterCnn, WordEmbedding
from textmill.models.readers.reader import DrqaReader, JoinedReader, Reader
from textmill.recipes.experiments.language import ENCODER, TINY_ENCODER
from textmill.recipes.experiments.variants import register_with_local, tiny
from textmill.tasks.question_answering import QuestionAnswering
from textmill.text.features.spelling import FittedCharacters
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Every, Linear, Selection, Trainer

COLUMNS = ("question", "context")


def question(
    model: Reader.Config, tokenizer: Config, *, lr: float = 2e-3, **ingredients: Any
) -> Recipe:
    """A recipe that trains a reader on questions, contexts and the answers in them."""
    return Recipe(
        train_data=TextRows.Config(
            path=Path("data/train.json"),
            columns=("id", "question", "context", "answers", "answer_starts"),
            batch_size=32,
        ),
        valid_data=like("train_data", path=Path("data/dev.json"), shuffle=False),
        tokenizer=tokenizer,
        model=model,
        task=QuestionAnswering.Config(),
        optimizer=Adam.Config(lr=lr),
        lr_scheduler=Linear.Config(warmup_steps=100),
        trainer=Trainer.Config(
            max_steps=2000,
            evaluate_every=Every(250, "steps"),
            selection=Selection.Config(metric="f1"),
        ),
        **ingredients,
    )


WORDS = FittedWords.Config(columns=COLUMNS, split="punctuation")
TINY_LSTM: SequenceEncoder.Config = LstmEncoder.Config(hidden_dim=8)
TINY_DRQA = DrqaReader.Config(
    embedding=WordEmbedding.Config(dim=12),
    character_cnn=CharacterCnn.Config(dim=4, filters=4),
    encoder=TINY_LSTM,
    question_encoder=TINY_LSTM,
)
TINY_JOINED = JoinedReader.Config(embedding=WordEmbedding.Config(dim=16), encoder=TINY_ENCODER)


@register_with_local("question/drqa", partial(tiny, model=TINY_DRQA))
def question_drqa() -> Recipe:
    """The reader of DrQA (Chen et al. 2017), which finds answers in texts."""
    encoder: SequenceEncoder.Config = LstmEncoder.Config(hidden_dim=64)
    model = DrqaReader.Config(encoder=encoder, question_encoder=encoder, dropout=0.3)
    return question(model, WORDS, characters=FittedCharacters.Config(column="context"))


@register_with_local(
    "question/transformer",
    # Words, since few rows give hardly any pieces.
    partial(tiny, model=TINY_JOINED, tokenizer=WORDS, optimizer=Adam.Config(lr=2e-3)),
)
def question_transformer() -> Recipe:
    """A Transformer encoder over the question and then the context, in pieces of words.

    It can begin with what ``bert/pretraining`` has learned: ``tokenizer.type=of_run
    tokenizer.path=RUN trainer.initialize=RUN``.
    """
    return question(
        JoinedReader.Config(embedding=WordEmbedding.Config(dim=128), encoder=ENCODER, dropout=0.1),
        FittedTokenizer.Config(kind="bpe", vocab_size=8000, lowercase=True, columns=COLUMNS),
        lr=5e-4,
    )
