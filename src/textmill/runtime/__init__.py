"""The machine a run meets: device, ranks, seeds, safe files, signals, logging."""

from textmill.runtime.devices import Env as Env
from textmill.runtime.ranks import Ranks as Ranks
from textmill.runtime.run_context import Experiment as Experiment
