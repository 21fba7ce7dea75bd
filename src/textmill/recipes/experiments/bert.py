"""Experiments that train an encoder on bare text; set ``train_data.path`` and ``valid_data.path``.

The models are those of ``classification/transformer``, whole and tiny, which begins with what was
learned here by ``trainer.initialize``.
"""

from textmill.config.recipe import Recipe, register_experiment
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.masked_language_model import MaskedLanguageModel
from textmill.recipes.experiments.language import PERPLEXITY, lines
from textmill.tasks.masked_language_model import MaskedLanguageModeling
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import AdamW, Every, Linear, Trainer

ENCODER: SequenceEncoder.Config = SelfAttentionEncoder.Config(activation="gelu", positions="rotary")
"""Rotary positions: with sinusoids the loss stays that of single tokens for hundreds of steps."""


@register_experiment("bert/pretraining")
def bert_pretraining() -> Recipe:
    """A Transformer encoder that finds masked pieces of words (Devlin et al. 2019)."""
    return lines(
        "Train a Transformer encoder on masked text, as BERT was.",
        "valid.txt",
        32,
        tokenizer=FittedTokenizer.Config(
            kind="bpe", vocab_size=8000, lowercase=True, columns=("text",)
        ),
        model=MaskedLanguageModel.Config(encoder=ENCODER),
        task=MaskedLanguageModeling.Config(),
        optimizer=AdamW.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=200),
        trainer=Trainer.Config(
            max_steps=4000, evaluate_every=Every(500, "steps"), selection=PERPLEXITY
        ),
    )


@register_experiment("bert/pretraining/local")
def bert_pretraining_local() -> Recipe:
    """The same, tiny: seconds on a laptop."""
    encoder: SequenceEncoder.Config = SelfAttentionEncoder.Config(
        num_layers=1, num_heads=2, ffn_dim=32, positions="rotary"
    )
    return lines(
        "Train a tiny Transformer encoder on masked text.",
        "valid.txt",
        32,
        tokenizer=FittedWords.Config(),
        model=MaskedLanguageModel.Config(embedding=WordEmbedding.Config(dim=16), encoder=encoder),
        task=MaskedLanguageModeling.Config(block=32),
        optimizer=AdamW.Config(lr=5e-3),
        lr_scheduler=Linear.Config(warmup_steps=5),
        trainer=Trainer.Config(
            max_steps=60, evaluate_every=Every(20, "steps"), selection=PERPLEXITY
        ),
    )
