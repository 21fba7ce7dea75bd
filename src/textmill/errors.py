"""The errors a user meets. Each says what was wanted, what was found, where, and what to do.

The command line turns an error into its exit code and prints no traceback (``--debug`` shows it):
1 for a run that failed, 2 for a mistake of the user's.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

_TYPED = [False]
"""Whether a command runs that a person typed."""


def worded(typed: str, called: str) -> str:
    """What to do, in the words of the command line while a command runs, else in those of Python.

    Example:
        >>> worded("--again", "again=True")
        'again=True'
        >>> with typed_command():
        ...     worded("--again", "again=True")
        '--again'
    """
    return typed if _TYPED[-1] else called


@contextmanager
def typed_command() -> Iterator[None]:
    """While it is open, messages name options of the command line, not arguments of Python."""
    _TYPED.append(True)
    try:
        yield
    finally:
        _TYPED.pop()


class TextmillError(Exception):
    """Every error textmill raises on purpose."""

    exit_code: ClassVar[int] = 1


class UserError(TextmillError):
    """Something the user wrote or named cannot work: nothing was run."""

    exit_code = 2


@dataclass(frozen=True)
class Place:
    """Where something was written: a file with line and column (from 1), or a command-line word.

    >>> print(Place("mine.yaml", 3, 5))
    mine.yaml:3:5
    >>> print(Place("command line: lr=x"))
    command line: lr=x
    """

    source: str
    line: int | None = None
    column: int | None = None

    @override
    def __str__(self) -> str:
        numbers = [str(n) for n in (self.line, self.column) if n is not None]
        return ":".join([self.source, *numbers])


MOST_PROBLEMS = 20
"""That one error shows: each entry of a long list may be one."""


def _first(lines: Iterable[str]) -> list[str]:
    shown = list(lines)
    more = len(shown) - MOST_PROBLEMS
    return shown if more <= 0 else [*shown[:MOST_PROBLEMS], f"and {more:,} more."]


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a recipe, and where it was written."""

    message: str
    place: Place | None = None

    @override
    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class PlanError(UserError):
    """Everything that is wrong with a recipe, found before anything ran."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{count} problem{'s' if count != 1 else ''} in the recipe; nothing was run."
        super().__init__("\n".join([head, *_first(f"  {problem}" for problem in self.problems)]))


class SeveralError(UserError):
    """Several things that were refused; the text of each is as it would be alone."""

    def __init__(self, errors: Sequence[TextmillError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(_first(map(str, errors))))


class DataError(UserError):
    """Rows that cannot be read, or more bad rows than allowed."""


class CodeNotAllowedError(UserError):
    """A run folder needs code of the recipe's own, and the caller has not allowed it."""


class MissingExtraError(UserError):
    """An optional package is not installed; the message names the extra that brings it."""

    def __init__(self, package: str, *, extra: str, what: str) -> None:
        super().__init__(
            f"{what} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'textmill[{extra}]'"
        )


TRAINING_PACKAGES = {"sacrebleu": "sacrebleu", "sklearn": "scikit-learn", "torch": "torch"}
"""What the extra ``train`` brings, by what is imported: an answer of an export needs none of it."""


def missing_training_extra(error: BaseException | None, what: str) -> MissingExtraError | None:
    """The extra that brings what trains, where its absence is the cause of an error.

    Args:
        error: What was raised, maybe from other errors.
        what: What was asked for.

    Example:
        >>> cause = ModuleNotFoundError("No module named 'torch'", name="torch")
        >>> print(missing_training_extra(cause, "It"))
        It needs the package 'torch', which is not installed. Install it with: \
pip install 'textmill[train]'
        >>> missing_training_extra(ValueError("'torch'"), "It")
    """
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name in TRAINING_PACKAGES:
            return MissingExtraError(TRAINING_PACKAGES[error.name], extra="train", what=what)
        error = error.__cause__
    return None


class RunError(TextmillError):
    """A run that started and could not go on."""


class RankLostError(RunError):
    """Other ranks of a run died, or cannot be reached."""


class OtherRankError(RankLostError):
    """This rank ends because another one had an error first, which is told there.

    Its exit code is that of the other one.
    """

    def __init__(self, message: str, *, exit_code: int = RankLostError.exit_code) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # that of the other one's error


class NonFiniteError(RunError):
    """A loss or gradient is NaN or infinite; the step did not touch the weights."""


class CheckpointError(RunError):
    """No checkpoint of a run can be used, or one does not fit what is to be restored."""


class StorageError(RunError):
    """A file could not be written; what was saved before is intact."""


class InUseError(RunError):
    """Another process works in this run folder."""


class RunStoppedError(RunError):
    """A signal asked the run to stop; its state was saved first."""

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number  # type: ignore[misc]  # one code per signal


def refuse_all(errors: Sequence[TextmillError]) -> None:
    """Raises the errors, if there are any; a single error as it is.

    Example:
        >>> refuse_all([])
        >>> refuse_all([UserError("steps is 0."), UserError("keep is 0.")])
        Traceback (most recent call last):
        textmill.errors.SeveralError: steps is 0.
        keep is 0.
    """
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise SeveralError(errors)


def try_all(*checks: Callable[[], object]) -> None:
    """Makes all checks, whatever one of them refuses, and raises all that they refuse.

    Example:
        >>> def refuse() -> None:
        ...     raise UserError("no.")
        >>> try_all(refuse, dict, refuse)
        Traceback (most recent call last):
        textmill.errors.SeveralError: no.
        no.
    """
    errors: list[TextmillError] = []
    for check in checks:
        try:
            check()
        except SeveralError as error:
            errors += error.errors
        except TextmillError as error:
            errors.append(error)
    refuse_all(errors)


def raised_at(error: BaseException) -> str:
    """The ``file:line`` of the user's own code that an error came from, else the innermost line."""
    frames = traceback.extract_tb(error.__traceback__)
    not_own = (Path(__file__).resolve().parent, Path(traceback.__file__).resolve().parent)
    own = []
    for frame in frames:
        file = Path(frame.filename).resolve()
        installed = "site-packages" in file.parts or any(map(file.is_relative_to, not_own))
        if not installed and file.suffix == ".py" and file.parent.name != "bin":
            own.append(frame)
    chosen = (own or list(frames))[-1:]
    return f"{chosen[0].filename}:{chosen[0].lineno}" if chosen else ""
