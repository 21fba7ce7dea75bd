"""Textmill's tokenizers as a ``tokenizer.json``, with the same ids for every text.

A mark's name has a space in it there, which no piece of a text can have: a text that says ``</s>``
stays text, as it does here. A pretrained tokenizer keeps the names of its marks.
"""

import base64
import itertools
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from textmill.errors import UserError
from textmill.runtime.files import write_file
from textmill.text.tokenizers.base_tokenizer import TaggedTokenizer
from textmill.text.tokenizers.character_tokenizers import ByteTokenizer, CharacterTokenizer
from textmill.text.tokenizers.huggingface import HuggingFaceTokenizer, tokenizers
from textmill.text.tokenizers.pretrained import PretrainedSentencePiece, PretrainedTokenizer
from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer
from textmill.text.tokenizers.tokenizer import UNKNOWN, Tokenizer
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

MARKS = {"pad": "<pad >", "bos": "<s >", "eos": "</s >", "unk": "<unk >"}
"""Names of marks that a vocabulary has no name for."""
NAMES = {0: MARKS["pad"], 2: MARKS["bos"], 3: MARKS["eos"]}
"""Those of textmill's own vocabularies."""
NORMAL, UNK, USER_DEFINED, BYTE = 1, 2, 4, 6
"""Types of a SentencePiece model's pieces."""
UNIGRAM, BPE = 1, 2
"""Types of a SentencePiece model."""


def write_tokenizer(
    folder: Path,
    tokenizer: Tokenizer,
    *,
    before: Sequence[int],
    after: Sequence[int],
    newline: bool = False,
    **settings: Any,
) -> None:
    """Writes ``tokenizer.json`` and ``tokenizer_config.json``.

    ``settings`` are further ones of ``tokenizer_config.json``, the others :func:`tokenizer_json`'s.
    """
    if isinstance(tokenizer, PretrainedSentencePiece):
        tokenizer.write_folder(folder, **settings)
        return
    content = tokenizer_json(tokenizer, before=before, after=after, newline=newline)
    write_file(folder / "tokenizer.json", json.dumps(content, ensure_ascii=False))
    names = {token["id"]: token["content"] for token in content["added_tokens"]}
    info = tokenizer.vocab_info
    marks = {"pad_token": info.pad_idx, "bos_token": info.bos_idx, "eos_token": info.eos_idx}
    if info.pad_idx not in names:  # as GPT-2's, whose rows are filled with ends
        marks["pad_token"] = info.eos_idx
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{
            name: names[i]
            for name, i in marks.items()
            if i in names and not (newline and i == info.eos_idx)
        },
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        **settings,
    }
    write_file(folder / "tokenizer_config.json", json.dumps(config, indent=2, ensure_ascii=False))


def tokenizer_json(
    tokenizer: Tokenizer, *, before: Sequence[int], after: Sequence[int], newline: bool = False
) -> dict[str, Any]:
    """A tokenizer as the package ``tokenizers`` reads it.

    Args:
        tokenizer: The tokenizer.
        before: Ids that stand before every text.
        after: Those behind it.
        newline: Whether the mark of a text's end is what a line end becomes, and is written as.

    Example:
        >>> content = tokenizer_json(ByteTokenizer.Config().build(), before=[], after=[3])
        >>> tokenizers.Tokenizer.from_str(json.dumps(content)).encode("hé </s>").ids
        [108, 199, 173, 36, 64, 51, 119, 66, 3]
    """
    if isinstance(tokenizer, MultilingualTokenizer):
        content, names = _from_sentencepiece(tokenizer.vocabulary.to_bytes())
    elif isinstance(tokenizer, HuggingFaceTokenizer):
        content, names = _from_json(tokenizer)
    elif isinstance(tokenizer, CharacterTokenizer | ByteTokenizer):
        content, names = _from_characters(tokenizer)
    elif isinstance(tokenizer, WordTokenizer):
        content, names = _from_words(tokenizer.config)
    else:
        raise UserError(f"tokenizer is a {type(tokenizer).__name__}, which has no tokenizer.json")
    if isinstance(tokenizer, TaggedTokenizer):
        used = {*before, *after, tokenizer.vocab_info.eos_idx}
        lacking, own = _added(tokenizer), isinstance(tokenizer, PretrainedTokenizer)
        # A model has no rows for marks that its own file lacks, unless they stand around texts.
        names |= {i: name for i, name in lacking.items() if i in used or not own}
    if newline:
        eos = tokenizer.vocab_info.eos_idx
        content = _renamed(content, {names[eos]: "\n"})
        names[eos] = "\n"
        content["decoder"] = _by_line(content.get("decoder"))
    added = [_added_token(i, name, special=name != "\n") for i, name in sorted(names.items())]
    content["added_tokens"] = [*content.get("added_tokens", []), *added]
    content["post_processor"] = _template(names, before, after)
    _check_ids(content, names)
    return content


