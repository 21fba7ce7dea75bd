"""Pretrained encoders: the same vectors as transformers gives, and what is refused."""

import functools
import itertools
import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.pretrained_checkpoints import ENCODERS, TEXTS, changed, save_encoder
from textmill.errors import UserError
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.layers.dropout import Dropout
from textmill.runtime.pretrained import find_pretrained
from textmill.text.features.spelling import WordPieces
from textmill.text.tokenizers.pretrained import PretrainedTokenizer


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    hub = tmp_path_factory.mktemp("hub")
    return functools.cache(lambda family: save_encoder(hub / family, family))


def tokenizer_of(folder):
    return PretrainedTokenizer.Config(path=folder / "tokenizer.json").build()


def encoder_of(folder, *, reads="texts"):
    vocab_info = tokenizer_of(folder).vocab_info
    config = PretrainedEncoder.Config(path=str(folder))
    made = config.build(vocab_info=vocab_info, reads=reads)
    made.begin()
    return made.eval()


def theirs(folder):
    """The model and the tokenizer of transformers."""
    library = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    return transformers.AutoModel.from_pretrained(folder).eval(), library


@pytest.mark.parametrize("family", ENCODERS)
def test_vectors_are_those_of_transformers(saved, family):
    folder = saved(family)
    oracle, library = theirs(folder)
    rows = tokenizer_of(folder).create_encoder().batch(TEXTS)
    assert [row.tolist() for row in rows] == library(TEXTS)["input_ids"]
    pad = oracle.config.pad_token_id
    ids = torch.full((len(TEXTS), int(max(rows.lengths))), pad)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.from_numpy(row)
    with torch.no_grad():
        found = encoder_of(folder)(ids, torch.from_numpy(rows.lengths))
        for number, row in enumerate(rows):
            alone = oracle(input_ids=ids[number : number + 1, : len(row)]).last_hidden_state[0]
            torch.testing.assert_close(found[number, : len(row)], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_word_has_the_vector_of_its_first_piece(saved, family):
    folder, spaced = saved(family), family == "roberta"
    oracle, library = theirs(folder)
    feature = WordPieces(tokenizer_of(folder), length=16)
    texts = [text.split() for text in TEXTS]
    most = max(map(len, texts))
    pieces = torch.full((len(texts), most, 16), feature.pad_idx)
    for number, words in enumerate(texts):
        pieces[number, : len(words)] = torch.from_numpy(feature.table(words))
    lengths = torch.tensor([*map(len, texts)])
    with torch.no_grad():
        found = encoder_of(folder, reads="words")(pieces, lengths)
        for number, words in enumerate(texts):
            parts = [f" {word}" if spaced else word for word in words]
            rows = [library(part, add_special_tokens=False)["input_ids"] for part in parts]
            marks = library("")["input_ids"]
            ids = torch.tensor([[marks[0], *itertools.chain(*rows), marks[1]]])
            states = oracle(input_ids=ids).last_hidden_state[0]
            firsts = torch.tensor([1 + sum(map(len, rows[:n])) for n in range(len(rows))])
            torch.testing.assert_close(
                found[number, : len(words)], states[firsts], atol=1e-5, rtol=1e-5
            )


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_pair_is_read_as_one(saved, family):
    folder = saved(family)
    oracle, library = theirs(folder)
    encoder = encoder_of(folder, reads="pairs")
    assert encoder.max_length == {"bert": 20, "roberta": 19}[family]
    pairs = [("the cat", "dogs bark"), ("the moon", "the cat sat on the mat")]
    frame = tokenizer_of(folder).create_encoder()
    sides = []
    for side in (0, 1):
        rows = frame.batch([pair[side] for pair in pairs])
        ids = torch.zeros(2, int(max(rows.lengths)), dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.from_numpy(row)
        sides += [ids, torch.from_numpy(rows.lengths)]
    with torch.no_grad():
        found, lengths = encoder.pairs(*sides)
        for number, pair in enumerate(pairs):
            given = library(*pair, return_tensors="pt", return_token_type_ids=True)
            if oracle.config.type_vocab_size < 2:
                del given["token_type_ids"]
            alone = oracle(**given).last_hidden_state[0]
            assert lengths[number] == len(alone)
            torch.testing.assert_close(found[number, : len(alone)], alone, atol=1e-5, rtol=1e-5)


def test_of_too_many_pieces_each_word_keeps_its_first(saved):
    encoder = encoder_of(saved("bert"), reads="words")
    assert encoder.max_length == 38, "40 positions, and a mark on both sides"
    feature = WordPieces(tokenizer_of(saved("bert")), length=8)
    table = torch.from_numpy(feature.table(["unbelievable"] * 20)).long()
    assert (table != feature.pad_idx).sum() > 38
    one = table.clone()
    one[:, 1:] = feature.pad_idx
    lengths = torch.tensor([20])
    with torch.no_grad():
        torch.testing.assert_close(encoder(table[None], lengths), encoder(one[None], lengths))


def test_a_tokenizer_of_another_model_is_refused(saved, tmp_path):
    folder = shutil.copytree(saved("bert"), tmp_path / "bert")
    shutil.copy(saved("roberta") / "tokenizer.json", folder)
    with pytest.raises(UserError, match=r"has 267 tokens, but .* rows of 55: it is that of anoth"):
        encoder_of(folder)


def test_tokens_that_the_weights_lack_are_told(saved, tmp_path):
    folder = shutil.copytree(saved("bert"), tmp_path / "bert")
    told = json.loads((folder / "tokenizer.json").read_text())["model"]
    size = len(told["vocab"])
    more = {"vocab": told["vocab"] | {"moonlight": size, "dogged": size + 1}}
    changed(folder, "tokenizer.json", model=told | more)
    info = tokenizer_of(folder).vocab_info
    line = PretrainedEncoder.Config(path=str(folder)).build(vocab_info=info).begin()
    assert line.endswith("parameters. Tokens that begin at random, without a row there: 2.")


def test_a_weight_that_is_missing_is_named(saved, tmp_path):
    folder = shutil.copytree(saved("bert"), tmp_path / "bert")
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.bias"]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(UserError, match=r"bert: encoder\.layer\.1\.output\.dense\.bias is missing"):
        encoder_of(folder)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"auto_map": {"AutoModel": "theirs.Model"}}, "names code of its own"),
        ({"model_type": "of_nobody"}, "which transformers does not have"),
        ({"model_type": "gpt2"}, "which is not an encoder of texts"),
        ({"hidden_size": "wide"}, "makes no bert"),
        ({"model_type": None}, "has no model_type"),
    ],
)
def test_what_is_no_encoder_is_refused(saved, tmp_path, values, why):
    folder = shutil.copytree(saved("bert"), tmp_path / "bert")
    changed(folder, "config.json", **values)
    with pytest.raises(UserError, match=why):
        encoder_of(folder)


