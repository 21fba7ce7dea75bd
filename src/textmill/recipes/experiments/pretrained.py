"""Experiments that fine-tune a pretrained model; set ``model.encoder.path`` and the data."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like, register_experiment
from textmill.data.text_pairs import TextPairs
from textmill.models.classifier import Classifier, Regressor
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.pairs import PairClassifier, PairRegressor, Ranker, SentenceEncoder
from textmill.models.poolings import MeanPooling, Pooling
from textmill.models.readers.pretrained import PretrainedReader
from textmill.models.readers.sentences import SentenceScorer
from textmill.models.tagger import IntentSlotModel, Tagger
from textmill.recipes.experiments.generation import summarization_scitldr
from textmill.recipes.experiments.language import PERPLEXITY, lines
from textmill.recipes.experiments.pairs import (
    embedding_pairs,
    pairs_classification,
    pairs_ranking,
    pairs_regression,
)
from textmill.recipes.experiments.question import question_transformer
from textmill.recipes.experiments.tagging import (
    joint_transformer,
    tagging_ner,
    tagging_transformer,
    trees_bilstm,
)
from textmill.recipes.experiments.texts import classification_transformer, regression_docnn
from textmill.tasks.classification import ContrastiveClassification, PairClassification
from textmill.tasks.generation import (
    ExtractiveSummarization,
    SemanticParsing,
    Summarization,
    Translation,
)
from textmill.tasks.intent_slots import IntentSlots
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.regression import PairRegression
from textmill.tasks.seq2seq import Seq2Seq
from textmill.tasks.tagging import WordTagging
from textmill.text.features.spelling import PretrainedPieces
from textmill.text.tokenizers.pretrained import PretrainedTokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import AdamW, Linear, Selection, Trainer
from textmill.training.progress import Every

ENCODER: SequenceEncoder.Config = PretrainedEncoder.Config()
EPOCHS = 5
"""Passes over a few thousand rows; a hundred rows want 25."""


def fine_tuned(recipe: Recipe, *, model: Any, fast: Sequence[str] = (), **changed: Any) -> Recipe:
    """A recipe with a pretrained encoder and its tokenizer, or its pieces, in place of its own.

    Parameters whose names match ``fast`` begin from nothing, and learn ten times as fast.
    """
    made = {**recipe.ingredients, "model": model, **changed}
    if "pieces" not in changed:
        made["tokenizer"] = PretrainedTokenizer.Config()
    for name in ("affixes", "characters", "ngrams"):
        made.pop(name, None)
    if "trainer" not in changed:
        made["trainer"] = replace(made["trainer"], max_epochs=EPOCHS)
    # Chosen over seven sets with MiniLM, whose layers have 384 features.
    rates = dict.fromkeys(fast, 10.0)
    made["optimizer"] = AdamW.Config(
        lr=2e-4, lr_width=384, weight_decay=0.01, layer_decay=0.9, rates=rates
    )
    made["lr_scheduler"] = Linear.Config(warmup_ratio=0.1)
    return Recipe(**made)


@register_experiment("classification/pretrained")
def classification_pretrained() -> Recipe:
    """A pretrained encoder (BERT, RoBERTa, MiniLM, ...), fine-tuned on rows of label, text."""
    model = Classifier.Config(encoder=ENCODER, dropout=0.1)
    return fine_tuned(classification_transformer(), model=model)


@register_experiment("classification/few")
def classification_few() -> Recipe:
    """A pretrained encoder, fine-tuned on a few rows of each label, such as 8; label, text."""
    return fine_tuned(
        classification_transformer(),
        task=ContrastiveClassification.Config(),
        model=Classifier.Config(encoder=ENCODER, dropout=0.1),
        trainer=Trainer.Config(
            max_steps=60,
            evaluate_every=Every(20, "steps"),
            selection=Selection.Config(metric="accuracy"),
        ),
        fast=("scores.*",),
    )


@register_experiment("embedding/pretrained")
def embedding_pretrained() -> Recipe:
    """A pretrained encoder, fine-tuned to make near vectors of text1 and text2."""
    return fine_tuned(embedding_pairs(), model=SentenceEncoder.Config(encoder=ENCODER))


def tagged(recipe: Recipe, *, column: str = "words", **changed: Any) -> Recipe:
    """The same of a recipe whose labels are of words."""
    return fine_tuned(
        recipe,
        tokenizer=FittedWords.Config(columns=(column,)),
        pieces=PretrainedPieces.Config(column=column),
        **changed,
    )


@register_experiment("tagging/pretrained")
def tagging_pretrained() -> Recipe:
    """A pretrained encoder (BERT, RoBERTa, MiniLM, ...), fine-tuned to give each word a label."""
    return tagged(
        tagging_transformer(),
        task=WordTagging.Config(max_length=256),
        model=Tagger.Config(encoder=ENCODER, dropout=0.1),
    )


@register_experiment("ner/pretrained")
def ner_pretrained() -> Recipe:
    """A pretrained encoder, fine-tuned to find names in BIO or BILOU tags."""
    return tagged(
        tagging_ner(),
        task=WordTagging.Config(max_length=256),
        model=Tagger.Config(encoder=ENCODER, dropout=0.1, crf=True),
    )


@register_experiment("joint/pretrained")
def joint_pretrained() -> Recipe:
    """A pretrained encoder, fine-tuned to find the intent and the slots of a text."""
    pooling: Pooling.Config = MeanPooling.Config()
    return tagged(
        joint_transformer(),
        column="text",
        task=IntentSlots.Config(max_length=256),
        model=IntentSlotModel.Config(encoder=ENCODER, pooling=pooling, dropout=0.1, crf=True),
        # On snips F1 of slots was 94.7 without the random field, 95.2 with it, 95.9 with these.
        fast=("crf.*", "intents.*", "tags.*"),
    )


@register_experiment("pairs/pretrained")
def pairs_pretrained() -> Recipe:
    """A pretrained encoder that reads two texts as one; rows of label, text1, text2."""
    return fine_tuned(
        pairs_classification(),
        task=PairClassification.Config(max_length=128),
        model=PairClassifier.Config(encoder=ENCODER, dropout=0.1),
    )


@register_experiment("similarity/pretrained")
def similarity_pretrained() -> Recipe:
    """A pretrained encoder that reads two texts as one, for how alike they are."""
    return fine_tuned(
        pairs_regression(),
        task=PairRegression.Config(max_length=128),
        model=PairRegressor.Config(encoder=ENCODER, dropout=0.1),
    )


@register_experiment("regression/pretrained")
def regression_pretrained() -> Recipe:
    """A pretrained encoder, fine-tuned to give texts a number; rows of score, text."""
    model = Regressor.Config(encoder=ENCODER, dropout=0.1)
    return fine_tuned(regression_docnn(), model=model)


@register_experiment("trees/pretrained")
def trees_pretrained() -> Recipe:
    """A pretrained encoder, fine-tuned to parse sentences into trees of intents and slots."""
    return tagged(
        trees_bilstm(),
        column="source",
        model=Tagger.Config(encoder=ENCODER, dropout=0.1),
        trainer=Trainer.Config(max_epochs=10, selection=Selection.Config(metric="exact_match")),
    )


@register_experiment("summarization/extractive")
def summarization_extractive() -> Recipe:
    """A pretrained encoder, fine-tuned to find the sentences that sum up a text."""
    made = summarization_scitldr().ingredients
    recipe = Recipe(
        train_data=replace(made["train_data"], max_tokens=None, batch_size=8),
        valid_data=made["valid_data"],
    )
    return fine_tuned(
        recipe,
        pieces=PretrainedPieces.Config(column="source", length=64),
        task=ExtractiveSummarization.Config(),
        model=SentenceScorer.Config(),
        trainer=Trainer.Config(max_epochs=3, selection=Selection.Config(metric="rouge1")),
    )


@register_experiment("ranking/pretrained")
def ranking_pretrained() -> Recipe:
    """A pretrained encoder of queries and documents; rows of query, positive, negative."""
    model = Ranker.Config(encoder=ENCODER, dim=None, dropout=0.1)
    return fine_tuned(pairs_ranking(), model=model)


@register_experiment("question/pretrained")
def question_pretrained() -> Recipe:
    """A pretrained encoder, fine-tuned to find the answers to questions in texts."""
    made = question_transformer()
    # 32 questions whose contexts fill two windows each took 18 GB; so many tokens take at most 5.
    rows = replace(made.ingredients["train_data"], batch_size=None, max_tokens=4096)
    return fine_tuned(
        made,
        train_data=rows,
        model=PretrainedReader.Config(),
        trainer=Trainer.Config(max_epochs=4, selection=Selection.Config(metric="f1")),
    )


@register_experiment("language/pretrained")
def language_pretrained() -> Recipe:
    """A pretrained decoder (GPT-2, Llama, Qwen, ...), fine-tuned on texts; set ``model.path``."""
    return lines(
        "dev.txt",
        8,
        tokenizer=PretrainedTokenizer.Config(),
        model=PretrainedLanguageModel.Config(),
        task=LanguageModeling.Config(block=128),
        optimizer=AdamW.Config(lr=5e-5, weight_decay=0.01),
        lr_scheduler=Linear.Config(warmup_ratio=0.1),
        trainer=Trainer.Config(max_epochs=3, selection=PERPLEXITY),
    )


def text_to_text(task: Seq2Seq.Config, *, metric: str) -> Recipe:
    """A recipe that fine-tunes a pretrained encoder-decoder on pairs of source and target."""
    return Recipe(
        train_data=TextPairs.Config(path=Path("data/train.tsv"), max_tokens=4096),
        valid_data=like("train_data", path=Path("data/dev.tsv"), shuffle=False),
        tokenizer=PretrainedTokenizer.Config(),
        model=PretrainedSeq2Seq.Config(),
        task=task,
        optimizer=AdamW.Config(lr=1e-4, weight_decay=0.01),
        lr_scheduler=Linear.Config(warmup_ratio=0.1),
        trainer=Trainer.Config(max_epochs=3, selection=Selection.Config(metric=metric)),
    )


@register_experiment("translation/pretrained")
def translation_pretrained() -> Recipe:
    """A pretrained encoder-decoder (Marian, NLLB, mT5, ...), fine-tuned to translate."""
    return text_to_text(Translation.Config(), metric="bleu")


@register_experiment("summarization/pretrained")
def summarization_pretrained() -> Recipe:
    """A pretrained encoder-decoder (BART, T5, ...), fine-tuned to summarize texts."""
    task = Summarization.Config(max_source_length=1024, over_length="skip")
    return text_to_text(task, metric="rouge1")


@register_experiment("parsing/pretrained")
def parsing_pretrained() -> Recipe:
    """A pretrained encoder-decoder (BART, T5, ...), fine-tuned to give texts their logical form."""
    return text_to_text(SemanticParsing.Config(), metric="exact_match")
