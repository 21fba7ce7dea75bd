"""Experiments of vectors of texts; set ``train_data.path`` and ``valid_data.path``."""

from functools import partial

from textmill.config.recipe import Recipe
from textmill.models.embedding_losses import CoSent, EmbeddingLoss
from textmill.models.pairs import SentenceEncoder
from textmill.recipes.experiments.pairs import TINY, local, pairs
from textmill.recipes.experiments.tiny import register_with_local
from textmill.tasks.embedding import TextEmbedding
from textmill.text.tokenizers.word_tokenizer import FittedWords

tiny_vectors = partial(local, model=SentenceEncoder.Config(embedding=TINY))


@register_with_local("embedding/pairs", tiny_vectors)
def embedding_pairs() -> Recipe:
    """The mean of word vectors, learnt from texts that belong together; rows of text1, text2."""
    columns = ("text1", "text2")
    return pairs(
        "Train vectors of texts that are near where texts belong together.",
        columns,
        "mrr",
        batch_size=64,  # whose second texts are the negatives
        tokenizer=FittedWords.Config(columns=columns),
        model=SentenceEncoder.Config(),
        task=TextEmbedding.Config(),
    )


@register_with_local("embedding/similarity", tiny_vectors)
def embedding_similarity() -> Recipe:
    """The mean of word vectors, as alike as scores say; rows of text1, text2, score."""
    loss: EmbeddingLoss.Config = CoSent.Config()
    return pairs(
        "Train vectors of texts that are as alike as scores say.",
        ("text1", "text2", "score"),
        "spearman",
        tokenizer=FittedWords.Config(columns=("text1", "text2")),
        model=SentenceEncoder.Config(),
        task=TextEmbedding.Config(loss=loss),
    )
