"""Weights & Biases: the values of a run, online or in its offline files."""

import time
from collections.abc import Mapping
from typing import Any, Literal, final

from typing_extensions import override

from weft.config.component import Config as BaseConfig
from weft.config.component import setting
from weft.metrics import registries
from weft.metrics.reporters.remote_reporter import RemoteReporter
from weft.metrics.reporters.reporter import RunInfo

__all__ = ["Wandb"]

WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between tries while the service of a killed process still holds the run."""


@final
@registries.reporters.register("wandb")
class Wandb(RemoteReporter):
    """Hands the values to Weights & Biases. A resumed run goes on in the same run there.

    Offline, its files are in ``wandb`` in the run folder; ``wandb sync`` sends them later. Curves
    are drawn over the value ``step``: the service's own counter only grows, so after a run went
    back (``trainer.on_nonfinite=rollback``) it is ahead.
    """

    class Config(BaseConfig):
        """Where the run goes; what is not set, wandb takes from its own environment variables."""

        project: str = setting("weft", in_key=False)
        """The project."""
        entity: str | None = setting(None, in_key=False)
        """The user or team; none: the one that is logged in."""
        mode: Literal["online", "offline"] | None = setting(None, in_key=False)
        """Whether values are sent; none: as ``WANDB_MODE`` says, else online."""

    config: Config
    service = "Weights & Biases"
    package = "wandb"
    file = "wandb.jsonl"
    gathers = True
    _run: Any

    @override
    def _begin(self, info: RunInfo, known: str | None) -> str:
        import wandb

        name = known or self.new_name()
        for wait in (*WAITS, None):
            try:
                self._run = wandb.init(
                    project=self.config.project,
                    entity=self.config.entity,
                    mode=self.config.mode,
                    id=name,
                    resume="allow",
                    reinit="create_new",
                    name=f"{self._xp.recipe} {self._xp.key}".strip() or None,
                    dir=str(self._xp.folder),
                    config=self.settings,
                    settings=wandb.Settings(console="off", silent=True),
                )
                break
            except Exception as error:  # its errors have no base of their own
                if wait is None or "in use" not in str(error):
                    raise
                time.sleep(wait)
        self._run.define_metric("*", step_metric="step")
        return name

    @override
    def _send(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({**values, "step": step}, step=step + self.shift)

    @override
    def _finish(self, *, complete: bool) -> None:
        self._run.finish(exit_code=0 if complete else 1)
