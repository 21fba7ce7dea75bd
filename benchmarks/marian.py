"""The model of the benchmarks by the classes of ``transformers``: Marian's, untrained.

Layer norm stands after each block, the only form that ``transformers`` has.
"""

from typing import Any

from bare import BOS, DIM, DROPOUT, EOS, FFN, HEADS, LAYERS, PAD, UNK, VOCABULARY


def marian(*, vocabulary: int = VOCABULARY, layers: int = LAYERS) -> Any:
    """A ``MarianMTModel``, of the size that all benchmarks train unless another is named."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=vocabulary,
        d_model=DIM,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=FFN,
        decoder_ffn_dim=FFN,
        dropout=DROPOUT,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        unk_token_id=UNK,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config)
