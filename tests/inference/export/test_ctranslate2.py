"""What CTranslate2 answers with textmill's weights is what textmill answers, or it is refused."""

import dataclasses
import json
import os

import pytest
import torch

from tests.trained_run import PAIRS
from textmill.errors import UserError
from textmill.exported import load
from textmill.exported.ctranslate2 import CTranslate2Graph
from textmill.exported.manifest import MANIFEST, ExportError
from textmill.exported.seq2seq import Search
from textmill.inference.export import ctranslate2
from textmill.inference.export.folder import ROWS, write_export
from textmill.models.decoding import Decoding, decode
from textmill.models.layers.attention import MultiHead, TalkingHeads
from textmill.tasks import Translation

SOURCES = [{"source": source} for source, _ in PAIRS]


MODELS = {
    "default": {},
    "post-norm, gelu": {"norm_order": "post", "activation": "gelu"},
    "learned positions": {"positions": "learned", "position_offset": 2},
    "nothing shared": {"tie": "none", "output_bias": True, "scale_embedding": False},
    "decoder shared, silu": {"tie": "decoder", "activation": "silu"},
    "tensor2tensor": {"positions": "sinusoidal_tensor2tensor", "num_encoder_layers": 1},
    "gated and rms": {"feed_forward": "gated", "norm": "rms_norm", "activation": "silu"},
    "another eps": {"norm_eps": 0.01},
    "rotary": {"positions": "rotary"},
    "rotary, post-norm": {"positions": "rotary", "rotary_base": 500.0, "norm_order": "post"},
    "shared keys": {"attention": MultiHead.Config(num_kv_heads=2), "num_heads": 4},
}
SEARCHES = {
    "greedy": Decoding(),
    "short": Decoding(max_length_a=0.0, max_length_b=5),
    "beam": Decoding(beam_size=4, n_best=3, early_stopping="first"),
    "beam, no penalty": Decoding(beam_size=3, length_penalty=0.0, early_stopping="first"),
    "beam, heuristic": Decoding(beam_size=3, length_penalty=0.6),
}


def exported(predictor, folder, rows=SOURCES, **more):
    found = write_export(
        predictor, "ctranslate2", folder / "out", rows=rows, where="rows", source={}, **more
    )
    return found, load(folder / "out", device="cpu", threads=1)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_it_can_express_answers_alike(translator, tmp_path, name):
    predictor = translator(**MODELS[name])
    found, model = exported(predictor, tmp_path)
    assert (found.rows, found.same) == (len(SOURCES), len(SOURCES))
    assert found.largest < 1e-5
    assert [a.text for a in model(SOURCES)] == [a.text for a in predictor(SOURCES)]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_real_rows_are_answered_alike(translator, tmp_path, shared_data, beam_size):
    lines = (shared_data / "tatoeba-en-fr" / "dev.tsv").read_text(encoding="utf-8").splitlines()
    rows = [{"source": line.split("\t")[0]} for line in lines[:210:3]]
    decoding = Decoding(beam_size=4, early_stopping="first") if beam_size == 4 else Decoding()
    predictor = translator(task=Translation.Config(decoding=decoding), seed=5)
    found, model = exported(predictor, tmp_path, rows)
    assert found.same == found.rows == ROWS
    rows = [row for row in rows if len(row["source"]) < 40]
    assert len(rows) > 40
    assert [a.text for a in model(rows)] == [a.text for a in predictor(rows)]


@pytest.mark.parametrize("name", SEARCHES)
def test_answers_begin_alike(translator, tmp_path, name):
    task = Translation.Config(decoding=SEARCHES[name], answer_prefix="Il dort")
    predictor = translator(task=task, seed=3)
    prefixes = ["", "Va", "Un chien dort sur le"]
    rows = [*SOURCES, *({**row, "prefix": text} for row in SOURCES[:4] for text in prefixes)]
    found, model = exported(predictor, tmp_path, rows)
    assert found.same == found.rows == len(rows)
    assert found.largest < 1e-5
    for row, ours, theirs in zip(rows, model(rows), predictor(rows), strict=True):
        assert ours.text == theirs.text
        assert ours.text.startswith(row.get("prefix", "Il dort"))
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
        assert [a.text for a in ours.alternatives] == [a.text for a in theirs.alternatives]


def test_prefixes_of_many_rows_are_answered_by_all_threads(translator, tmp_path):
    decoding = Decoding(beam_size=2, early_stopping="first")
    predictor = translator(task=Translation.Config(answer_prefix="Va", decoding=decoding), seed=3)
    exported(predictor, tmp_path)
    model = load(tmp_path / "out", device="cpu", threads=2)
    rows = [{"source": "Go. " * (1 + number % 7)} for number in range(150)]
    assert [a.text for a in model(rows)] == [a.text for a in predictor(rows)]


