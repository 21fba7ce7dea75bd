"""Names of data in files: what is listed here is imported when it is asked for."""

from weft.config.registry import Registry

datasets = Registry(
    "data",
    {
        "weft.data.huggingface": ["huggingface_pairs"],
        "weft.data.text_lines": ["text_lines"],
        "weft.data.text_pairs": ["text_pairs"],
        "weft.data.text_rows": ["text_rows"],
    },
    plural="datasets",
    fills=("train_data", "valid_data", "test_data"),
)
