"""Layers: set in whatever order, the last that speaks of a setting wins, and siblings stay."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from textmill.config.merge import Settings
from textmill.config.parameters import Parameter
from textmill.config.values.raw_values import Entries, Node
from textmill.config.values.typed_values import plain
from textmill.config.values.yaml_files import dump_yaml, parse_word, yaml_nodes
from textmill.errors import Place
from textmill.metrics.metric import RowMetric
from textmill.metrics.translation import Bleu, ChrF
from textmill.recipes.planning import plan_recipe


@dataclass(frozen=True)
class Inner:
    x: int = 1
    y: float | None = None


@dataclass(frozen=True)
class Outer:
    a: int = 0
    inner: Inner = field(default_factory=Inner)
    names: tuple[str, ...] = ("n",)


INNER = st.fixed_dictionaries(
    {}, optional={"x": st.integers(), "y": st.none() | st.floats(allow_nan=False)}
)
LAYER = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(), "inner": INNER, "names": st.lists(st.text(max_size=4), max_size=2),
    },
)  # fmt: skip


def joined(first: dict, second: dict) -> dict:
    both = {**first, **second}
    if "inner" in first and "inner" in second:
        both["inner"] = {**first["inner"], **second["inner"]}
    return both


def read_layers(settings: Settings, parameter: Parameter, nodes: list[Node]) -> object:
    """The value of one setting of ``task``, of which each layer says a node."""
    layers = [Entries({parameter.name: node}, Place("x.yaml")) for node in nodes]
    return settings.fields([parameter], layers, "task")[parameter.name]


@given(st.lists(LAYER, max_size=4))
def test_layers_are_a_merge_of_nested_mappings(layers):
    nodes = [yaml_nodes(dump_yaml(layer), source="x.yaml") for layer in layers]
    settings = Settings()
    found = read_layers(settings, Parameter("outer", Outer, Outer()), nodes)
    assert settings.problems == []
    wanted = plain(Outer())
    for layer in layers:
        wanted = joined(wanted, layer)
    assert plain(found) == wanted


def test_dotted_words_add_to_a_dict_and_a_whole_one_replaces_it():
    parameter = Parameter("columns", dict[str, int], {"source": 0, "target": 1})
    settings = Settings()
    dotted = parse_word("columns.target=2").tree().entries["columns"]
    assert read_layers(settings, parameter, [dotted]) == {"source": 0, "target": 2}
    whole = parse_word("columns={text: 3}").node
    assert read_layers(settings, parameter, [whole]) == {"text": 3}
    assert read_layers(settings, parameter, [whole, dotted]) == {"text": 3, "target": 2}


def read_metrics(word: str) -> tuple[Settings, object]:
    """What ``task.metrics=WORD`` sets."""
    settings = Settings()
    parameter = Parameter("metrics", tuple[RowMetric.Config, ...], ())
    return settings, read_layers(settings, parameter, [parse_word(f"task.metrics={word}").node])


def test_an_item_of_a_list_of_components_may_be_its_type_alone():
    settings, found = read_metrics("[bleu, {type: chrf, beta: 1}]")
    assert (found, settings.problems) == ((Bleu.Config(), ChrF.Config(beta=1)), [])


def test_another_type_keeps_the_components_that_it_has_too():
    def planned(*words):
        given = ("model.encoder.path=minilm", "train_data.holdout=0.1")
        return plan_recipe("pairs/pretrained", [*given, *words], targets=["trainer"]).plan

    plan = planned("model.type=pair_regressor", "task.type=pair_regression", "labels=null")
    model = plan.settings["model"]
    assert (model["type"], model["encoder"]["type"]) == ("pair_regressor", "pretrained")
    assert model["encoder"]["path"] == "minilm"
    assert model["dropout"] == 0.4, "a plain setting begins from the new type's default"
    (note,) = [note for note in plan.notes if "model.type" in note]
    assert note.endswith("keeps model.encoder.")


def test_another_type_keeps_the_components_that_layers_set_and_says_what_goes(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("model: {dropout: 0.1, encoder: {type: cnn, filters: 9}}\n")
    words = ["model.type=regressor", "task.type=document_regression", "labels=null"]
    plan = plan_recipe("classification/bilstm", words, configs=[file], targets=["trainer"]).plan
    assert plan.settings["model"]["encoder"]["filters"] == 9
    kept, gone = (note for note in plan.notes if "model.type" in note)
    assert kept.endswith("keeps model.embedding, model.encoder.")
    assert "discards model.dropout (" in gone
    assert "encoder" not in gone
