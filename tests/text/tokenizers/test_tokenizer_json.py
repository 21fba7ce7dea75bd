"""A stranger's tokenizer.json: what could take all time or memory is refused before it is run."""

import base64
import copy
import json
import random
import re
import struct
import time

import pytest

from tests.text.conftest import TEXTS
from textmill.errors import DataError, UserError
from textmill.text import HuggingFaceTokenizer, load_tokenizer
from textmill.text.metadata import SavedTextError
from textmill.text.tokenizers import huggingface as module
from textmill.text.tokenizers.tokenizer_json import parse_tokenizer_json
from textmill.text.tokenizers.train_tokenizer import fit_tokenizer_json

BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3}, "merges": ["a b"]}
SPECIAL = {"id": 3, "content": "<s>", "special": True}


def content(**changes):
    return {"version": "1.0", "added_tokens": [SPECIAL], "model": BPE} | changes


def replace(pattern, text):
    return {"type": "Replace", "pattern": pattern, "content": text}


def sequence(steps, name="normalizers"):
    return {"type": "Sequence", name: steps}


def rules(longest: int, trie: int = 4) -> str:
    raw = struct.pack("<I", trie) + b"\0" * 4 + b"x" * longest + b"\0y\0"
    return base64.b64encode(raw).decode()


def model(**changes):
    return content(model=BPE | changes)


