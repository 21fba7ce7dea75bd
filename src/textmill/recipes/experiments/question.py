"""Experiments of question answering from texts; set ``train_data.path`` and ``valid_data.path``.

Files are SQuAD's by default; for others set ``train_data.columns``, which the other data follow.
Where questions can have no answer, as in SQuAD 2.0, set ``model.no_answer=true``.
"""

from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like, register_experiment
from textmill.data.text_rows import TextRows
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.layers.word_embeddings import CharacterCnn, WordEmbedding
from textmill.models.readers.reader import DrqaReader, JoinedReader, Reader
from textmill.tasks.question_answering import QuestionAnswering
from textmill.text.features.spelling import FittedCharacters
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Every, Linear, Selection, Trainer

ENCODER: SequenceEncoder.Config = SelfAttentionEncoder.Config(activation="gelu", positions="rotary")
"""That of ``bert/pretraining``."""
SMALL_ENCODER: SequenceEncoder.Config = SelfAttentionEncoder.Config(
    num_layers=1, num_heads=2, ffn_dim=32, positions="rotary"
)
"""That of ``bert/pretraining/local``."""
COLUMNS = ("question", "context")


def question(
    doc: str,
    model: Reader.Config,
    *,
    lr: float = 2e-3,
    max_steps: int = 2000,
    warmup: int = 100,
    **ingredients: Any,
) -> Recipe:
    """A recipe that trains a reader on questions, contexts and the answers in them."""
    return Recipe(
        doc=doc,
        train_data=TextRows.Config(
            path=Path("data/train.json"),
            columns=("id", "question", "context", "answers", "answer_starts"),
            batch_size=32,
        ),
        valid_data=like("train_data", path=Path("data/dev.json"), shuffle=False),
        model=model,
        task=QuestionAnswering.Config(),
        optimizer=Adam.Config(lr=lr),
        lr_scheduler=Linear.Config(warmup_steps=warmup),
        trainer=Trainer.Config(
            max_steps=max_steps,
            evaluate_every=Every(250, "steps"),
            selection=Selection.Config(metric="f1"),
        ),
        **ingredients,
    )


def spelled() -> dict[str, Any]:
    """Words with their characters."""
    return {
        "tokenizer": FittedWords.Config(columns=COLUMNS, split="punctuation"),
        "characters": FittedCharacters.Config(column="context"),
    }


def local(doc: str, model: Reader.Config, **ingredients: Any) -> Recipe:
    """The same with a tiny model and a few steps: seconds on a laptop, to see it run."""
    doc = f"{doc} A tiny model and 20 steps, to see that all works."
    return question(doc, model, max_steps=20, warmup=2, **ingredients)


@register_experiment("question/drqa")
def question_drqa() -> Recipe:
    """The document reader of DrQA (Chen et al. 2017), with characters."""
    encoder: SequenceEncoder.Config = LstmEncoder.Config(hidden_dim=64)
    model = DrqaReader.Config(encoder=encoder, question_encoder=encoder, dropout=0.3)
    return question("Train DrQA's reader to find answers in texts.", model, **spelled())


@register_experiment("question/transformer")
def question_transformer() -> Recipe:
    """A Transformer encoder over the question and the context behind it, in pieces of words.

    It can begin with what ``bert/pretraining`` has learned: ``tokenizer.type=of_run
    tokenizer.path=RUN trainer.initialize=RUN``.
    """
    return question(
        "Train a Transformer to find answers in texts.",
        JoinedReader.Config(embedding=WordEmbedding.Config(dim=128), encoder=ENCODER, dropout=0.1),
        lr=5e-4,
        tokenizer=FittedTokenizer.Config(
            kind="bpe", vocab_size=8000, lowercase=True, columns=COLUMNS
        ),
    )


@register_experiment("question/drqa/local")
def question_drqa_local() -> Recipe:
    """``question/drqa`` in seconds."""
    encoder: SequenceEncoder.Config = LstmEncoder.Config(hidden_dim=8)
    model = DrqaReader.Config(
        embedding=WordEmbedding.Config(dim=12),
        character_cnn=CharacterCnn.Config(dim=4, filters=4),
        encoder=encoder,
        question_encoder=encoder,
    )
    return local("Try DrQA's reader.", model, **spelled())


@register_experiment("question/transformer/local")
def question_transformer_local() -> Recipe:
    """``question/transformer`` in seconds, with words: few rows give hardly any pieces."""
    model = JoinedReader.Config(embedding=WordEmbedding.Config(dim=16), encoder=SMALL_ENCODER)
    tokenizer = FittedWords.Config(columns=COLUMNS, split="punctuation")
    return local("Try a Transformer that reads.", model, tokenizer=tokenizer)