def _by_line(decoder: Any) -> Any:
    """A decoder of lines: what puts a space before a word puts none beside a line end."""
    if decoder is None:  # words, with spaces between
        decoder = {"type": "WordPiece", "prefix": "\0", "cleanup": False}
    words, written = decoder["type"] == "WordPiece", json.dumps(decoder)
    if not words and "Metaspace" not in written and "Strip" not in written:
        return decoder
    before = [_replaced({"String": " \n"}, "\n")] * words
    steps = [decoder, {"type": "Fuse"}, *before, _replaced({"String": "\n "}, "\n")]
    return {"type": "Sequence", "decoders": steps}


def _added(tokenizer: TaggedTokenizer) -> dict[int, str]:
    """Marks that the vocabulary lacks, and languages: their ids follow its own."""
    info, languages = tokenizer.vocab_info, tokenizer.languages.tagged
    names = {getattr(info, f"{mark}_idx"): name for mark, name in MARKS.items()}
    names |= {i: f"<{lang} >" for i, lang in enumerate(languages, info.size - len(languages))}
    return {i: name for i, name in names.items() if i >= tokenizer.vocabulary.size}


def _added_token(i: int, name: str, *, special: bool) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": i, "content": name, **flags, "special": special}


def _template(names: Mapping[int, str], before: Sequence[int], after: Sequence[int]) -> Any:
    def one(text: str, number: int) -> list[dict[str, Any]]:
        marks = [
            [{"SpecialToken": {"id": names[i], "type_id": number}} for i in ids]
            for ids in (before, after)
        ]
        return [*marks[0], {"Sequence": {"id": text, "type_id": number}}, *marks[1]]

    used = {names[i]: i for i in (*before, *after)}
    special = {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in used.items()}
    pair = [*one("A", 0), *one("B", 1)]
    single = {"type": "TemplateProcessing", "single": one("A", 0), "pair": pair}
    return {**single, "special_tokens": special}


def _check_ids(content: dict[str, Any], names: Mapping[int, str]) -> None:
    made = tokenizers.Tokenizer.from_str(json.dumps(content))
    for i, name in names.items():
        if made.token_to_id(name) != i:
            raise UserError("the tokenizer's vocabulary leaves out ids, which marks would take")


def _from_json(tokenizer: HuggingFaceTokenizer) -> tuple[dict[str, Any], dict[int, str]]:
    """Its own file, with other names of marks."""
    if isinstance(tokenizer, PretrainedTokenizer):
        return _from_pretrained(tokenizer)
    parsed, unknown = tokenizer.parsed, tokenizer.vocab_info.unk_idx
    names, changes = dict[int, str](), dict[str, str]()
    for name, secret in parsed.renamed.items():
        i = parsed.ids[name]
        changes[secret] = _spaced(name) if i != unknown else UNKNOWN
        if i != unknown:
            names[i] = changes[secret]
    if UNKNOWN in parsed.ids:
        changes = {k: f"{UNKNOWN} " if v == UNKNOWN else v for k, v in changes.items()}
    content = _renamed(parsed.content, changes)
    taken = set(names.values()) | set(changes.values())
    kept = [token for token in content["added_tokens"] if token["content"] not in taken]
    return content | {"added_tokens": kept}, names


