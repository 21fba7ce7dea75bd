"""What transformers answers with what a run began with is what the run answers, or refused."""

import json
import math
from dataclasses import replace

import pytest
import torch

from tests.pretrained_checkpoints import TEXTS, save_language_model, save_seq2seq
from textmill.errors import UserError
from textmill.exported import load
from textmill.exported.manifest import ExportError, read
from textmill.inference import Predictor
from textmill.inference.export import huggingface
from textmill.inference.export.folder import refuse_unsupported, write_export
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.classifier import Classifier
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.decoding import Decoding
from textmill.models.language_model import LstmLanguageModel
from textmill.tasks import Translation
from textmill.tasks.classification import DocumentClassification
from textmill.tasks.generation import SemanticParsing
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.task import Task
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.character_tokenizers import CharacterTokenizer
from textmill.text.tokenizers.pretrained import PretrainedTokenizer

transformers = pytest.importorskip("transformers")

ROWS = [{"source": text} for text in (*TEXTS, "the cat", "")]


def read_from(folder, kind, config, tokenizer=None):
    """A predictor with the weights of a folder."""
    model = kind.Config(path=str(folder))
    tokenizer = tokenizer or PretrainedTokenizer.Config().build(model=model)
    module = model.build(tokenizer=tokenizer)
    task = config.build(module=module, tokenizer=tokenizer)
    task.initialize()
    return Predictor(task, checkpoint="made")


@pytest.fixture(scope="session")
def bart(tmp_path_factory):
    """Makes a predictor of a BART, with these settings of its task."""
    folder = save_seq2seq(tmp_path_factory.mktemp("bart") / "bart", "bart")
    return lambda kind=Translation, **settings: read_from(
        folder, PretrainedSeq2Seq, kind.Config(**settings)
    )


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory):
    """The folder of a GPT-2."""
    return save_language_model(tmp_path_factory.mktemp("gpt2") / "gpt2", "gpt2")


def exported(predictor, folder):
    """The folder that is written, and what the comparison found."""
    out = folder / "out"
    return out, write_export(predictor, "huggingface", out, rows=ROWS, where="rows", source={})


SHORT = Decoding(max_length_a=0, max_length_b=8)
SEARCHES = {
    "beams, no penalty": replace(SHORT, beam_size=3, length_penalty=0.0, early_stopping="never"),
    "beams, heuristic": replace(SHORT, beam_size=3, length_penalty=0.6, min_length=3),
    "scores": replace(SHORT, repetition_penalty=1.3, no_repeat_ngram=2, unknown_penalty=math.inf),
    "drawn": replace(SHORT, sample=True, n_best=2, temperature=0.7, top_k=5, top_p=0.9),
}
QUICK = ("beams, heuristic", "drawn")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SEARCHES]
)
def test_every_search_is_written(bart, tmp_path, name):
    decoding = SEARCHES[name]
    predictor = bart(decoding=decoding)
    folder, found = exported(predictor, tmp_path)
    assert (found.rows, found.same) == (len(ROWS), len(ROWS))
    settings = json.loads((folder / "generation_config.json").read_text())
    assert settings.get("num_beams") in (None, 1, decoding.beam_size)
    if decoding.sample:
        drawn = {name: settings[name] for name in ("do_sample", "temperature", "top_k", "top_p")}
        assert drawn == {"do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9}
        return
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    for row in ROWS:
        ids = model.generate(**tokenizer(row["source"], return_tensors="pt"))[0]
        assert tokenizer.decode(ids, skip_special_tokens=True) == predictor(row).text


def refusal(task):
    with pytest.raises(UserError) as caught:
        refuse_unsupported(task, "huggingface")
    return str(caught.value)


def language(model, tokenizer):
    module = model.Config().build(tokenizer=tokenizer)
    config = LanguageModeling.Config(block=8, decoding=Decoding())
    return config.build(module=module, tokenizer=tokenizer)


def test_models_built_from_settings_are_refused_with_the_formats_that_do(translator):
    characters = CharacterTokenizer.Config(characters="abc").build()
    rows = [{"label": "a", "text": "b"}, {"label": "b", "text": "c"}]
    labels = FittedLabels.Config().build(train_data=rows)
    classifier = Classifier.Config().build(tokenizer=characters, labels=labels)
    config = DocumentClassification.Config()
    for task, ways in (
        (translator().task, "Export it by --format ctranslate2, or use the run"),
        (language(CausalTransformer, characters), "Export it by --format ctranslate2, or use"),
        (language(LstmLanguageModel, characters), "Use the run itself: textmill predict RUN."),
        (
            config.build(module=classifier, tokenizer=characters, labels=labels),
            "Export it by --format onnx, or use the run itself",
        ),
    ):
        message = refusal(task)
        assert message.startswith(f"A {type(task).__name__} cannot be exported to huggingface:")
        assert "not read from a folder of transformers" in message
        assert f"\n{ways}" in message


class OwnTask(Task):
    """A task of a person's own around a pretrained module."""

    def __init__(self, module):
        self.module = module


OwnTask.__abstractmethods__ = frozenset()


def test_a_task_of_ones_own_is_not_said_to_have_a_model_built_from_settings(gpt2):
    predictor = read_from(gpt2, PretrainedLanguageModel, LanguageModeling.Config(block=8))
    message = refusal(OwnTask(predictor.task.module))
    own = "a OwnTask of a PretrainedLanguageModel is not written as a model of transformers"
    assert message.split("\n")[1:] == [f"  {own}", "Use the run itself: textmill predict RUN."]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"decoding": Decoding(beam_size=2)}, "task.decoding.length_penalty is 1.0"),
        ({"until": "length"}, "task.until is length"),
    ],
)
def test_searches_that_transformers_does_not_have_are_refused(gpt2, settings, name):
    config = LanguageModeling.Config(block=8, **settings)
    assert f"\n  {name}" in refusal(read_from(gpt2, PretrainedLanguageModel, config).task)


