"""What is measured of decoding: the same model in textmill, ``transformers`` and CTranslate2.

The model is Marian's (layer norm after each block, the only form that ``transformers`` has) of the
size that all benchmarks train, untrained. Its weights are textmill's, handed on by a file.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from bare import BATCH, BOS, DIM, EOS, FFN, HEADS, LAYERS, PAD, VOCABULARY
from marian import marian
from safetensors.torch import load_file, save_file
from torch import Tensor

NEW = 32
"""New tokens of each sentence."""
LARGER = 3.0
Rows = list[list[int]]
Peer = Callable[[Rows], Rows]
Weights = dict[str, Tensor]


def padded(rows: Rows) -> tuple[Tensor, Tensor]:
    """Ids and their lengths."""
    tensors = [torch.tensor(row) for row in rows]
    ids = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=PAD)
    return ids, torch.tensor([len(row) for row in rows])


def textmill_model() -> Any:
    from textmill.models.transformer import Transformer

    torch.manual_seed(0)
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=VOCABULARY, pad_idx=PAD))
    config = Transformer.Config(
        dim=DIM,
        num_heads=HEADS,
        num_encoder_layers=LAYERS,
        num_decoder_layers=LAYERS,
        ffn_dim=FFN,
        norm_order="post",
    )
    return config.build(tokenizer=tokenizer).eval()


def write_weights(path: Path) -> None:
    """The weights of :func:`textmill_model`, under textmill's names.

    Those of layers are made larger: as they start, the model says the same to every sentence.
    """
    state = textmill_model().state_dict()
    larger = {n for n, w in state.items() if w.ndim == 2 and "layers" in n}
    save_file({n: w * LARGER if n in larger else w.clone() for n, w in state.items()}, path)


# -- textmill


def textmill(beam: int, weights: Path, *, fast: bool) -> Peer:
    from textmill.models.decoding import Decoding, decode

    model = textmill_model()
    model.load_state_dict(load_file(weights))
    if not fast:
        model.step = model.step  # a step that may be the user's own is not passed by
    forced = {"max_length_a": 0.0, "max_length_b": NEW, "min_length": NEW}
    decoding = Decoding(beam_size=beam, **forced)

    def run(rows: Rows) -> Rows:
        found = decode(model, *padded(rows), decoding, prefix=[BOS], eos_idx=EOS)
        return [row[0].ids for row in found]

    return run


# -- transformers


def marian_weights(ours: Weights) -> Weights:
    """textmill's weights under the names of ``transformers``, which splits attention's products."""
    found = {"model.shared.weight": ours["output_weight"]}
    parts = [("attention", "self_attn")]
    for side in ("encoder", "decoder"):
        for layer in range(LAYERS):
            us, them = f"{side}.layers.{layer}", f"model.{side}.layers.{layer}"
            for kind in ("weight", "bias"):
                for part, name in parts:
                    if part == "attention":
                        products = ours[f"{us}.{part}.qkv.{kind}"].chunk(3)
                    else:
                        keys_values = ours[f"{us}.{part}.kv.{kind}"].chunk(2)
                        products = (ours[f"{us}.{part}.q.{kind}"], *keys_values)
                    products = (*products, ours[f"{us}.{part}.out.{kind}"])
                    for product, weight in zip(("q", "k", "v", "out"), products, strict=True):
                        found[f"{them}.{name}.{product}_proj.{kind}"] = weight
                    norm = ours[f"{us}.{part}_residual.norm.{kind}"]
                    found[f"{them}.{name}_layer_norm.{kind}"] = norm
                for one, two in (("inner", "fc1"), ("outer", "fc2")):
                    found[f"{them}.{two}.{kind}"] = ours[f"{us}.feed_forward.{one}.{kind}"]
                norm = ours[f"{us}.feed_forward_residual.norm.{kind}"]
                found[f"{them}.final_layer_norm.{kind}"] = norm
        parts.append(("cross_attention", "encoder_attn"))
    return found


def transformers(beam: int, weights: Path) -> Peer:
    model = marian(vocabulary=VOCABULARY, layers=LAYERS).eval()
    wrong = model.load_state_dict(marian_weights(load_file(weights)), strict=False)
    made_of_others = ("embed_tokens.weight", "embed_positions.weight", "lm_head.weight", "_bias")
    left = [name for name in wrong.missing_keys if not name.endswith(made_of_others)]
    assert not left, left
    assert not wrong.unexpected_keys, wrong.unexpected_keys

    def run(rows: Rows) -> Rows:
        ids, _ = padded(rows)
        made = model.generate(
            input_ids=ids,
            attention_mask=(ids != PAD).long(),
            num_beams=beam,
            min_new_tokens=NEW,
            max_new_tokens=NEW,
            do_sample=False,
            early_stopping=False,
        )
        return made[:, 1:].tolist()

    return run


# -- CTranslate2

PIECES = [str(i) if i > EOS else ("<pad>", "<unk>", "<s>", "</s>")[i] for i in range(VOCABULARY)]


def ctranslate2_layer(target: Any, ours: Weights, place: str, *, decoder: bool) -> None:
    def linear(spec: Any, name: str) -> None:
        spec.weight = ours[f"{place}.{name}.weight"].numpy()
        spec.bias = ours[f"{place}.{name}.bias"].numpy()

    def norm(spec: Any, name: str) -> None:
        spec.gamma = ours[f"{place}.{name}_residual.norm.weight"].numpy()
        spec.beta = ours[f"{place}.{name}_residual.norm.bias"].numpy()

    norm(target.self_attention.layer_norm, "attention")
    linear(target.self_attention.linear[0], "attention.qkv")
    linear(target.self_attention.linear[1], "attention.out")
    if decoder:
        norm(target.attention.layer_norm, "cross_attention")
        linear(target.attention.linear[0], "cross_attention.q")
        linear(target.attention.linear[1], "cross_attention.kv")
        linear(target.attention.linear[2], "cross_attention.out")
    norm(target.ffn.layer_norm, "feed_forward")
    linear(target.ffn.linear_0, "feed_forward.inner")
    linear(target.ffn.linear_1, "feed_forward.outer")


def ctranslate2_spec(ours: Weights) -> Any:
    from ctranslate2.specs import common_spec, transformer_spec

    spec = transformer_spec.TransformerSpec.from_config(
        (LAYERS, LAYERS), HEADS, pre_norm=False, activation=common_spec.Activation.RELU
    )
    table, positions = (
        ours["output_weight"].numpy(),
        textmill_model().source.positions.table.numpy(),
    )
    for name, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = side.embeddings[0] if name == "encoder" else side.embeddings
        embeddings.weight = table
        side.position_encodings.encodings = positions
        side.scale_embeddings = True
        for number, target in enumerate(side.layer):
            place = f"{name}.layers.{number}"
            ctranslate2_layer(target, ours, place, decoder=name == "decoder")
    spec.decoder.projection.weight = table
    spec.register_source_vocabulary(PIECES)
    spec.register_target_vocabulary(PIECES)
    spec.config.add_source_eos = False
    spec.config.decoder_start_token = "<s>"
    spec.validate()
    return spec


def ctranslate2(beam: int, weights: Path, threads: int) -> Peer:
    from ctranslate2 import Translator

    number = {piece: i for i, piece in enumerate(PIECES)}
    with tempfile.TemporaryDirectory() as folder:
        ctranslate2_spec(load_file(weights)).save(folder)
        translator = Translator(folder, device="cpu", intra_threads=threads, inter_threads=1)

    def run(rows: Rows) -> Rows:
        found = translator.translate_batch(
            [[PIECES[i] for i in row] for row in rows],
            beam_size=beam,
            max_batch_size=BATCH,
            min_decoding_length=NEW,
            max_decoding_length=NEW,
        )
        return [[number[piece] for piece in row.hypotheses[0]] for row in found]

    return run
