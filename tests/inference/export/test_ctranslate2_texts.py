"""Language models by CTranslate2: the texts go on as textmill's do, or the export is refused."""

import pytest
import torch

import textmill
from tests.trained_run import PAIRS, library_run
from textmill.errors import UserError
from textmill.exported import load
from textmill.exported.formats import ExportSettings
from textmill.inference import Predictor
from textmill.inference.export.folder import write_export
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoding import Decoding
from textmill.models.layers.attention import MultiHead, TalkingHeads
from textmill.tasks.language_model import LanguageModeling

ROWS = [{"text": text} for text in (*PAIRS[1], "", "Go", "The cat", "I do not know")]
GREEDY = Decoding(max_length_a=0.0, max_length_b=12)


MODELS = {
    "rotary": {},
    "another base": {"rotary_base": 500.0},
    "shared keys": {"attention": MultiHead.Config(num_kv_heads=1)},
    "learned, post-norm, not tied": {"positions": "learned", "norm_order": "post", "tie": False},
    "sinusoidal, gated, rms": {
        "positions": "sinusoidal",
        "activation": "silu",
        "feed_forward": "gated",
        "norm": "rms_norm",
    },
}


def predictor(*, decoding=GREEDY, until="row", seed=0, **model):
    tokenizer = textmill.load(library_run()).task.text.tokenizer
    torch.manual_seed(seed)
    settings = {"dim": 16, "num_layers": 2, "num_heads": 2, "ffn_dim": 32, "max_length": 40}
    module = CausalTransformer.Config(**{**settings, **model}).build(tokenizer=tokenizer)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    config = LanguageModeling.Config(decoding=decoding, until=until, block=32)
    return Predictor(config.build(module=module, tokenizer=tokenizer), checkpoint="made")


def exported(model, out, form="ctranslate2"):
    return write_export(model, form, out, rows=ROWS, where="rows", source={})


@pytest.mark.parametrize("until", ["row", "length"])
@pytest.mark.parametrize("name", MODELS)
def test_texts_go_on_alike(tmp_path, name, until):
    model = predictor(until=until, **MODELS[name])
    found = exported(model, tmp_path / "out")
    assert (found.same, found.rows) == (len(ROWS), len(ROWS))
    assert found.largest < 1e-5
    answers = load(tmp_path / "out", device="cpu", threads=2)(ROWS)
    for ours, theirs in zip(answers, model(ROWS), strict=True):
        assert ours.text == theirs.text
        assert ours.score == pytest.approx(theirs.score, abs=1e-5)


def test_a_quantized_one_is_measured_by_its_perplexity(tmp_path):
    found = exported(predictor(), tmp_path / "out", ExportSettings("ctranslate2", quantize="int8"))
    assert found.quality.metric == "loss"
    assert found.quality.export["perplexity"] == pytest.approx(
        found.quality.run["perplexity"], rel=0.05
    )


def test_what_it_cannot_express_is_refused_by_its_settings(tmp_path):
    decoding = Decoding(beam_size=2, repetition_penalty=1.5)
    model = predictor(decoding=decoding, attention=TalkingHeads.Config())
    with pytest.raises(UserError) as caught:
        exported(model, tmp_path / "out")
    assert str(caught.value).splitlines()[1:-1] == [
        "  task.decoding.repetition_penalty is 1.5",
        "  task.decoding.beam_size is 2",
        "  model.attention is a TalkingHeads, not multi_head",
    ]
    assert list(tmp_path.iterdir()) == []