@pytest.mark.parametrize("layers", [None, "transformers"])
def test_dropout_is_set_where_config_json_does_not_say_it(saved, tmp_path, layers):
    folder = shutil.copytree(saved("bert"), tmp_path / "bert")
    told = json.loads((folder / "config.json").read_text())
    del told["hidden_dropout_prob"]
    (folder / "config.json").write_text(json.dumps(told))
    info = tokenizer_of(folder).vocab_info
    config = PretrainedEncoder.Config(path=str(folder), dropout=0.5, layers=layers)
    made = config.build(vocab_info=info)
    again = PretrainedEncoder.Config(architecture=made.config.architecture).build(vocab_info=info)
    for encoder in (made, again):
        shares = {m.p for m in encoder.modules() if isinstance(m, torch.nn.Dropout | Dropout)}
        assert 0.5 in shares <= {0.5, 0.1}  # of attention


def test_what_is_said_of_pickled_weights_makes_a_folder(saved, tmp_path):
    """As of SciBERT, which is vocab.txt and a pickle."""
    folder, made = shutil.copytree(saved("bert"), tmp_path / "bert"), tmp_path / "made"
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocab))
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")  # noqa: TID251  # what is read by transformers alone
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).unlink()
    with pytest.raises(UserError, match=r"has no tokenizer\.json\. Make a folder") as caught:
        find_pretrained(str(folder)).tokenizer()
    with pytest.raises(UserError, match=r"reads no pickled weights\. Make a folder"):
        find_pretrained(str(folder)).check_weights()
    code = str(caught.value).partition("name that: ")[2]
    exec(code.replace("FOLDER", str(made)))
    given = torch.tensor([[2, 7, 8, 3]]), torch.tensor([4])
    with torch.no_grad():
        torch.testing.assert_close(encoder_of(made)(*given), encoder_of(saved("bert"))(*given))
    rows = [tokenizer_of(place).create_encoder().batch(TEXTS) for place in (made, saved("bert"))]
    assert [row.tolist() for row in rows[0]] == [row.tolist() for row in rows[1]]


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "AutoModelForCausalLM"),
        ({"is_encoder_decoder": True}, "AutoModelForSeq2SeqLM"),
    ],
)
def test_what_generates_keeps_its_head(tmp_path, told, kind):
    (tmp_path / "config.json").write_text(json.dumps(told))
    with pytest.raises(UserError, match=rf"t\.{kind}\.from_pretrained"):
        find_pretrained(str(tmp_path)).check_weights()


def test_settings_that_name_code_do_not_reach_transformers(saved):
    info = tokenizer_of(saved("bert")).vocab_info
    found = PretrainedEncoder.Config(path=str(saved("bert"))).build(vocab_info=info)
    told = {
        **found.config.architecture,
        "auto_map": {"AutoModel": "theirs--theirs.Model"},
        "attn_implementation": "theirs/kernel",
        "_attn_implementation": "theirs/kernel",
        "quantization_config": {"quant_method": "theirs"},
    }
    again = PretrainedEncoder.Config(architecture=told).build(vocab_info=info)
    assert again.config.architecture == found.config.architecture
