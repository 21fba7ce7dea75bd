"""Descriptions of saved columns, tokenizers and text processors, changed as a stranger may."""

import json
from pathlib import Path
from typing import Any


def change(path: Path, /, **settings: Any) -> None:
    """Gives a description other settings, or more."""
    content = json.loads(path.read_text())
    content["settings"] |= settings
    path.write_text(json.dumps(content))