def unigram(**changes):
    return content(
        added_tokens=[], model={"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0]]} | changes
    )


BOMB = {"Regex": "(a+)+$"}
REFUSED = [
    (model(type="Wizard"), "its model is 'Wizard', not one of BPE, Unigram, WordPiece, WordLevel"),
    (model(vocab=[["a", 0]]), "its vocabulary must be a mapping of pieces to ids"),
    (model(vocab={"a": 0, "b": 0, "<s>": 3}), "two of its pieces have the same id"),
    (model(vocab={"a": -1, "<s>": 3}), "the id of 'a' is -1, not a number from 0"),
    (model(vocab={"a": 0.5, "<s>": 3}), "the id of 'a' is 0.5, not a number from 0"),
    (model(vocab={"a": True, "<s>": 3}), "the id of 'a' is True, not a number from 0"),
    (
        model(vocab={"a": 2_000_000_000, "<s>": 3}),
        "it has an id of 2,000,000,000, but only 2 pieces",
    ),
    (content(added_tokens=[SPECIAL | {"id": 0}]), "the added token '<s>' has two ids"),
    (
        content(added_tokens=[{"id": 10**12, "content": "x"}]),
        "it has an id of 1,000,000,000,000, but only 5 pieces",
    ),
    (
        content(added_tokens=[{"id": "9", "content": "x"}]),
        "each of its added_tokens must have a content and an id from 0",
    ),
    (
        content(added_tokens=[{"id": 9, "content": ""}]),
        "each of its added_tokens must have a content and an id from 0",
    ),
    (content(added_tokens={"a": 1}), "each of its added_tokens must have a content and an id"),
    (content(added_tokens=[], model=BPE | {"vocab": {}}), "its vocabulary is empty"),
    (
        model(dropout=0.1),
        "its dropout is 0.1, with which the same text has other ids each time; set it to null",
    ),
    (
        content(
            model={"type": "WordPiece", "vocab": {"<s>": 3}, "max_input_chars_per_word": 10**9}
        ),
        "its max_input_chars_per_word is 1000000000, but may be 1,000 at most",
    ),
    (unigram(vocab=["a"]), "the vocabulary of a Unigram must be a list of [piece, score]"),
    (unigram(vocab=[["a", "b"]]), "the vocabulary of a Unigram must be a list of [piece, score]"),
    (unigram(vocab=[["a", 0], ["a", 0]]), "a piece is in its vocabulary twice"),
    (unigram(unk_id=5), "its unk_id is 5, which no piece has"),
    (
        content(pre_tokenizer={"type": "Split", "pattern": BOMB, "behavior": "Isolated"}),
        "its expression '(a+)+$' has a repeated group that holds a repeat or alternatives",
    ),
    (content(normalizer=replace(BOMB, "x")), "its expression '(a+)+$' has a repeated group"),
    (content(decoder=replace(BOMB, "x")), "its expression '(a+)+$' has a repeated group"),
    (
        content(normalizer=sequence([sequence([replace(BOMB, "x")])])),
        "its expression '(a+)+$' has a repeated group",
    ),
    (
        content(normalizer=sequence([replace({"String": "a"}, "aa")] * 31)),
        "its normalizer can make a text 1,000 times longer",
    ),
    (
        content(decoder=sequence([replace({"String": "a"}, "aa")] * 31, "decoders")),
        "its decoder can make a text 1,000 times longer",
    ),
    (
        content(normalizer=sequence([replace({"Regex": "x*"}, "x")] * 31)),
        "its normalizer can make a text 1,000 times longer",
    ),
    (
        content(normalizer=sequence([replace({"String": ""}, "x")] * 31)),
        "its normalizer can make a text 1,000 times longer",
    ),
    (
        content(normalizer={"type": "Prepend", "prepend": "x" * 5_000}),
        "its normalizer can make a text 1,000 times longer",
    ),
    (
        content(
            normalizer=sequence([{"type": "ByteLevel"}] * 3),
            pre_tokenizer=sequence([{"type": "ByteLevel"}] * 3, "pretokenizers"),
        ),
        "its pre_tokenizer can make a text 1,000 times longer",
    ),
    (
        content(normalizer={"type": "Precompiled", "precompiled_charsmap": rules(5_000)}),
        "its normalizer can make a text 1,000 times longer",
    ),
    (
        content(normalizer={"type": "Precompiled", "precompiled_charsmap": rules(9, 10**6)}),
        "its precompiled_charsmap is damaged",
    ),
    (
        content(normalizer={"type": "Precompiled", "precompiled_charsmap": "not base64"}),
        "its precompiled_charsmap is damaged",
    ),
    (
        content(normalizer=sequence([{"type": "NFC"}] * 40)),
        "its normalizer has more than 32 steps",
    ),
    (
        content(normalizer={"type": "Python"}),
        "its normalizer has a step 'Python', which is unknown",
    ),
    (content(pre_tokenizer={"type": "FixedLength", "length": 0}), "a step 'FixedLength', which is"),
    (content(decoder=[1]), "a step must be a mapping with a type, but is [1]"),
    (content(normalizer={"type": ["x"]}), "its normalizer has a step ['x'], which is unknown"),
]


SPACES = {"Regex": " {2,}"}
CLIP = {"Regex": r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"}
PUBLISHED = {
    "albert": {
        "normalizer": sequence(
            [
                replace({"String": "``"}, '"'),
                replace({"String": "''"}, '"'),
                {"type": "NFKD"},
                {"type": "StripAccents"},
                {"type": "Lowercase"},
                {"type": "Precompiled", "precompiled_charsmap": rules(33)},
                replace(SPACES, " "),
            ]
        ),
        "pre_tokenizer": sequence(
            [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
            ],
            "pretokenizers",
        ),
    },
    "llama 2": {
        "normalizer": sequence(
            [{"type": "Prepend", "prepend": "▁"}, replace({"String": " "}, "▁")]
        ),
        "decoder": sequence(
            [
                replace({"String": "▁"}, " "),
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
            "decoders",
        ),
    },
    "clip": {
        "normalizer": sequence(
            [{"type": "NFC"}, replace({"Regex": r"\s+"}, " "), {"type": "Lowercase"}]
        ),
        "pre_tokenizer": sequence(
            [
                {"type": "Split", "pattern": CLIP, "behavior": "Removed", "invert": True},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
            ],
            "pretokenizers",
        ),
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
    },
    "bert": {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_steps_of_published_files_are_known(name, tmp_path):
    raw = json.dumps(content(**PUBLISHED[name])).encode()
    parsed = parse_tokenizer_json(raw, tmp_path / "t.json")
    for step, value in PUBLISHED[name].items():
        assert parsed.content[step] == value
    if name != "albert":  # whose rules of normalization are made up here
        path = tmp_path / "t.json"
        path.write_bytes(raw)
        assert HuggingFaceTokenizer.from_file(path).create_encoder()("ab")[-2] in (0, 1, 2)


@pytest.mark.parametrize(("made", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_and_why(made, message, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(made))
    start = time.process_time()
    with pytest.raises(SavedTextError, match=f"^{re.escape(str(path))} is not used: .*") as caught:
        HuggingFaceTokenizer.from_file(path)
    assert message in str(caught.value)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "is not JSON: "),
        (b"\xff\xfe", "is not JSON: "),
        (b"[" * 100_000, "is not JSON: "),
        (b"[]", "is not a tokenizer.json of the package 'tokenizers': it has no 'model'."),
        (b'{"model": []}', "it has no 'model'."),
    ],
)
def test_what_is_no_such_file(raw, message, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(raw)
    with pytest.raises(SavedTextError, match=re.escape(message)):
        HuggingFaceTokenizer.from_file(path)
    path.unlink()
    with pytest.raises(SavedTextError, match=re.escape(f"{path}: missing.")):
        HuggingFaceTokenizer.from_file(path)


def test_the_number_of_pieces_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr("textmill.text.tokenizers.tokenizer_json.LARGEST_VOCABULARY", 4)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content()))
    message = f"{path} is not used: it has 5 pieces, but 4 are the most that are read."
    with pytest.raises(SavedTextError, match=f"^{re.escape(message)}$"):
        HuggingFaceTokenizer.from_file(path)


@pytest.mark.parametrize(
    "merges", [["a z"], [["a"]], [1], ["ab"], [["a", 2]], [None], "a b", [["a", "b", "c"]]]
)
def test_merges_that_do_not_fit(merges, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(model(merges=merges)))
    with pytest.raises(SavedTextError, match=re.escape(str(path))) as caught:
        HuggingFaceTokenizer.from_file(path)
    assert not re.search("<[0-9a-f]{24}>", str(caught.value))


def test_the_size_of_a_file_is_limited(tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content()))
    monkeypatch.setattr(module, "LARGEST_FILE", 100)
    message = f"{path} is larger than 100 bytes, the most that is read from it."
    with pytest.raises(SavedTextError, match=f"^{re.escape(message)}$"):
        HuggingFaceTokenizer.from_file(path)


def test_special_tokens_get_names_that_nobody_can_guess(tmp_path):
    raw = json.dumps(content()).encode()
    first, second = (parse_tokenizer_json(raw, tmp_path / "t.json") for _ in range(2))
    assert first.ids == second.ids == BPE["vocab"]
    assert first.special == {3}
    assert first.renamed.keys() == {"<s>"}
    assert first.renamed != second.renamed
    assert "<s>" not in json.dumps(first.content)


def test_a_panic_of_the_library_is_an_error_of_the_data(tmp_path, monkeypatch, capfd):
    """Were an expression to pass that explodes after all, the library gives up with a panic."""
    monkeypatch.setattr("textmill.text.tokenizers.tokenizer_json.danger", lambda expression: None)
    path = tmp_path / "tokenizer.json"
    split = {"type": "Split", "pattern": BOMB, "behavior": "Isolated", "invert": False}
    decoders = sequence([{"type": "Fuse"}, replace(BOMB, "x")], "decoders")
    shout = BPE | {"vocab": BPE["vocab"] | {"!": 4}}
    path.write_text(json.dumps(content(pre_tokenizer=split, decoder=decoders, model=shout)))
    one = HuggingFaceTokenizer.from_file(path)
    encode, decode = one.create_encoder(), one.create_decoder()
    bomb = "a" * 40 + "!"
    for what, call in [
        ("encode a text", lambda: encode(bomb)),
        ("encode one of 2 texts", lambda: encode.batch(["a", bomb])),
        ("decode one of 2 rows", lambda: decode.batch([[0], [0] * 40 + [4]])),
    ]:
        message = (
            f"The package 'tokenizers' could not {what}: Onig: Regex search error: "
            "retry-limit-in-match over. If its tokenizer.json is not your own, do not use it."
        )
        with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
            call()
    assert "panicked" in capfd.readouterr().err


def test_a_changed_file_of_a_run_is_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content()))
    HuggingFaceTokenizer.from_file(path).save(tmp_path / "t")
    description = tmp_path / "t" / "tokenizer.json"
    good = description.read_text()
    for change, message in [
        (('"eos": null', '"eos": 3'), "the setting 'eos' cannot be 3."),
        (('"eos": null', '"path": null'), "unknown setting 'path'. Known: bos, default_source"),
        (('"tags": "auto"', '"tags": "x"'), "'tags' cannot be 'x'."),
        (('"huggingface"', '"characters"'), "unknown setting 'bos'. Known: characters, default"),
        (('"huggingface"', '"fitted"'), "a tokenizer of type 'fitted' is not loaded from files;"),
    ]:
        assert change[0] in good
        description.write_text(good.replace(*change))
        with pytest.raises(SavedTextError, match=re.escape(message)):
            load_tokenizer(tmp_path / "t")