def _from_pretrained(tokenizer: PretrainedTokenizer) -> tuple[dict[str, Any], dict[int, str]]:
    """Its own file, as it is."""
    parsed = tokenizer.parsed
    content = _renamed(parsed.content, {secret: name for name, secret in parsed.renamed.items()})
    names = {parsed.ids[name]: name for name in parsed.renamed}
    kept = [token for token in content["added_tokens"] if token["id"] not in names]
    return content | {"added_tokens": kept}, names


def _spaced(name: str) -> str:
    return f"{name[:-1]} {name[-1:]}"


def _renamed(content: dict[str, Any], changes: Mapping[str, str]) -> dict[str, Any]:
    text = json.dumps(content, ensure_ascii=False)
    for old, new in changes.items():
        written = [json.dumps(name, ensure_ascii=False)[1:-1] for name in (old, new)]
        text = text.replace(written[0], written[1])
    out: dict[str, Any] = json.loads(text)
    return out


def _from_characters(
    tokenizer: CharacterTokenizer | ByteTokenizer,
) -> tuple[dict[str, Any], dict[int, str]]:
    """A vocabulary of single characters that are never merged."""
    steps: dict[str, Any] = {"pre_tokenizer": None, "decoder": {"type": "Fuse"}}
    if isinstance(tokenizer, ByteTokenizer):
        level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
        steps = {name: {**level, "trim_offsets": False} for name in steps}
        characters = _byte_characters()
    else:
        characters = tokenizer.config.characters
    vocab, unknown = _numbered(characters, NAMES)
    return {"version": "1.0", **steps, "model": _bpe(vocab, [], unknown, fuse=False)}, {**NAMES}


def _from_words(config: Any) -> tuple[dict[str, Any], dict[int, str]]:
    """A vocabulary of words; four marks are spaces to Python that are none to Unicode."""
    names = {i: name for i, name in NAMES.items() if config.marks or not i}
    space = config.split == "space"
    regex = r"[\s\x1c-\x1f]+" if space else r"[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s\x1c-\x1f]"
    pattern = {"pattern": {"Regex": regex}, "behavior": "Removed", "invert": not space}
    vocab, unknown = _numbered(config.words, names)
    content = {
        "version": "1.0",
        "normalizer": {"type": "Lowercase"} if config.lowercase else None,
        "pre_tokenizer": {"type": "Split", **pattern},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": unknown},
    }
    return content, names


def _numbered(pieces: Sequence[str], names: Mapping[int, str]) -> tuple[dict[str, int], str]:
    """Pieces behind the marks and the unknown one, which is 1; and the name of that."""
    unknown = UNKNOWN if UNKNOWN not in pieces else f"{UNKNOWN} "
    marks = {name: i for i, name in names.items()} | {unknown: 1}
    return marks | {piece: i for i, piece in enumerate(pieces, len(marks))}, unknown


def _byte_characters() -> str:
    """What GPT-2 writes each byte as: itself where it can be seen, else one of those behind 255."""
    seen = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = itertools.count(256)
    return "".join(chr(i if i in seen else next(others)) for i in range(256))


def _bpe(vocab: Mapping[str, int], merges: Any, unknown: str, *, fuse: bool) -> dict[str, Any]:
    same = {"vocab": vocab, "merges": merges, "unk_token": unknown, "fuse_unk": fuse}
    return {"type": "BPE", **same, "byte_fallback": False}


