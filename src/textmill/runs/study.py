"""An Optuna study in the folder of a search, whose journal is the whole state of the search."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from textmill.errors import MissingExtraError
from textmill.runtime.jsonl_log import LineLog

JOURNAL = "trials.jsonl"
"""Optuna's journal: lines of JSON and no pickle."""


class Study:
    """The trials of a search, which goes on with those that were interrupted.

    Each trial has a sampler made from its number, so that a proposal depends on the trials before
    it and on nothing that a restart loses.

    The journal is in ``folder``, which no other process may use at the same time. ``total`` counts
    the trials of former starts, too; ``what`` is the command that needs Optuna, for the error if it
    is not installed; options are those of ``optuna.create_study``.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        total: int,
        spaces: Mapping[str, Any],
        sampler: Callable[[int], Any],
        *,
        what: str,
        **options: Any,
    ) -> None:
        self.optuna: Any = import_optuna(what)
        self.total, self.spaces, self.sampler = total, spaces, sampler
        with LineLog(folder / JOURNAL):  # a half line that a kill left is cut off
            pass
        journal = self.optuna.storages.journal
        backend = journal.JournalFileBackend(str(folder / JOURNAL), lock_obj=_NoLock())
        self.study = self.optuna.create_study(
            storage=journal.JournalStorage(backend), study_name=name, load_if_exists=True, **options
        )
        unfinished = [trial for trial in self.trials if not trial.state.is_finished()]
        whole = [trial for trial in unfinished if trial.params.keys() == spaces.keys()]
        self._open = [trial.number for trial in whole]
        for number in {trial.number for trial in unfinished} - {*self._open}:
            self.tell(number, state="FAIL")  # killed while it was proposed

    @property
    def trials(self) -> list[Any]:
        found: list[Any] = self.study.get_trials(deepcopy=False)
        return found

    def take(self) -> Any | None:
        """The next trial: an interrupted one, else a new one; None if there are ``total``."""
        if self._open:
            return self.live(self._open.pop(0))
        number = len(self.trials)
        if number >= self.total:
            return None
        self.study.sampler = self.sampler(number)
        return self.study.ask(dict(self.spaces))

    def live(self, number: int) -> Any:
        return self.optuna.trial.Trial(self.study, self.trials[number]._trial_id)

    def tell(self, number: int, value: float | None = None, *, state: str = "COMPLETE") -> None:
        """Ends a trial with its value, or with a state such as ``FAIL``."""
        try:
            self.study.tell(number, value, state=self.optuna.trial.TrialState[state])
        except RuntimeError:  # a sampler that has proposed everything tries to stop a loop
            if not self.trials[number].state.is_finished():
                raise


def import_optuna(what: str) -> Any:
    """Imports Optuna, which then logs warnings only."""
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", extra="optuna", what=what) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class _NoLock:
    """No lock of the journal: the folder is locked, and Optuna's would leave a file behind."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        return
