"""What transformers answers with a fine-tuned encoder's folder is what the run answers."""

import json

import pytest
import sentence_transformers
import torch
import transformers
from safetensors.torch import load_file

import textmill
from tests.runs.test_pretrained import trained
from textmill.checkpoint.calibration import Calibration
from textmill.checkpoint.manifest import manifest_of
from textmill.checkpoint.saved import SavedCheckpoints
from textmill.errors import UserError
from textmill.inference.export.huggingface_encoder import Form
from textmill.models.lora import merged
from textmill.runs.export import export

POOLER = "model.pooling.type=pooler"
GELU = (POOLER, "model.pooling.activation=gelu")
LONG = "the unbelievable cat sat on the mat and dogs bark at the moon"


def slow(*values):
    """Values of a test that takes the way of others."""
    return pytest.param(*values, marks=pytest.mark.slow)


def exported(run, *rows):
    file = run.parent / "rows.jsonl"
    listed = [{"text": row} if isinstance(row, str) else row for row in rows]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in listed))
    return export(run, "huggingface", rows=file)


def pipeline_scores(folder, task, text):
    answer = transformers.pipeline(task, model=str(folder), top_k=None, device="cpu")(text)
    answer = answer if isinstance(answer[0], dict) else answer[0]
    return {each["label"]: each["score"] for each in answer}


@pytest.mark.parametrize(
    ("family", "pooling"),
    [("bert", (POOLER,)), slow("roberta", (POOLER,)), ("electra", GELU), slow("deberta-v2", GELU)],
)
def test_a_classifier_is_one_of_transformers(family, pooling, tmp_path):
    run = trained("classification", family, tmp_path, *pooling, "task.max_length=20")
    made = exported(run, "the cat [SEP] sat </s>", LONG, "")
    assert made.comparison.same == 3
    assert "reads all of it, by AutoModelForSequenceClassification." in made.comparison.sentence
    ours = textmill.load(run)("dogs bark").scores
    assert pipeline_scores(made.folder, "text-classification", "dogs bark") == pytest.approx(
        ours, abs=1e-5
    )


@pytest.mark.parametrize("family", [slow("bert"), "roberta"])
def test_a_pair_is_read_as_one(family, tmp_path):
    run = trained("pairs", family, tmp_path, POOLER)
    made = exported(
        run, {"text1": "the cat", "text2": "dogs bark"}, {"text1": LONG, "text2": "the moon"}
    )
    assert made.comparison.same == 2
    pair = {"text": "the cat", "text_pair": "dogs bark"}
    ours = textmill.load(run)({"text1": "the cat", "text2": "dogs bark"}).scores
    found = pipeline_scores(made.folder, "text-classification", pair)
    assert found == pytest.approx(ours, abs=1e-5)


