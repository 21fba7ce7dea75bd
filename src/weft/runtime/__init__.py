"""The machine a run meets: device, ranks, seeds, safe files, signals, logging."""

from weft.runtime.devices import Env as Env
from weft.runtime.ranks import Ranks as Ranks
from weft.runtime.run_context import Experiment as Experiment
