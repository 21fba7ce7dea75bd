"""MLflow: the values and settings of a run on a tracking server, or in its local store."""

import os
import re
import time
from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from weft.config.component import Config as BaseConfig
from weft.config.component import setting
from weft.errors import UserError
from weft.metrics import registries
from weft.metrics.reporters.remote_reporter import RemoteReporter
from weft.metrics.reporters.reporter import RunInfo
from weft.runtime.run_context import Experiment

__all__ = ["Mlflow", "metric_name"]

MOST_METRICS = 1_000
"""In one call; the service refuses more."""


@final
@registries.reporters.register("mlflow")
class Mlflow(RemoteReporter):
    """Hands the values to MLflow. A resumed run goes on in the same run there.

    The settings are its artifact ``settings.json``. What a run reported before it went back
    (``trainer.on_nonfinite=rollback``) stays there; at the same step, what replaces it comes later.

    Args:
        config: The settings.
        xp: The run, for its folder and name.

    Raises:
        MissingExtraError: The package mlflow is not installed.
        UserError: It is not said where to.
    """

    class Config(BaseConfig):
        """Where the run goes."""

        tracking_uri: str | None = setting(None, in_key=False)
        """The server, such as ``http://host:5000``; none: ``MLFLOW_TRACKING_URI``."""
        experiment: str = setting("weft", in_key=False)
        """The experiment; it is made where it does not exist."""

    config: Config
    service = "MLflow"
    package = "mlflow"
    file = "mlflow.jsonl"
    _client: Any
    _run: str

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        super().__init__(config, xp=xp)
        self._uri = config.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
        if not self._uri:
            raise UserError(
                "The reporter 'mlflow' does not know where to report to. Set MLFLOW_TRACKING_URI, "
                "or the setting tracking_uri of the reporter, to the server: http://host:5000"
            )

    @override
    def _begin(self, info: RunInfo, known: str | None) -> str:
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=self._uri)
        if known is not None:
            self._client.update_run(known, status="RUNNING")
            self._run = known
            return known
        experiment = self._client.get_experiment_by_name(self.config.experiment)
        found = experiment.experiment_id if experiment else None
        made = self._client.create_run(
            found or self._client.create_experiment(self.config.experiment),
            run_name=f"{self._xp.recipe} {self._xp.key}".strip() or None,
        )
        self._run = made.info.run_id
        if self.settings:
            self._client.log_dict(self._run, self.settings, "settings.json")
        return self._run

    @override
    def _send(self, step: int, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)  # milliseconds, as the service counts
        batch = [Metric(metric_name(name), value, now, step) for name, value in values.items()]
        for start in range(0, len(batch), MOST_METRICS):
            some = batch[start : start + MOST_METRICS]
            self._client.log_batch(self._run, metrics=some)  # all of these or none

    @override
    def _finish(self, *, complete: bool) -> None:
        self._client.set_terminated(self._run, status="FINISHED" if complete else "KILLED")


def metric_name(name: str) -> str:
    """A name that MLflow takes: other characters than its own become underscores.

    Example:
        >>> metric_name("valid/bleu (13a)")
        'valid/bleu _13a_'
    """
    return re.sub(r"[^\w\-. /]", "_", name)
