"""Small random checkpoints of the families that transformers knows, as save_pretrained lays out."""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer, train_sentencepiece

TEXTS = [
    "the cat sat on the mat",
    "dogs bark at the unbelievable moon",
    "Fabulous films are rare, aren't they?",
]
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
}
ENCODERS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"type_vocab_size": 1},
    "electra": {"embedding_size": 8},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8},
}
"""Model types with their settings beside the small sizes."""

_BART = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 60,
}
_T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
SEQ2SEQ: dict[str, dict[str, Any]] = {
    "bart": _BART,
    "m2m_100": {**_BART, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0},
    "marian": {**_BART, "activation_function": "swish", "scale_embedding": True},
    "mt5": {**_T5, "feed_forward_proj": "gated-gelu"},
    "nllb": {**_BART, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0},
    "t5": _T5,
}
"""Families of encoder-decoders with their settings; ``nllb`` is an ``m2m_100``."""
LANGS: dict[str, tuple[str, str]] = {"m2m_100": ("en", "fr"), "nllb": ("eng_Latn", "fra_Latn")}
"""Languages of the families that have such."""


def word_piece() -> tokenizers.Tokenizer:
    """Word pieces as BERT's; not trained, for training breaks ties otherwise each time."""
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted({letter for text in TEXTS for letter in text.lower()} - {" "})
    pieces = [*letters, *(f"##{letter}" for letter in letters), "the", "cat", "dog", "##able"]
    vocab = {piece: number for number, piece in enumerate([*marks, *pieces])}
    made = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    made.add_special_tokens(marks)
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return made


def byte_pairs(
    marks: Sequence[str] = ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
) -> tokenizers.Tokenizer:
    """Pairs of bytes as RoBERTa's."""
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "t"), ("Ġ", "c"), ("Ġc", "at")]
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in merges)]
    vocab = {piece: number for number, piece in enumerate([*marks, *pieces])}
    made = tokenizers.Tokenizer(models.BPE(vocab, merges))
    made.add_special_tokens([*marks])
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    if "<mask>" in marks:
        made.post_processor = processors.RobertaProcessing(
            ("</s>", 2), ("<s>", 0), add_prefix_space=False
        )
    return made


def save_random(folder: Path, kind: Any, family: str, settings: dict[str, Any]) -> None:
    """Saves a model of a family whose weights are drawn with one seed."""
    torch.manual_seed(0)
    with torch.no_grad():
        model = kind.from_config(transformers.AutoConfig.for_model(family, **settings))
        for parameter in model.parameters():  # what begins as zeros and ones says nothing
            if parameter.requires_grad:
                parameter.normal_(std=0.2)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(std=0.2)
    model.save_pretrained(folder)


def save_encoder(folder: Path, family: str, **more: Any) -> Path:
    """A checkpoint of a family, with its tokenizer; of the same seed."""
    folder.mkdir(parents=True)
    tokenizer = byte_pairs() if family == "roberta" else word_piece()
    settings = {**SMALL, **ENCODERS[family], **more, "vocab_size": tokenizer.get_vocab_size()}
    settings["pad_token_id"] = 1 if family == "roberta" else 0
    save_random(folder, transformers.AutoModel, family, settings)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


GPT2_SIZES = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 40}
LANGUAGE_MODELS: dict[str, tuple[list[str], str, dict[str, Any]]] = {
    "gpt2": (["<|endoftext|>"], "", {**GPT2_SIZES, "bos_token_id": 0, "eos_token_id": 0}),
    "llama": (["<unk>", "<s>", "</s>"], "<s>", {**SMALL, "num_key_value_heads": 1}),
    "qwen2": (
        ["<|endoftext|>", "<|im_end|>"],
        "",
        {**SMALL, "num_key_value_heads": 1, "vocab_size": 300, "rope_theta": 500.0},
    ),
    "opt": (
        ["<s>", "<pad>", "</s>", "<unk>"],
        "</s>",
        {**SMALL, "ffn_dim": 24, "word_embed_proj_dim": 8, "bos_token_id": 2},
    ),
    "gpt_neox": (["<|endoftext|>", "<|padding|>"], "", {**SMALL, "rotary_pct": 0.5}),
    "gemma": (
        ["<pad>", "<eos>", "<bos>", "<unk>"],
        "<bos>",
        {**SMALL, "num_key_value_heads": 1, "head_dim": 8, "vocab_size": 280},
    ),
}
"""Decoders: the marks of their tokenizers, the one before a text, and settings."""


