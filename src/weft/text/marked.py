"""A part of a text that an answer marks: a name, a slot."""

from dataclasses import dataclass
from typing import Any

__all__ = ["MarkedText"]


@dataclass(frozen=True, kw_only=True)
class MarkedText:
    """Base of what tags of words mark in a text; a subclass says what it is marked as."""

    text: str
    """As it is in the text."""
    start: int
    """The first character, from 0, in the text; in that of a list of words, one space is between
    two."""
    end: int
    """After the last character."""
    score: float
    """The probability of its least certain tag."""

    def row(self) -> dict[str, Any]:
        """The same as plain data, for a predictions file.

        Example:
            >>> MarkedText(text="at 8", start=8, end=12, score=0.9).row()
            {'text': 'at 8', 'start': 8, 'end': 12, 'score': 0.9}
        """
        score = round(self.score, 6)
        return {"text": self.text, "start": self.start, "end": self.end, "score": score}