def test_a_number_is_in_the_units_of_the_data(tmp_path):
    span = "task.span=[-1.0, 4.0]"
    run = trained("regression", "bert", tmp_path, POOLER, span, "model.encoder.lora.rank=2")
    made = exported(run, "the cat", LONG)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(made.folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(made.folder)
    with torch.no_grad():
        found = model(**tokenizer("dogs bark", return_tensors="pt")).logits.item()
    assert found == pytest.approx(textmill.load(run)("dogs bark").number, abs=1e-4)
    assert model.config.problem_type == "regression"
    more = f"model.encoder.path={made.folder}", POOLER, "optimizer.lr=1e-30"
    again = trained("classification", "bert", tmp_path / "again", *more, steps=1)
    begun = textmill.load(again).task.module.get_submodule("text").state_dict()
    learned = merged(textmill.load(run).task.module).get_submodule("text").state_dict()
    assert all(torch.equal(begun[name], learned[name]) for name in begun)


def test_labels_of_several_have_a_probability_each(tmp_path):
    run = trained("classification", "bert", tmp_path, POOLER, "labels.multiple=true")
    made = exported(run, "the cat", LONG)
    ours = textmill.load(run)("dogs bark").scores
    found = pipeline_scores(made.folder, "text-classification", "dogs bark")
    assert found == pytest.approx(ours, abs=1e-5)


def calibrate(run, **found):
    """What ``textmill calibrate`` writes, with a temperature of one's choice."""
    checkpoint = SavedCheckpoints.of(run).best()
    facts = {"checkpoint": checkpoint.name, "manifest_sha256": manifest_of(checkpoint)[1]}
    facts |= {"thresholds": None, "correct": None, "rows": 1}
    facts |= {"errors": (0, 0), "tables": ((), ())}
    Calibration(**facts | found).write(checkpoint.parent)


def test_a_calibrated_classifier_has_its_temperature_in_the_weights(tmp_path):
    run = trained("classification", "bert", tmp_path, POOLER)
    before = textmill.load(run)("dogs bark").scores
    calibrate(run, temperature=0.01)
    ours = textmill.load(run)("dogs bark").scores
    assert ours != pytest.approx(before, abs=0.01)
    made = exported(run, "the cat", LONG)
    found = pipeline_scores(made.folder, "text-classification", "dogs bark")
    assert found == pytest.approx(ours, abs=1e-5)
    calibrate(run, temperature=2.0, thresholds=dict.fromkeys(before, 0.5))
    encoder = export(run, "huggingface", out=tmp_path / "alone")
    assert "no model there has thresholds" in encoder.comparison.sentence


def of_readme(folder):
    """What the lines of Python in an export's README.md make."""
    lines = (folder / "README.md").read_text().split("```")[1].removeprefix("python")
    made = {}
    exec(lines.replace("FOLDER", str(folder)), made)  # as its reader does
    return made


@pytest.mark.parametrize("family", ["bert", "roberta", slow("electra"), slow("deberta-v2")])
def test_a_tagger_labels_the_first_piece_of_each_word(family, tmp_path):
    run = trained("tagging", family, tmp_path)
    made = exported(run, {"words": LONG}, {"words": "the [SEP] cat"}, {"words": ""})
    assert made.comparison.same == 3
    tokenizer = transformers.AutoTokenizer.from_pretrained(made.folder)
    model = transformers.AutoModelForTokenClassification.from_pretrained(made.folder)
    words = ["dogs", "bark", "unbelievable"]
    given = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        best = model(**given).logits[0].argmax(-1).tolist()
    begins = [given.word_ids().index(number) for number in range(len(words))]
    found = [model.config.id2label[best[at]] for at in begins]
    assert found == [*textmill.load(run)("dogs bark unbelievable").tags]
    told = of_readme(made.folder)
    assert told["model"](**told["inputs"]).logits.shape[-1] == len(model.config.id2label)


@pytest.mark.parametrize(
    ("task", "family", "more", "why"),
    [
        ("classification", "bert", (), "model.pooling is not pooler"),
        ("classification", "electra", (POOLER,), "activation is tanh, but gelu there"),
        ("classification", "bert", (POOLER, "model.hidden=[4]"), "more before the scores"),
        (
            "classification",
            "bert",
            (POOLER, "task.loss.type=binary_cross_entropy"),
            "other probabilities",
        ),
        ("classification", "modernbert", (POOLER,), "layers before the scores of a modernbert"),
        ("ner", "roberta", (), "random field"),
        slow("joint", "bert", (), "has the answers of IntentSlots"),
        slow("ranking", "bert", (), "has the answers of QueryDocumentRanking"),
        ("question", "bert", (), "has the answers of QuestionAnswering"),
        slow("trees", "bert", (), "has the answers of TreeTagging"),
        ("embedding", "bert", ("model.pooling.type=attention",), "has no such pooling"),
    ],
)
def test_else_it_is_the_encoder_with_the_other_weights_beside(task, family, more, why, tmp_path):
    run = trained(task, family, tmp_path, *more)
    made = export(run, "huggingface")
    assert made.comparison.same == made.comparison.rows
    assert "reads the encoder alone, by AutoModel, and the weights" in made.comparison.sentence
    assert why in made.comparison.sentence
    assert why in (made.folder / "README.md").read_text()
    most = {"classification": 30, "ranking": 30, "embedding": 30}.get(
        task, 40 - 2 * (family == "roberta")
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(made.folder)
    assert tokenizer.model_max_length == most
    module = textmill.load(run).task.module
    head = load_file(made.folder / "head.safetensors")
    whole = module.state_dict()
    encoder = {name for name in whole if "encoder.model." in name}
    assert head.keys() == whole.keys() - encoder
    assert all(torch.equal(head[name], whole[name]) for name in head)


@pytest.mark.parametrize(
    ("family", "more"),
    [
        ("bert", ("model.pooling.type=mean",)),
        ("roberta", ("model.pooling.type=first", "model.normalize=false")),
        ("modernbert", ("model.pooling.type=max",)),
        slow("deberta-v2", ("model.pooling.type=first",)),
    ],
)
def test_a_sentence_encoder_is_one_of_sentence_transformers(family, more, tmp_path):
    run = trained("embedding", family, tmp_path, *more)
    made = export(run, "huggingface")
    assert "sentence-transformers reads all of it;" in made.comparison.sentence
    assert not (made.folder / "head.safetensors").exists()
    library = sentence_transformers.SentenceTransformer(str(made.folder), device="cpu")
    texts = ["dogs bark", LONG, "the [SEP] cat </s>"]
    wanted = library.encode(texts, show_progress_bar=False)
    assert textmill.load(run).embed(texts) == pytest.approx(wanted, abs=1e-5)
    assert textmill.load_encoder(str(made.folder)).embed(texts) == pytest.approx(wanted, abs=1e-5)
    assert of_readme(made.folder)["vectors"].shape == (2, wanted.shape[1])


def test_a_form_says_how_it_is_read():
    assert Form("AutoModelForTokenClassification").note == (
        "transformers reads all of it, by AutoModelForTokenClassification."
    )


def test_another_tokenizer_is_refused(tmp_path):
    made = tmp_path / "encoder/tokenizer.json"
    words = "tokenizer.type=huggingface", f"tokenizer.path={made}"
    run = trained("classification", "bert", tmp_path, *words)
    with pytest.raises(UserError, match="the tokenizer is a HuggingFaceTokenizer, not the enc"):
        export(run, "huggingface")