def save_language_model(folder: Path, family: str, **more: Any) -> Path:
    """A checkpoint of a decoder, with its tokenizer; of the same seed."""
    folder.mkdir(parents=True)
    marks, before, settings = LANGUAGE_MODELS[family]
    tokenizer = byte_pairs(marks)
    if before:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{before} $A", special_tokens=[(before, marks.index(before))]
        )
    settings = {"vocab_size": tokenizer.get_vocab_size(), **settings, **more}
    save_random(folder, transformers.AutoModelForCausalLM, family, settings)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def unigram(folder: Path) -> None:
    """A tokenizer.json as T5's."""
    marks = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    letters = sorted({letter for text in TEXTS for letter in text} - {" "})
    pieces = [(piece, -3.0) for piece in ("▁", *letters)]
    pieces += [("▁the", -2.0), ("▁cat", -2.5), ("at", -2.25), ("▁film", -2.75)]
    made = tokenizers.Tokenizer(models.Unigram([*marks, *pieces], unk_id=2))
    made.add_special_tokens(["<pad>", "</s>", "<unk>"])
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    made.decoder = decoders.Metaspace(prepend_scheme="always")
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    made.save(str(folder / "tokenizer.json"))


def sentence_pieces(folder: Path, family: str) -> None:
    """The files of Marian's tokenizer, or of M2M-100's."""
    marian = family == "marian"
    files = ["source.spm", "target.spm"] if marian else ["sentencepiece.bpe.model"]
    marks = ["</s>", "<unk>"] if marian else ["<s>", "<pad>", "</s>", "<unk>"]
    vocab = {mark: number for number, mark in enumerate(marks)}
    for number, file in enumerate(files):
        train_sentencepiece(TEXTS[number:] * 9, folder / file, vocab_size=32)
        found = MultilingualTokenizer.from_file(folder / file).pieces
        for i in range(4, found.vocab_size()):
            vocab.setdefault(found.IdToPiece(i), len(vocab))
    if marian:
        vocab |= {">>fra<<": len(vocab), "<pad>": len(vocab) + 1}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    kind: Any = transformers.MarianTokenizer if marian else transformers.M2M100Tokenizer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Moses' rules are not installed
        kind.from_pretrained(folder).save_pretrained(folder)


def nllb(folder: Path) -> None:
    """A tokenizer.json of pairs, with languages."""
    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    letters = sorted({letter for text in TEXTS for letter in text} - {" "})
    pieces = [*marks, "▁", *letters, "at", "▁t", "▁th"]
    made = transformers.NllbTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)},
        merges=[("a", "t"), ("▁", "t"), ("▁t", "h")],
        extra_special_tokens=[*LANGS["nllb"], "spa_Latn"],
    )
    made.save_pretrained(folder)


def seq2seq_settings(folder: Path, family: str) -> dict[str, Any]:
    """The architecture of a family, of a few more ids than its tokenizer has."""
    settings: dict[str, Any] = {**SEQ2SEQ[family], "vocab_size": 144}
    if family in ("marian", "m2m_100"):
        pieces = json.loads((folder / "vocab.json").read_text())
        settings["vocab_size"] = len(pieces) + (0 if family == "marian" else 100)  # languages
    if family == "marian":
        pad = pieces["<pad>"]
        settings |= {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0}
    if family == "bart":
        settings["vocab_size"] = 320
    if family == "t5":
        settings["decoder_start_token_id"] = 0
    if family in ("bart", "marian"):
        settings["forced_eos_token_id"] = None
    return settings


def save_seq2seq(folder: Path, family: str, **more: Any) -> Path:
    """A checkpoint of an encoder-decoder, with its tokenizer; of the same seed."""
    folder.mkdir(parents=True)
    if family in ("marian", "m2m_100"):
        sentence_pieces(folder, family)
    elif family == "nllb":
        nllb(folder)
    elif family == "bart":
        byte_pairs().save(str(folder / "tokenizer.json"))
    else:
        unigram(folder)
    settings = seq2seq_settings(folder, family) | more
    kind = "m2m_100" if family == "nllb" else family
    save_random(folder, transformers.AutoModelForSeq2SeqLM, kind, settings)
    return folder


def changed(folder: Path, file: str, **values: object) -> None:
    """Sets entries of a JSON file."""
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
