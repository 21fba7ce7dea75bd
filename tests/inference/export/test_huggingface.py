"""What transformers answers with our weights and tokenizers is what we answer, or refused."""

import json
import math

import pytest
import torch

from tests.trained_run import PAIRS
from textmill.errors import UserError
from textmill.exported import load
from textmill.exported.manifest import ExportError, read
from textmill.inference import Predictor
from textmill.inference.export import huggingface, huggingface_architectures
from textmill.inference.export.folder import write_export
from textmill.inference.export.huggingface_tokenizer import tokenizer_json, write_tokenizer
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoding import Decoding
from textmill.models.language_model import LstmLanguageModel
from textmill.models.layers.attention import MultiHead, TalkingHeads
from textmill.tasks import Translation
from textmill.tasks.language_model import LanguageModeling
from textmill.text.processors.language_model import LanguageText
from textmill.text.tokenizers.character_tokenizers import CharacterTokenizer
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer, train_sentencepiece
from textmill.text.tokenizers.word_tokenizer import FittedWords, WordTokenizer

transformers = pytest.importorskip("transformers")

SOURCES = [{"source": source} for source, _ in PAIRS][:6]
TEXTS = [{"text": text} for text in ("", "a cab", "bad\n\nbee ", "éa face")]
"""Texts to go on with, of the alphabet below."""


TRANSLATORS = {
    "default": ("pegasus", {}),
    "post": ("marian", {"norm_order": "post", "activation": "gelu", "output_bias": True}),
    "learned positions": ("blenderbot", {"positions": "learned", "position_offset": 2}),
    "behind the padding": (
        "m2m_100",
        {"positions": "sinusoidal_tensor2tensor", "position_offset": 1, "activation": "gelu_tanh"},
    ),
}
WRITERS = {
    "default": ("starcoder2", {}),
    "gated and rms": (
        "llama",
        {
            "attention": MultiHead.Config(num_kv_heads=1),
            "feed_forward": "gated",
            "activation": "silu",
            "norm": "rms_norm",
            "norm_eps": 0.01,
        },
    ),
    "sines": ("gpt2", {"positions": "sinusoidal", "tie": False, "norm_eps": 0.01}),
    "post": ("opt", {"positions": "learned", "norm_order": "post", "activation": "relu"}),
}


