"""The machine a run meets: device, ranks, seeds, safe files, signals, logging."""

from textmill.runtime.devices import Env as Env
from textmill.runtime.devices import Experiment as Experiment
from textmill.runtime.ranks import Ranks as Ranks