def test_other_penalties_and_tokenizers_are_refused(bart, gpt2):
    task = bart(decoding=Decoding(unknown_penalty=0.5)).task
    assert "\n  task.decoding.unknown_penalty is 0.5" in refusal(task)
    message = refusal(bart(SemanticParsing, answer_prefix="the").task)
    assert "\n  task.answer_prefix is 'the'" in message
    characters = CharacterTokenizer.Config(characters="abc").build()
    other = read_from(gpt2, PretrainedLanguageModel, LanguageModeling.Config(block=8), characters)
    assert "the tokenizer is a CharacterTokenizer, not the model's own" in refusal(other.task)
    lacks_end = json.loads((gpt2 / "tokenizer.json").read_text())
    tokens = lacks_end["added_tokens"], lacks_end["model"]["vocab"]
    tokens[0].clear()
    tokens[1]["a mark"] = tokens[1].pop("<|endoftext|>")
    file = gpt2.parent / "tokenizer.json"
    file.write_text(json.dumps(lacks_end))
    tokenizer = PretrainedTokenizer.Config(path=file).build()
    other = read_from(gpt2, PretrainedLanguageModel, LanguageModeling.Config(block=8), tokenizer)
    assert "tokens around a text that its tokenizer.json does not have" in refusal(other.task)


def test_rows_with_other_ids_and_other_weights_fail(bart, tmp_path):
    predictor = bart(decoding=SHORT)
    folder, _ = exported(predictor, tmp_path)
    with torch.no_grad():
        predictor.task.module.model.model.shared.weight[5:] += 0.5
    found = huggingface.WRITER.compare(predictor, folder, {}, ROWS)
    with pytest.raises(ExportError, match=r"^The export differs from the model on 5 rows "):
        found.check()
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["normalizer"] = {"type": "Lowercase"}
    path.write_text(json.dumps(content))
    with pytest.raises(ExportError, match=r"^In the export row 2 \(source: .* was written\.$"):
        huggingface.WRITER.compare(predictor, folder, {}, ROWS)


def test_textmill_does_not_run_it_and_says_what_does(bart, tmp_path):
    folder, _ = exported(bart(decoding=SHORT), tmp_path)
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
    with pytest.raises(ExportError, match=r"export the run again: textmill export RUN"):
        load(folder)
