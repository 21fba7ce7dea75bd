"""The experiments the library ships: recipes by name, ready for ``textmill train NAME``."""

from dataclasses import replace
from pathlib import Path

from textmill.config.recipe import Recipe, like
from textmill.data.text_pairs import TextPairs
from textmill.models.decoding import Decoding
from textmill.models.transformer import Transformer
from textmill.recipes.corpus.data import CorpusPairs
from textmill.recipes.experiments.tiny import register_with_local, tiny
from textmill.tasks.generation import Translation
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.training import AdamW, Every, Linear, Selection, Trainer


def local(recipe: Recipe) -> Recipe:
    """The recipe with a tiny model over characters and a few steps: whether all fits together."""
    made = dict(recipe.ingredients)
    made.pop("test_data", None)
    # Untrained, it would fill every answer up to a multiple of its source.
    short = Decoding(max_length_a=0.0, max_length_b=10)
    return tiny(
        Recipe(recipe.doc, **made),
        tokenizer=replace(made["tokenizer"], kind="characters", vocab_size=5000),
        model=Transformer.Config(
            dim=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, ffn_dim=32
        ),
        task=replace(made.get("task", Translation.Config()), decoding=short),
    )


@register_with_local("translation/tatoeba", local)
def translation_tatoeba() -> Recipe:
    """English to French on Tatoeba; set ``train_data.path`` and ``valid_data.path``."""
    return Recipe(
        doc="Train an English-French translator on the Tatoeba sentence pairs.",
        train_data=TextPairs.Config(path=Path("data/tatoeba/train.tsv"), max_tokens=2048),
        valid_data=like("train_data", path=Path("data/tatoeba/dev.tsv"), shuffle=False),
        tokenizer=FittedTokenizer.Config(
            vocab_size=5000, source_langs=("eng",), target_langs=("fra",)
        ),
        model=Transformer.Config(dim=128, num_encoder_layers=4, num_decoder_layers=4, dropout=0.05),
        task=Translation.Config(label_smoothing=0.1),
        optimizer=AdamW.Config(lr=3e-3),
        lr_scheduler=Linear.Config(warmup_steps=400),
        trainer=Trainer.Config(
            max_steps=7000,  # about a quarter of an hour on two cores
            evaluate_every=Every(1400, "steps"),
            ema=0.999,  # of the weights, so that an evaluation in between is near its best
            selection=Selection.Config(metric="bleu"),
        ),
    )


@register_with_local("translation/demo", local)
def translation_demo() -> Recipe:
    """English to French on the corpus that textmill generates: minutes on a laptop, no download."""
    return Recipe(
        doc="Train an English-French translator on the built-in corpus.",
        train_data=CorpusPairs.Config(part="train", max_tokens=2048),
        valid_data=like("train_data", part="valid", shuffle=False),
        test_data=like("train_data", part="test", shuffle=False),
        tokenizer=FittedTokenizer.Config(
            vocab_size=1000, source_langs=("eng",), target_langs=("fra",)
        ),
        model=Transformer.Config(dim=128, num_encoder_layers=2, num_decoder_layers=2, dropout=0.05),
        optimizer=AdamW.Config(lr=3e-3),
        lr_scheduler=Linear.Config(warmup_steps=200),
        trainer=Trainer.Config(
            max_steps=1800,
            evaluate_every=Every(600, "steps"),
            selection=Selection.Config(metric="bleu"),
        ),
    )
