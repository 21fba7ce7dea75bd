from textmill.metrics.tables import text_table, values_table


def test_values_alone() -> None:
    assert values_table({"loss": 2.5, "accuracy": 0.5}) == (
        "value     result\nloss       2.500\naccuracy  50.0 %"
    )


def test_a_value_that_is_not_a_number_lines_up() -> None:
    table = values_table({"loss": float("nan"), "perplexity": float("inf")})
    assert table.splitlines()[1:] == ["loss           nan", "perplexity     inf"]


def test_a_table_without_rows_is_its_header() -> None:
    assert text_table(["a", "b"], []) == "a  b"