def _from_sentencepiece(raw: bytes) -> tuple[dict[str, Any], dict[int, str]]:
    """The pieces and rules of a SentencePiece model."""
    parts = [*_message_fields(raw)]
    trained, rules = (dict(_message_fields(bytes(dict(parts).get(i, b"")))) for i in (2, 3))
    pieces = [_piece(part) for number, part in parts if number == 1]
    kind = trained.get(3, UNIGRAM)
    if kind not in (UNIGRAM, BPE):
        raise UserError("the tokenizer's model is neither unigram nor bpe")
    if any(of == USER_DEFINED for _, _, of in pieces):
        raise UserError("tokenizer.pieces are cut out of texts otherwise there")
    if trained.get(24):
        raise UserError("the tokenizer's model writes spaces after words, not before them")
    unknown, names, written = f" {UNKNOWN} ", dict[int, str](), list[tuple[str, float]]()
    for i, (piece, score, of) in enumerate(pieces):
        if of == UNK:
            written.append((unknown, score))
        elif of in (NORMAL, BYTE):
            written.append((piece, score))
        else:
            names[i] = _spaced(piece)
            written.append((names[i], score))
    model: dict[str, Any] = {"type": "Unigram", "vocab": written}
    model["unk_id"] = next(i for i, (_, _, of) in enumerate(pieces) if of == UNK)
    if kind != UNIGRAM:
        vocab = {piece: i for i, (piece, _) in enumerate(written)}
        normal = {piece: i for i, (piece, _, of) in enumerate(pieces) if of == NORMAL}
        scores = [score for _, score, _ in pieces]
        model = _bpe(vocab, _merges(normal, scores), unknown, fuse=True)
    in_bytes = any(of == BYTE for _, _, of in pieces)
    model["byte_fallback"] = in_bytes
    return {"version": "1.0", **_spaces(rules, in_bytes=in_bytes), "model": model}, names


def _merges(pieces: Mapping[str, int], scores: Sequence[float]) -> list[tuple[str, str]]:
    """Pairs that make a piece, the one of the highest score first."""
    found = [
        (-scores[i], i, (piece[:cut], piece[cut:]))
        for piece, i in pieces.items()
        for cut in range(1, len(piece))
        if piece[:cut] in pieces and piece[cut:] in pieces
    ]
    return [pair for _, _, pair in sorted(found, key=lambda one: one[:2])]


def _spaces(rules: Mapping[int, Any], *, in_bytes: bool) -> dict[str, Any]:
    """What becomes of a text before it is cut, and of pieces when they are put together."""
    steps: list[dict[str, Any]] = []
    if charsmap := rules.get(2):
        coded = base64.b64encode(charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": coded})
    if rules.get(4, 1):
        steps.append(_replaced({"Regex": r"\A +| +\z"}, ""))
        steps.append(_replaced({"Regex": " {2,}"}, " "))
    prefix = bool(rules.get(3, 1))
    steps += [{"type": "Prepend", "prepend": "▁"}] * prefix
    steps.append(_replaced({"String": " "}, "▁"))
    backwards = [_replaced({"String": "▁"}, " "), *[{"type": "ByteFallback"}] * in_bytes]
    backwards += [{"type": "Fuse"}]
    backwards += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * prefix
    return {
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "decoder": {"type": "Sequence", "decoders": backwards},
    }


def _replaced(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _piece(raw: bytes) -> tuple[str, float, int]:
    """Text, score and type of a piece."""
    found = dict(_message_fields(raw))
    score = struct.unpack("<f", found[2])[0] if 2 in found else 0.0
    return found.get(1, b"").decode(), score, found.get(3, NORMAL)


def _message_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers and values of a protocol buffer's fields; each is an integer, or bytes.

    Source: https://protobuf.dev/programming-guides/encoding.
    """
    at = 0

    def number() -> int:  # seven bits a byte, the lowest first
        nonlocal at
        value = shift = 0
        while message[at] & 0x80:
            value |= (message[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        at += 1
        return value | message[at - 1] << shift

    while at < len(message):
        tag = number()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, number()
            continue
        size = number() if kind == 2 else {1: 8, 5: 4}[kind]
        yield tag >> 3, message[at : at + size]
        at += size