@pytest.mark.parametrize("forced", [None, [[9, 10], [], [5]]])
@pytest.mark.parametrize("prefix", [[2], [2, 9], [2, 9, 11]])
@pytest.mark.parametrize(
    "decoding",
    [Decoding(), Decoding(beam_size=3, n_best=2, early_stopping="first")],
    ids=["greedy", "beam"],
)
def test_a_prefix_of_several_ids_counts_for_nothing(translator, tmp_path, prefix, decoding, forced):
    task = translator(seed=1).task
    vocab, rows = task.text.tokenizer.vocab_info, [[9, 8, 7, 3], [12, 3], [5, 30, 31, 32, 33, 3]]
    ctranslate2.write_graph(task, tmp_path)
    search = Search(beam_size=decoding.beam_size, n_best=decoding.n_best, max_length=40)
    search = dataclasses.replace(search, early_stopping=decoding.early_stopping)
    graph = CTranslate2Graph(tmp_path, vocab=vocab, prefix=prefix, device="cpu", threads=1)
    for ours, row, begun in zip(
        graph.find(rows, search, forced), rows, forced or [[]] * 3, strict=True
    ):
        source, eos_idx = torch.tensor([row]), vocab.eos_idx
        (theirs,) = decode(
            task.module, source, None, decoding, prefix=prefix, eos_idx=eos_idx, forced=[begun]
        )
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        scores = [one.score for one in theirs]
        assert [one.score for one in ours] == pytest.approx(scores, abs=1e-5)


def test_a_model_it_cannot_express_is_refused_by_its_settings(translator, tmp_path):
    with pytest.raises(UserError) as caught:
        exported(translator(attention=TalkingHeads.Config()), tmp_path)
    head, *lines, end = str(caught.value).splitlines()
    assert head == "A Translation cannot be exported to ctranslate2:"
    assert "  model.attention is a TalkingHeads, not multi_head" in lines
    assert end == "Train it without these, or use the run itself: textmill predict RUN."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"decoding": Decoding(sample=True)}, "task.decoding.sample is True"),
        ({"decoding": Decoding(repetition_penalty=1.2)}, "task.decoding.repetition_penalty is 1.2"),
        ({"decoding": Decoding(no_repeat_ngram=3)}, "task.decoding.no_repeat_ngram is 3"),
        ({"decoding": Decoding(min_length=3)}, "task.decoding.min_length is 3"),
        ({"decoding": Decoding(unknown_penalty=2.0)}, "task.decoding.unknown_penalty is 2.0"),
    ],
)
def test_a_search_it_cannot_express_is_refused(translator, tmp_path, config, error):
    with pytest.raises(UserError, match="cannot be exported to ctranslate2") as caught:
        exported(translator(task=Translation.Config(**config)), tmp_path)
    assert str(caught.value).splitlines()[1:-1] == [f"  {error}"]


# --- compared, or not there -----------------------------------------------------------------------


def test_wrong_weights_are_found_and_leave_nothing(translator, tmp_path, monkeypatch):
    write = ctranslate2.write_graph

    def wrong(task, folder, *more):
        with torch.no_grad():
            task.module.output_weight[7, 3] += 0.5
        write(task, folder, *more)
        with torch.no_grad():
            task.module.output_weight[7, 3] -= 0.5

    monkeypatch.setattr(ctranslate2, "write_graph", wrong)
    with pytest.raises(ExportError) as caught:
        exported(translator(), tmp_path)
    message = str(caught.value)
    assert message.startswith("The export differs from the model on 8 rows of rows: ")
    assert "(allowed: 0.001). Most in row " in message
    assert list(tmp_path.iterdir()) == []


def test_weights_that_are_not_numbers_are_found_and_leave_nothing(translator, tmp_path):
    predictor = translator(tie="none")
    with torch.no_grad():
        for parameter in predictor.task.module.parameters():
            parameter.fill_(torch.nan)
    with pytest.raises(ExportError) as caught:
        exported(predictor, tmp_path)
    message = str(caught.value)
    assert message.startswith("The export differs from the model on 8 rows of rows: ")
    assert "log-probabilities a token are not all finite numbers" in message
    assert list(tmp_path.iterdir()) == []


def test_other_answers_are_found(translator, tmp_path, monkeypatch):
    predictor = translator()
    answers = predictor.answers
    monkeypatch.setattr(predictor, "answers", lambda rows: answers(rows[::-1]))
    with pytest.raises(ExportError, match=r"answers differ \(allowed: 5%\)"):
        exported(predictor, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_not_touched_unless_replaced(translator, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(UserError, match=r"out is there already\. .* with out"):
        exported(translator(), tmp_path)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
    exported(translator(), tmp_path, replace=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [MANIFEST, "graph", "text"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_rows_that_cannot_be_answered_are_left_out(translator, tmp_path):
    rows = [{"source": "x" * 9_999}, {"source": "Go. " * 30, "prefix": "Va"}, {"source": "Go."}]
    found, _ = exported(translator(), tmp_path, rows)
    assert found.rows == 1
    compared = json.loads((tmp_path / "out" / MANIFEST).read_bytes())["compared"]
    assert compared["rows"] == compared["same"] == 1
    assert compared["tolerance"] == 0.001
    with pytest.raises(UserError, match=r"None of the 2 rows of rows can .* rows=FILE"):
        exported(translator(), tmp_path / "more", rows[:2])


@pytest.mark.parametrize(
    ("environment", "threads", "expected"),
    [("", 0, None), ("3", 0, 3), ("3", 2, 2), ("2,1", 0, None)],
)
def test_each_thread_searches_by_itself(
    translator, tmp_path, monkeypatch, environment, threads, expected
):
    exported(translator(), tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", environment)
    graph = load(tmp_path / "out", device="cpu", threads=threads).graph
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert graph.program.num_translators == graph.threads == (expected or cores)
