"""An Optuna study in the folder of a search: its journal is all that the search knows."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from textmill.errors import MissingExtraError
from textmill.runtime.jsonl_log import JsonlLog

JOURNAL = "trials.jsonl"
"""Optuna's journal: lines of JSON and no pickle."""


class Study:
    """The trials of a search, which goes on with those that were interrupted.

    A trial is asked for with a sampler made from the trial's number, so that what is proposed
    depends on the trials before it and on nothing that a restart loses.

    Args:
        folder: Where the journal is; no other process may use it at the same time.
        name: That of the study in the journal.
        total: Trials in all, those of former starts included.
        spaces: Optuna's distribution of each setting.
        sampler: Makes the sampler of a trial from its number.
        what: What needs Optuna, for the error if it is not installed.
        options: Of ``optuna.create_study``, such as ``direction``.
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
        with JsonlLog(folder / JOURNAL):  # a half line that a kill left is cut off
            pass
        journal = self.optuna.storages.journal
        backend = journal.JournalFileBackend(str(folder / JOURNAL), lock_obj=_NoLock())
        self.study = self.optuna.create_study(
            storage=journal.JournalStorage(backend), study_name=name, load_if_exists=True, **options
        )
        self._open = []
        for trial in self.trials:
            if not trial.state.is_finished() and trial.params.keys() == spaces.keys():
                self._open.append(trial.number)
            elif not trial.state.is_finished():  # killed while it was proposed
                self.tell(trial.number, state="FAIL")

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
        except RuntimeError:  # of a sampler that has proposed all there is, and would stop a loop
            if not self.trials[number].state.is_finished():
                raise


def import_optuna(what: str) -> Any:
    """Optuna, which says no more than warnings."""
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", extra="optuna", what=what) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class _NoLock:
    """Optuna's lock of the journal: the folder has one already, and a file would be left over."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        return
