"""Names of data in files: what is listed here is imported when it is asked for."""

from textmill.config.registry import Registry

datasets = Registry(
    "data",
    {
        "textmill.data.text_lines": ["text_lines"],
        "textmill.data.text_pairs": ["text_pairs"],
        "textmill.data.text_rows": ["text_rows"],
    },
    plural="datasets",
    fills=("train_data", "valid_data", "test_data"),
)
