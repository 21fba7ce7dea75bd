"""Services that take the values of a run: MLflow, trackio, Weights & Biases."""

import io
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any, Literal, final

from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.config.component import setting
from textmill.errors import UserError
from textmill.metrics import registries
from textmill.metrics.reporters.remote_reporter import RemoteReporter, Sent, digest_of
from textmill.metrics.reporters.reporter import RunInfo
from textmill.runtime.run_context import Experiment

LOG = logging.getLogger("textmill")

MOST_METRICS = 1_000
"""In one call; the service refuses more."""
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between tries while the service of a killed process still holds the run."""


@final
@registries.reporters.register("mlflow")
class Mlflow(RemoteReporter):
    """Hands the values to MLflow. A resumed run goes on in the same run there.

    The settings are its artifact ``settings.json``. What a run reported before it went back
    (``trainer.on_nonfinite=rollback``) stays there; at the same step, what replaces it comes later.

    Raises:
        UserError: It is not said where to.
    """

    class Config(BaseConfig):
        """Where the run goes."""

        tracking_uri: str | None = setting(None, in_key=False)
        """The server, such as ``http://host:5000``; none: ``MLFLOW_TRACKING_URI``."""
        experiment: str = setting("textmill", in_key=False)
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
        name = self.config.experiment
        found = self._client.get_experiment_by_name(name)
        at = found.experiment_id if found else self._client.create_experiment(name)
        self._run = self._client.create_run(at, run_name=self.title or None).info.run_id
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


@final
@registries.reporters.register("trackio")
class Trackio(RemoteReporter):
    """Hands the values to trackio; ``trackio show`` draws them. A resumed run goes on there.

    What trackio prints goes to the log. It measures nothing of the machine here.
    """

    class Config(BaseConfig):
        """Where the run goes; what is not set, trackio takes from its environment variables."""

        project: str = setting("textmill", in_key=False)
        """The project."""
        space_id: str | None = setting(None, in_key=False)
        """The Hugging Face Space, as ``user/name``; none: the database in ``TRACKIO_DIR``."""

    config: Config
    service = "trackio"
    package = "trackio"
    file = "trackio.jsonl"
    gathers = True
    _run: Any

    @override
    def _begin(self, info: RunInfo, known: str | None) -> str:
        import trackio

        name = known or f"{self.title} {self.new_name()[:8]}".strip()
        with _to_the_log():
            self._run = trackio.init(
                project=self.config.project,
                name=name,
                space_id=self.config.space_id,
                config=self.settings,
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        return name

    @override
    def _has(self, run: str) -> Sent:
        """What a killed process wrote, for its database takes everything once more."""
        from trackio.sqlite_storage import SQLiteStorage

        found = Sent()
        for row in SQLiteStorage.get_logs(self.config.project, run):
            values = {name: value for name, value in row.items() if "/" in name}
            tagged = {n: float(v) for n, v in values.items() if not n.startswith("time/")}
            for split in {name.partition("/")[0] for name in tagged}:
                found[split, int(row["step"])] = digest_of(tagged)
        return found

    @override
    def _send(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    @override
    def _finish(self, *, complete: bool) -> None:
        from trackio import context_vars

        with _to_the_log():
            self._run.finish()
        if context_vars.current_run.get() is self._run:  # it would be finished again at the exit
            context_vars.current_run.set(None)


@contextmanager
def _to_the_log() -> Iterator[None]:
    """Sends what is printed meanwhile to the log, a line each."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        for line in printed.getvalue().splitlines():
            LOG.debug("trackio: %s", line.removeprefix("* "))


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

        project: str = setting("textmill", in_key=False)
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
                    name=self.title or None,
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