def perturbed(module, seed):
    """Weights that differ in every number."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return module.eval()


@pytest.fixture(scope="session")
def writer():
    """Makes a predictor of a language model of characters."""
    tokenizer = CharacterTokenizer.Config(characters="abcdef é").build()

    def make(*, seed=0, task=None, **model):
        torch.manual_seed(seed)
        settings = {"dim": 16, "ffn_dim": 32, "num_heads": 2, "num_layers": 2, "max_length": 32}
        module = CausalTransformer.Config(**{**settings, **model}).build(tokenizer=tokenizer)
        config = task or LanguageModeling.Config(block=8)
        made = config.build(module=perturbed(module, seed), tokenizer=tokenizer)
        return Predictor(made, checkpoint="made")

    return make


def exported(predictor, folder, rows):
    """The folder that is written, and what the comparison found."""
    out = folder / "out"
    found = write_export(
        predictor, "huggingface", out, rows=rows, where="rows", source={}, replace=True
    )
    return out, found


def slow_but(names, quick):
    """Names to test; all but those that are quick are slow."""
    return [pytest.param(n, marks=() if n in quick else pytest.mark.slow) for n in names]


@pytest.mark.parametrize("name", slow_but(TRANSLATORS, {"default", "post"}))
def test_every_encoder_decoder_answers_alike(translator, tmp_path, name):
    architecture, settings = TRANSLATORS[name]
    predictor = translator(**settings)
    folder, found = exported(predictor, tmp_path, SOURCES)
    assert (found.rows, found.same) == (len(SOURCES), len(SOURCES))
    assert json.loads((folder / "config.json").read_text())["model_type"] == architecture
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer([row["source"] for row in SOURCES], padding=True, return_tensors="pt")
    target = torch.randint(4, 30, (len(SOURCES), 9))
    lengths = batch["attention_mask"].sum(1)
    with torch.no_grad():
        ours = predictor.task.module(batch["input_ids"], lengths, target)
        theirs = model(**batch, decoder_input_ids=target).logits
        torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=0)
        answers = model.generate(**batch)
    for row, ids in zip(SOURCES, answers, strict=True):
        text, whole = predictor(row).text, tokenizer.decode(ids, skip_special_tokens=True)
        assert whole.startswith(text)  # its own limit is the model's, not the source's


@pytest.mark.parametrize("name", slow_but(WRITERS, {"gated and rms", "sines"}))
@pytest.mark.parametrize("until", ["row", pytest.param("length", marks=pytest.mark.slow)])
def test_every_language_model_answers_alike(writer, tmp_path, name, until):
    architecture, settings = WRITERS[name]
    decoding = Decoding(max_length_a=0.0, max_length_b=9)
    config = LanguageModeling.Config(block=8, until=until, decoding=decoding)
    predictor = writer(task=config, **settings)
    folder, found = exported(predictor, tmp_path, TEXTS)
    assert (found.rows, found.same) == (len(TEXTS), len(TEXTS))
    assert json.loads((folder / "config.json").read_text())["model_type"] == architecture
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer([row["text"] for row in TEXTS], padding=True, return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(
            model(batch["input_ids"]).logits,
            predictor.task.module(batch["input_ids"]),
            atol=1e-5,
            rtol=0,
        )
    added = model.generate(**batch)[:, batch["input_ids"].shape[1] :]
    texts = tokenizer.batch_decode(added, skip_special_tokens=True)
    assert texts == [predictor(row).text for row in TEXTS]


SEARCHES = {
    "beams, no penalty": Decoding(beam_size=3, length_penalty=0.0, early_stopping="never"),
    "beams, heuristic": Decoding(beam_size=3, length_penalty=0.6, min_length=3),
    "scores": Decoding(repetition_penalty=1.3, no_repeat_ngram=2, unknown_penalty=math.inf),
    "drawn": Decoding(sample=True, n_best=2, temperature=0.7, top_k=5, top_p=0.9),
}


@pytest.mark.parametrize("name", slow_but(SEARCHES, {"beams, heuristic", "drawn"}))
def test_every_search_is_written(translator, tmp_path, name):
    decoding = SEARCHES[name]
    predictor = translator(task=Translation.Config(decoding=decoding), seed=3)
    folder, found = exported(predictor, tmp_path, SOURCES)
    assert (found.rows, found.same) == (len(SOURCES), len(SOURCES))
    settings = json.loads((folder / "generation_config.json").read_text())
    assert settings.get("num_beams") in (None, 1, decoding.beam_size)
    if decoding.sample:
        drawn = {name: settings[name] for name in ("do_sample", "temperature", "top_k", "top_p")}
        assert drawn == {"do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9}
        return
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    for row in SOURCES:  # as many ids as the run allows, which a source's length decides there
        batch = tokenizer(row["source"], return_tensors="pt")
        most = decoding.limits(batch["input_ids"], None, longest=48)
        ids = model.generate(**batch, max_new_tokens=int(most))[0]
        assert tokenizer.decode(ids, skip_special_tokens=True) == predictor(row).text


ROWS = [{"source": s, "target": t} for s, t in PAIRS] * 3
STRANGE = [
    *("", " ", "  two  spaces ", "</s> <s> <unk> <pad> [SEP] </s >", "\u2047 unk", " \u2047 "),
    *("日本語 text ☃ 🙂🙂", "Élan vital — naïve", "e\u0301le\u0301ve", "tab\there\nnew line\n"),
    *("\u00a0wide\u3000", "\ufb01 \u00bd \uff21", "\u2581\u2581under", "ΟΔΟΣ", "x" * 300),
    *("\u200bzero\ufeff", "can't 1,000.5!", "\x00\x01\x1c.", "<target >", "\U0001f600\u200d"),
]
TOKENIZERS = {
    "sentencepiece": {}, "sentencepiece, bpe": {"model_type": "bpe"},
    "sentencepiece, bytes": {"byte_fallback": True, "vocab_size": 400},
    "sentencepiece, languages": {"target_langs": ("fra", "spa"), "source_langs": ("eng", "deu")},
    "sentencepiece, coverage": {"character_coverage": 0.98}, "bpe": {"lowercase": True},
    "byte_bpe": {"vocab_size": 300}, "words": {"lowercase": True}, "characters": {},
    "bytes": {"vocab_size": 300},
}  # fmt: skip


def check_lines(ours, folder):
    """A language model whose rows are lines has the line end as a token."""
    text, eos = LanguageText.of(ours), ours.vocab_info.eos_idx
    write_tokenizer(folder, ours, before=[eos], after=[], newline=True)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    for lines in ["", "the cat", "the cat\n sat", "a\n\nthe  dog\n", "\nGo.", "x\ty </s >\n☃"]:
        (wanted,) = text.begun([lines], lines=True)
        assert theirs(lines)["input_ids"] == [eos, *wanted]
        assert theirs.decode(wanted, skip_special_tokens=True) == text.decode([wanted])[0]


def fitted(name, folder):
    settings = {"vocab_size": 90, "cache_dir": folder / "cache", **TOKENIZERS[name]}
    kind = name.split(",")[0]
    return FittedTokenizer.Config(kind=kind, **settings).build(train_data=ROWS)


def check_tokenizer(ours, folder, **frame):
    encoder, decoder = ours.create_encoder(), ours.create_decoder()
    empty = encoder("").tolist()
    write_tokenizer(folder, ours, before=empty[:-1], after=empty[-1:], **frame)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    info = ours.vocab_info
    assert (theirs.pad_token_id, theirs.bos_token_id) == (info.pad_idx, info.bos_idx)
    assert (theirs.eos_token_id, len(theirs)) == (info.eos_idx, info.size)
    for text in [*STRANGE, *(text for row in ROWS for text in row.values())]:
        wanted = encoder(text).tolist()
        assert theirs(text)["input_ids"] == wanted, text
        assert theirs.decode(wanted, skip_special_tokens=True) == decoder(wanted), text


@pytest.mark.parametrize("name", TOKENIZERS)
def test_every_tokenizer_gives_the_same_ids_and_texts(tmp_path, name):
    check_tokenizer(fitted(name, tmp_path), tmp_path)
    if "languages" not in name:
        check_lines(fitted(name, tmp_path), tmp_path)


@pytest.mark.parametrize("split", ["space", "punctuation"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_words_are_the_same(tmp_path, split, lowercase):
    config = FittedWords.Config(
        columns=("source",), marks=True, split=split, lowercase=lowercase, min_count=2
    )
    check_tokenizer(config.build(train_data=ROWS), tmp_path)
    check_lines(config.build(train_data=ROWS), tmp_path)


GROUPED = MultiHead.Config(num_kv_heads=1)
REFUSED = [
    ({"positions": "rotary"}, "model.positions is rotary, not a table of positions"),
    ({"feed_forward": "gated"}, "model.feed_forward is gated, not mlp"),
    ({"norm": "rms_norm"}, "model.norm is rms_norm, not layer_norm"),
    ({"norm_eps": 0.01}, "model.norm_eps is 0.01, not 1e-05"),
    ({"attention": GROUPED}, "model.attention.num_kv_heads is 1: no heads may share keys"),
    ({"attention": TalkingHeads.Config()}, "model.attention is a TalkingHeads, not multi_head"),
    (
        {"norm_order": "post", "positions": "learned"},
        "model.norm_order is post: its positions must",
    ),
]


@pytest.mark.parametrize(("settings", "wanted"), REFUSED)
def test_what_no_architecture_has_is_refused_by_its_setting(translator, tmp_path, settings, wanted):
    with pytest.raises(UserError, match=r"^A Translation cannot be exported to") as caught:
        exported(translator(**settings), tmp_path, SOURCES)
    assert f"\n  {wanted}" in str(caught.value)
    assert not (tmp_path / "out").exists()


BEAMS = LanguageModeling.Config(block=8, decoding=Decoding(beam_size=2))


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"feed_forward": "gated"}, "model.norm is layer_norm and model.feed_forward gated: "),
        ({"norm_order": "post"}, "model.norm_order is post with rotary positions, "),
        ({"positions": "learned", "attention": GROUPED}, "model.attention.num_kv_heads is 1: "),
        ({"attention": TalkingHeads.Config()}, "model.attention is a TalkingHeads, not multi_head"),
        ({"task": BEAMS}, "task.decoding.length_penalty is 1.0: with beams 0 alone can be"),
    ],
)
def test_what_no_decoder_has_is_refused(writer, tmp_path, settings, wanted):
    with pytest.raises(UserError) as caught:
        exported(writer(**settings), tmp_path, TEXTS)
    assert f"\n  {wanted}" in str(caught.value)


def test_other_models_searches_and_tokenizers_are_refused(translator, tmp_path):
    assert huggingface_architectures.refusals(
        LstmLanguageModel.Config().build(
            tokenizer=WordTokenizer.Config(words=("a",), marks=True).build()
        )
    ) == ["the model must be a Transformer or a CausalTransformer, but is a LstmLanguageModel"]
    decoding = Decoding(unknown_penalty=0.5)
    task = translator(task=Translation.Config(decoding=decoding)).task
    assert [*huggingface.WRITER.unsupported(task)] == [
        "task.decoding.unknown_penalty is 0.5: 0 and .inf can be"
    ]
    path = tmp_path / "spm.model"
    train_sentencepiece([s for s, _ in PAIRS], path, vocab_size=36, pieces=["cat"])
    owned = MultilingualTokenizer.from_file(path)
    train_sentencepiece([s for s, _ in PAIRS], path, vocab_size=15, model_type="word")
    for tokenizer, why in (
        (owned, "tokenizer.pieces are cut out of texts otherwise there"),
        (MultilingualTokenizer.from_file(path), "the tokenizer's model is neither unigram nor bpe"),
    ):
        with pytest.raises(UserError) as caught:
            tokenizer_json(tokenizer, before=[], after=[])
        assert str(caught.value) == why


def test_rows_with_other_ids_and_other_weights_fail(translator, tmp_path):
    predictor = translator()
    folder, _ = exported(predictor, tmp_path, SOURCES)
    with torch.no_grad():
        predictor.task.module.encoder.layers[0].feed_forward.inner.bias[0] += 0.5
    found = huggingface.WRITER.compare(predictor, folder, {}, SOURCES)
    with pytest.raises(ExportError, match=r"^The export differs from the model on 6 rows "):
        found.check()
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    first = predictor.task.text.encode(SOURCES, with_targets=False)["source"][0][0]
    content["model"]["vocab"][first][0] = "no piece of a text"
    path.write_text(json.dumps(content))
    with pytest.raises(ExportError) as caught:
        huggingface.WRITER.compare(predictor, folder, {}, SOURCES)
    assert str(caught.value).startswith("In the export row 0 (source: ")
    assert str(caught.value).endswith("Nothing was written.")


def test_textmill_does_not_run_it_and_says_what_does(translator, tmp_path):
    folder, _ = exported(translator(), tmp_path, SOURCES)
    manifest = read(folder)
    assert manifest.graph == "huggingface"
    assert set(manifest.files) == {
        *("config.json", "generation_config.json", "model.safetensors"),
        *("README.md", "tokenizer.json", "tokenizer_config.json"),
    }
    assert manifest.versions["transformers"] == transformers.__version__
    with pytest.raises(UserError, match=r"which textmill does not run.* AutoTokenizer\.from_"):
        load(folder)
    (folder / "config.json").write_text("{}")
    with pytest.raises(ExportError, match=r"Export the run again: textmill export RUN"):
        load(folder)
