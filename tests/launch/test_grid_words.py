"""Which words of a grid vary, and what is refused of them."""

import pytest

from textmill.errors import UserError
from textmill.launch.cells import GridWords, split_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1e-4,3e-4", ["1e-4", "3e-4"]),
        ("[1,2],[3]", ["[1,2]", "[3]"]),
        ("{a: [1,2], b: 3},null", ["{a: [1,2], b: 3}", "null"]),
        ("'a,b.tsv','c,d.tsv'", ["'a,b.tsv'", "'c,d.tsv'"]),
        ('["x,]y",2],3', ['["x,]y",2]', "3"]),
        ("it's,fine", ["it's", "fine"]),
        ("log(1e-5,1e-2)", ["log(1e-5,1e-2)"]),
        ("a(b,c", ["a(b,c"]),
        ("a),b", ["a)", "b"]),
        ("", [""]),
    ],
)
def test_commas_in_brackets_and_quotes_divide_nothing(text: str, values: list[str]) -> None:
    assert split_values(text) == values


def test_the_product_has_the_last_setting_change_first_and_seeds_last() -> None:
    read = GridWords.read(["lr=1,2", "trainer.max_steps=9", "--model.dim=4,8"], seeds=2)
    assert read.fixed == ("trainer.max_steps=9",)
    cells = list(read.cells())
    assert len(cells) == 8
    assert cells[:3] == [
        ("lr=1", "model.dim=4", "trainer.seed=1"),
        ("lr=1", "model.dim=4", "trainer.seed=2"),
        ("lr=1", "model.dim=8", "trainer.seed=1"),
    ]


@pytest.mark.parametrize("name", ["seed", "trainer.seed", "--seed"])
def test_seeds_are_last_wherever_and_however_they_are_typed(name) -> None:
    read = GridWords.read([f"{name}=3,4", "lr=1,2"])
    assert [axis.name for axis in read.axes] == ["lr", "trainer.seed"]
    assert next(read.cells()) == ("lr=1", "trainer.seed=3")


@pytest.mark.parametrize(
    ("words", "seeds", "message"),
    [
        (["lr=1,2", "lr=3"], None, "optimizer.lr is given twice."),
        (["lr=1,2", "--optimizer.lr=3,4"], None, "optimizer.lr is given twice."),
        (["seed=3"], 2, "trainer.seed is given twice (--seeds sets it, too)."),
        (["seed=3,4"], 2, "trainer.seed is given twice"),
        ([], 0, "--seeds is 0; wanted how many, at least 1."),
    ],
)
def test_words_that_cannot_be_meant_are_refused(words, seeds, message) -> None:
    with pytest.raises(UserError) as error:
        GridWords.read(words, seeds).in_full({"lr": "optimizer.lr"})
    assert str(error.value).startswith(message)
