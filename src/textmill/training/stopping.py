"""The end of a run that a signal asks for: at the next safe place, with everything saved."""

import signal

from textmill.errors import RunStoppedError
from textmill.runtime.ranks import Ranks
from textmill.runtime.signals import StopSignals


class StopAsked(Exception):  # noqa: N818  # no error: it leads out of an evaluation
    """A signal came during an evaluation, which is left at once."""


class Stops(StopSignals):
    """Signals that ask a run to stop; one on any rank is meant for all."""

    def __init__(self, ranks: Ranks) -> None:
        super().__init__()
        self.ranks = ranks

    def poll(self) -> None:
        """Raises :class:`StopAsked` if the run is to stop; nothing is saved yet."""
        if self.ranks.any(self.received is not None):
            heard = filter(None, self.ranks.gather(self.received))
            self.received = next(heard)  # all ranks say the same, and end with the same code
            raise StopAsked

    def error(self, step: int) -> RunStoppedError:
        """What ends the run, once everything is saved; the signal is forgotten with it."""
        everything = "everything is saved, and the same command goes on from here."
        return stopped(self, everything, at=f" at step {step:,}")


def stopped(stop: StopSignals, what: str, *, at: str = "") -> RunStoppedError:
    """What ends a run that a signal asked to stop; the signal is forgotten with it.

    Args:
        stop: The signals.
        what: What is saved, and how to go on.
        at: Where it was.
    """
    number, stop.received = stop.received or signal.SIGTERM, None
    return RunStoppedError(number, f"Stopped by {signal.Signals(number).name}{at}; {what}")
