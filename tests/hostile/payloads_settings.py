"""Payloads in ``config.yaml`` and ``run.json``: what the library rebuilds a run from."""

import os
from pathlib import Path

from tests.hostile.folder import CANARY_CODE, block_says, many, module_says, payload, task_says

# -- config.yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)
CONFIGS = {
    "aliases that grow": BOMB,
    "an alias to itself": "built: &a {module: *a}\n",
    "merge keys": "a: &a {type: transformer}\nbuilt: {module: {<<: *a}}\n",
    "python/object/apply": f'built: !!python/object/apply:builtins.exec ["{CANARY_CODE}"]\n',
    "python/object/new": "built: !!python/object/new:os.system ['touch CANARY']\n",
    "python/name": "built: {module: {type: !!python/name:os.system ''}}\n",
    "python/module": "built: !!python/module:antigravity ''\n",
    "a binary tag": "built: {module: {type: !!binary dHJhbnNmb3JtZXI=}}\n",
    "nested lists": "built: " + "[" * 100_000,
    "nested mappings": "built: " + "{a: " * 100_000,
    "nested blocks": "\n".join(" " * i + "a:" for i in range(1000)),
    "larger than a file of settings": "a: " + "x" * 2_000_000,
    "many keys": "".join(f"k{i}: {i}\n" for i in range(50_000)),
    "empty": "",
    "a word": "transformer",
    "a list": "- built\n",
    "two documents": "built: {}\n---\nbuilt: {}\n",
    "a key twice": "built: {}\nbuilt: {}\n",
    "no built": "recipe: recipe.py\n",
    "built is a word": "built: '@os.system'\n",
    "built is null": "built: null\n",
    "module is an import path": "built: {module: '@os.system', task: {type: translation}}\n",
    "module is a list": "built: {module: [1, 2], task: {type: translation}}\n",
    "type is a list": "built: {module: {type: [a]}, task: {type: translation}}\n",
    "type is a mapping": "built: {module: {type: {type: x}}, task: {type: translation}}\n",
    "type is null": "built: {module: {type: null}, task: {type: translation}}\n",
    "NUL": "built: \0\n",
    "carriage returns and escapes": 'built: "\\x1b[2J\\r"\n',
}


def write_config(run: Path, content: str) -> None:
    (run / "config.yaml").write_text(content)


many("config", CONFIGS, write_config)
TYPES = {
    "import path": "'@os.system'",
    "dotted path": "os.system",
    "a task": "translation",
    "a data set": "text_pairs",
    "unknown": "transformerx",
    "a path": "../../x.py",
    "long": "x" * 100_000,
}
many("type of the module", TYPES, lambda run, kind: module_says(run, f"type: {kind}"))
many("type of the task", TYPES | {"a task": "transformer"}, lambda r, k: task_says(r, f"type: {k}"))
SIZES = {
    "vocabulary": "vocabulary_size: 1000000000000",
    "width": "dim: 1000000000",
    "feed-forward": "ffn_dim: 1000000000000",
    "length": "max_length: 1000000000000",
    "offset": "position_offset: 1000000000000",
    "negative offset": "position_offset: -100000",
    "heads": "num_heads: 1000000000",
    "no heads": "num_heads: 0",
    "negative width": "dim: -16",
    "odd width": "dim: 7",
    "more digits than are read": "dim: " + "9" * 10_000,
    "NaN": "dropout: .nan",
    "infinite": "dropout: .inf",
    "NaN for a number": "dim: .nan",
    "text": "dim: wide",
    "an import path": "activation: '@os.system'",
    "a list": "dim: [16]",
    "null": "dim: null",
    "other padding": "pad_idx: 7",
    "another width": "dim: 32",
    "fewer layers": "num_decoder_layers: 2",
    "unknown setting": "dim: 16\n    __class__: os.system",
}
many("module", SIZES, module_says)
BLOCKS = {
    "feed-forward": "ffn_dim: 1000000000000",
    "another feed-forward": "ffn_dim: 48",
    "offset": "offset: 1000000000000",
    "negative offset": "offset: -1",
    "heads": "num_heads: 1000000000",
    "no heads": "num_heads: 0",
    "heads of keys": "num_kv_heads: 1",
    "NaN": "dropout: .nan",
    "no eps": "eps: 0",
    "norms elsewhere": "norm_order: post",
    "an import path": "type: '@os.system'",
    "a dotted path": "type: os.system",
    "a block of another concept": "type: rms_norm",
    "an unknown block": "type: rotaryx",
    "unknown setting": "ffn_dim: 32\n        __class__: os.system",
}
many("block", BLOCKS, block_says)
TASKS = {
    "beam": "beam_size: 1000000000",
    "n-best": "n_best: 1000000000",
    "length penalty NaN": "length_penalty: .nan",
    "length NaN": "max_length_a: .nan",
    "length infinite": "max_length_a: .inf",
    "length huge": "max_length_a: 1.0e+300",
    "length added": "max_length_b: 1000000000000000000",
    "source length": "max_source_length: 1000000000000",
    "source length negative": "max_source_length: -1",
    "smoothing NaN": "label_smoothing: .nan",
}
many("task", TASKS, task_says)


@payload("config: a pipe")
def _(run: Path) -> None:
    (run / "config.yaml").unlink()
    os.mkfifo(run / "config.yaml")


@payload("config: a link to a device")
def _(run: Path) -> None:
    (run / "config.yaml").unlink()
    (run / "config.yaml").symlink_to("/dev/zero")


@payload("config: a folder")
def _(run: Path) -> None:
    (run / "config.yaml").unlink()
    (run / "config.yaml").mkdir()


@payload("config: not text")
def _(run: Path) -> None:
    (run / "config.yaml").write_bytes(b"\xff\xfe\x00built")


@payload("config: a recipe elsewhere")
def _(run: Path) -> None:
    path = run / "config.yaml"
    path.write_text(path.read_text().replace("recipe: recipe.py", "recipe: ../../x.py"))


@payload("modules that shadow the library's")
def _(run: Path) -> None:
    for name in ("torch", "yaml", "textmill", "sitecustomize", "sentencepiece"):
        (run / f"{name}.py").write_text(CANARY_CODE)
    (run / "recipe.py").write_text(CANARY_CODE)


# -- run.json

many(
    "run.json",
    {
        "another format": '{"format": 99}',
        "not JSON": "{",
        "deep": "[" * 100_000,
        "deep mapping": '{"format_version": 1, "a": ' + '{"a": ' * 100_000,
        "a list": "[1]",
        "a digit bomb": '{"format": ' + "9" * 100_000 + "}",
        "NaN": '{"format": NaN}',
        "surrogates": '{"format_version": 1, "recipe": "\\ud800"}',
        "huge": '{"format_version": 1, "a": "' + "x" * (20 << 20) + '"}',
    },
    lambda run, content: (run / "run.json").write_text(content) and None,
)


@payload("run.json: a pipe")
def _(run: Path) -> None:
    (run / "run.json").unlink()
    os.mkfifo(run / "run.json")
