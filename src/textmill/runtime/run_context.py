"""``xp``: what an ingredient may know of the run it is built for."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Experiment:
    """The run at hand, given to every ingredient with a parameter ``xp``.

    Example:
        >>> Experiment(folder=Path("runs/demo/0a1b"), recipe="demo", key="0a1b").folder.name
        '0a1b'
    """

    folder: Path
    """Where the run writes; it exists when ingredients are built."""
    recipe: str = ""
    """The recipe as it was named: a script, an experiment or a YAML file."""
    key: str = ""
    """Hash of the settings and of the code that make this run what it is."""
    overrides: tuple[str, ...] = ()
    """The words of the command line, as typed."""