SCRAPS = [None, True, -1, 1, 2**40, 1e308, "", "a", "<s>", "\0", [], [[]], {}, [None], "(a+)+"]
SCRAPS += [{"type": "Sequence"}, {"Regex": "a*"}, {"String": ""}]


def places(value, path=()):
    yield path
    keys = [*value][:40] if isinstance(value, dict) else ()
    if isinstance(value, list):
        keys = range(min(len(value), 8))
    for key in keys:
        yield from places(value[key], (*path, key))


def broken(whole, rng):
    whole = copy.deepcopy(whole)
    *path, last = rng.choice([path for path in places(whole) if path])
    inner = whole
    for key in path:
        inner = inner[key]
    if rng.random() < 0.2:
        del inner[last]
    else:
        inner[last] = copy.deepcopy(rng.choice([*SCRAPS, [inner[last]] * 3]))
    return whole


@pytest.mark.parametrize("kind", ["bpe", "byte_bpe", "wordpiece", "words"])
def test_any_change_of_a_file_is_refused_or_harmless(kind, tmp_path):
    good = json.loads(fit_tokenizer_json(TEXTS, kind, vocab_size=280 if "byte" in kind else 85))
    path, rng, used = tmp_path / "tokenizer.json", random.Random(kind), 0
    for _ in range(150):
        path.write_text(json.dumps(broken(good, rng)))
        try:
            one = HuggingFaceTokenizer.from_file(path)
            rows = one.create_encoder().batch([*TEXTS[:4], "", "☃ <s>", "a\0b", " " * 50])
            one.create_decoder()([*range(-2, one.vocab_info.size + 2)])
        except UserError:  # with its reason; any other error fails the test
            continue
        used += 1
        assert 0 <= rows.values.min() <= rows.values.max() < one.vocab_info.size
    assert 5 < used < 145
