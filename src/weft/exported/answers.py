"""What a model that generates text answers."""

from dataclasses import dataclass

from typing_extensions import override

__all__ = ["Found", "Translated"]


@dataclass(frozen=True)
class Translated:
    """A generated text with its score; ``str()`` gives the text.

    Example:
        >>> print(Translated("Bonjour.", -0.31))
        Bonjour.
    """

    text: str
    """The text."""
    score: float
    """Its length-normalized log-probability (natural logarithm; higher is more certain)."""
    alternatives: tuple["Translated", ...] = ()
    """The other hypotheses of an n-best search, best first."""

    @override
    def __str__(self) -> str:
        return self.text

    def row(self) -> dict[str, object]:
        """The answer as plain data, as a file of predictions has it.

        Example:
            >>> Translated("Bonjour.", -0.31).row()
            {'prediction': 'Bonjour.', 'score': -0.31}
        """
        row: dict[str, object] = {"prediction": self.text, "score": round(self.score, 6)}
        if self.alternatives:
            row["alternatives"] = [
                {"prediction": a.text, "score": round(a.score, 6)} for a in self.alternatives
            ]
        return row


@dataclass(frozen=True)
class Found:
    """A target sequence that an exported graph's search found."""

    ids: list[int]
    """Token ids without the prefix and without the end mark."""
    score: float
    """As :attr:`Translated.score`."""
