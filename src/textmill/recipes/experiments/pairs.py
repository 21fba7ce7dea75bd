"""Pairs of texts: classes, scores, ranking, vectors; set ``train_data.path``, ``valid_data.path``.

Scores of how alike two texts are may be in any unit; they are higher the more alike they are.
"""

from functools import partial
from pathlib import Path
from typing import Any

from textmill.config import Config
from textmill.config.recipe import Recipe, like
from textmill.data.text_rows import TextRows
from textmill.models.embedding_losses import CoSent, EmbeddingLoss
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.sequence import CnnEncoder, SequenceEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.ngrams import NgramPairClassifier, NgramPairRegressor
from textmill.models.pairs import PairClassifier, PairRegressor, Ranker, SentenceEncoder
from textmill.models.poolings import MaxPooling, Pooling
from textmill.recipes.experiments.variants import local_ngrams, ngrams, register_with_local, tiny
from textmill.tasks.classification import PairClassification
from textmill.tasks.embedding import TextEmbedding
from textmill.tasks.ranking import QueryDocumentRanking
from textmill.tasks.regression import PairRegression
from textmill.text.columns.words import MOST_NGRAMS
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Linear, Selection, Trainer

TINY = WordEmbedding.Config(dim=8)
TINY_LSTM: SequenceEncoder.Config = LstmEncoder.Config(hidden_dim=4)
TINY_CNN: SequenceEncoder.Config = CnnEncoder.Config(filters=4)


def pairs(
    columns: tuple[str, ...],
    metric: str,
    *,
    batch_size: int = 32,
    min_count: int = 1,
    **ingredients: Any,
) -> Recipe:
    """A recipe that trains on rows of two texts or more."""
    texts = tuple(name for name in columns if name not in ("label", "score"))
    return Recipe(
        train_data=TextRows.Config(
            path=Path("data/train.tsv"), columns=columns, batch_size=batch_size
        ),
        valid_data=like("train_data", path=Path("data/dev.tsv"), shuffle=False),
        optimizer=Adam.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=100),
        trainer=Trainer.Config(max_epochs=6, selection=Selection.Config(metric=metric)),
        tokenizer=FittedWords.Config(columns=texts, min_count=min_count),
        **ingredients,
    )


def local(recipe: Recipe, model: Config) -> Recipe:
    """The recipe with a tiny model, its rate as it is from the first step on."""
    return tiny(recipe, model=model, lr_scheduler=Linear.Config())


@register_with_local(
    "pairs/classification",
    partial(local, model=PairClassifier.Config(embedding=TINY, encoder=TINY_LSTM)),
)
def pairs_classification() -> Recipe:
    """A classifier of pairs, a BiLSTM (Conneau et al. 2017); rows of label, text1, text2."""
    encoder: SequenceEncoder.Config = LstmEncoder.Config(hidden_dim=64)
    pooling: Pooling.Config = MaxPooling.Config()
    model = PairClassifier.Config(encoder=encoder, pooling=pooling, hidden=(128,))
    return pairs(
        ("label", "text1", "text2"),
        "accuracy",
        min_count=2,
        labels=FittedLabels.Config(),
        model=model,
        task=PairClassification.Config(),
    )


@register_with_local(
    "pairs/regression",
    partial(local, model=PairRegressor.Config(embedding=TINY, encoder=TINY_LSTM)),
)
def pairs_regression() -> Recipe:
    """A BiLSTM for both texts, to a number such as their likeness; rows of text1, text2, score."""
    return pairs(
        ("text1", "text2", "score"),
        "pearson",
        model=PairRegressor.Config(),
        task=PairRegression.Config(),
    )


@register_with_local(
    "pairs/ranking", partial(local, model=Ranker.Config(embedding=TINY, encoder=TINY_CNN, dim=4))
)
def pairs_ranking() -> Recipe:
    """Documents for queries by the cosine of two towers; rows of query, positive, negative."""
    return pairs(
        ("query", "positive", "negative"),
        "ranking_accuracy",
        model=Ranker.Config(),
        task=QueryDocumentRanking.Config(),
    )


@register_with_local("pairs/ngrams", local_ngrams)
def pairs_ngrams() -> Recipe:
    """A linear classifier over the n-grams of two texts; rows of label, text1, text2."""
    return ngrams(
        ("label", "text1", "text2"),
        "accuracy",
        labels=FittedLabels.Config(),
        model=NgramPairClassifier.Config(),
        task=PairClassification.Config(max_length=MOST_NGRAMS),
    )


tiny_vectors = partial(local, model=SentenceEncoder.Config(embedding=TINY))


@register_with_local("embedding/pairs", tiny_vectors)
def embedding_pairs() -> Recipe:
    """The mean of word vectors, learnt from texts that belong together; rows of text1, text2."""
    return pairs(
        ("text1", "text2"),
        "mrr",
        batch_size=64,  # whose second texts are the negatives
        model=SentenceEncoder.Config(),
        task=TextEmbedding.Config(),
    )


@register_with_local("embedding/similarity", tiny_vectors)
def embedding_similarity() -> Recipe:
    """The mean of word vectors, as alike as scores say; rows of text1, text2, score."""
    loss: EmbeddingLoss.Config = CoSent.Config()
    return pairs(
        ("text1", "text2", "score"),
        "spearman",
        model=SentenceEncoder.Config(),
        task=TextEmbedding.Config(loss=loss),
    )


@register_with_local("similarity/ngrams", local_ngrams)
def similarity_ngrams() -> Recipe:
    """A ridge regression of the n-grams of two texts that says how alike they are."""
    return ngrams(
        ("text1", "text2", "score"),
        "pearson",
        model=NgramPairRegressor.Config(),
        task=PairRegression.Config(max_length=MOST_NGRAMS),
    )
