"""Services that take the values of a run: MLflow, TensorBoard, trackio, Weights & Biases."""

import importlib.util
import io
import logging
import os
import re
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any, ClassVar, Literal

from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.config.values.raw_values import untyped
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import MissingExtraError, UserError
from textmill.metrics import registries
from textmill.metrics.reporters.reporter import Progress, Reporter, RunInfo
from textmill.runtime.devices import Experiment

LOG = logging.getLogger("textmill")


class ServiceReporter(Component, Reporter):
    """Base of the reporters that hand values to a service, by a package that must be installed.

    Checkpoints keep the name by which the service knows the run, so a resumed run goes on in the
    same run there. A service that fails never ends a training: a warning says so once, and the
    service gets nothing more until the run is resumed. The record of a run is ``metrics.jsonl``.

    A subclass says how to open the run (:meth:`resume`), how to hand values over (:meth:`log`) and
    how to close the run (:meth:`finish`); each may raise anything.
    """

    service: ClassVar[str]
    """Its name, for messages."""
    package: ClassVar[str]
    """The package to import, the reporter's registered name and the extra's name."""

    config: Any

    def __init__(self, config: BaseConfig, *, xp: Experiment) -> None:
        if importlib.util.find_spec(self.package) is None:
            what = f"The reporter '{self.package}'"
            raise MissingExtraError(self.package, extra=self.package, what=what)
        self.config, self._xp = config, xp
        self.run: str | None = None
        """The service's name for the run; None if the service has none yet, or chooses none."""
        self._step, self._is_open, self._is_complete = 0, False, False

    @override
    def start(self, info: RunInfo) -> None:
        self._step = info.step
        self._is_open = True
        self._try(self.resume, info.step)

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        self._step = int(progress.get("step") or 0)
        named = {f"{split}/{name}": float(value) for name, value in values.items()}
        rates = progress.get("time", {}).items() if split == "train" else ()
        named |= {f"time/{name}": float(v) for name, v in rates if name.endswith("_per_second")}
        self._try(self.log, self._step, named)

    @override
    def state_dict(self) -> dict[str, Any]:
        return {"run": self.run, "step": self._step}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on in the run of that name; what the service has, it keeps."""
        self.run, self._step = state["run"], int(state["step"])

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self._is_complete = True
        self.close()

    @override
    def close(self) -> None:
        self._try(self.finish)
        self._is_open = False

    def _try(self, function: Callable[..., None], *args: Any) -> None:
        if not self._is_open:
            return
        try:
            function(*args)
        except Exception as error:  # services' errors have no base of their own
            self._is_open = False
            LOG.warning(
                "%s failed and is left out until the run is resumed; metrics.jsonl has all "
                "values. It said: %s",
                self.service,
                " ".join(str(error).split()) or type(error).__name__,
            )

    @property
    def settings(self) -> dict[str, Any]:
        """The run's resolved settings, nested; empty if there is no ``config.yaml``."""
        file = self._xp.folder / "config.yaml"
        settings = read_yaml(file).entries.get("settings") if file.is_file() else None
        plain = None if settings is None else untyped(settings)
        return plain if isinstance(plain, dict) else {}

    @property
    def title(self) -> str:
        return f"{self._xp.recipe} {self._xp.key}".strip()

    @abstractmethod
    def resume(self, step: int) -> None:
        """Opens the run named :attr:`run` to go on after ``step``, or a new one, and names it."""

    @abstractmethod
    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Hands values over, by names such as ``valid/loss``."""

    @abstractmethod
    def finish(self) -> None:
        """Closes the run; ``_is_complete`` says whether it reached its end."""


@registries.reporters.register("tensorboard")
class TensorBoard(ServiceReporter):
    """Writes the values for TensorBoard into the run folder: ``tensorboard --logdir runs``.

    Each start of a run writes a file of its own, which tells TensorBoard to forget the steps that
    the run takes again.
    """

    class Config(BaseConfig):
        """It has no settings."""

    service = "TensorBoard"
    package = "tensorboard"
    _writer: Any

    @override
    def resume(self, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        forgotten = step + 1 if step else 0  # a fresh run may have values at step 0
        self._writer = SummaryWriter(str(self._xp.folder), purge_step=forgotten)

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        if self._is_open:  # the run goes back while it is on
            self._try(self.finish)
            self._try(self.resume, self._step)

    @override
    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    @override
    def finish(self) -> None:
        self._writer.close()


@registries.reporters.register("mlflow")
class Mlflow(ServiceReporter):
    """Hands the values to MLflow; the settings are its artifact ``settings.json``.

    Values of steps that a resumed run takes again are there twice, at the same step.
    """

    class Config(BaseConfig):
        tracking_uri: str | None = setting(None, in_key=False)
        """The server, such as ``http://host:5000``; none: ``MLFLOW_TRACKING_URI``."""
        experiment: str = setting("textmill", in_key=False)
        """The experiment; it is made where it does not exist."""

    config: Config
    service = "MLflow"
    package = "mlflow"
    _client: Any

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        super().__init__(config, xp=xp)
        self._uri = config.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
        if not self._uri:
            raise UserError(
                "The reporter 'mlflow' does not know where to report to. Set MLFLOW_TRACKING_URI, "
                "or the setting tracking_uri of the reporter, to the server: http://host:5000"
            )

    @override
    def resume(self, step: int) -> None:
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=self._uri)
        if self.run is not None:
            self._client.update_run(self.run, status="RUNNING")
            return
        name = self.config.experiment
        experiment = self._client.get_experiment_by_name(name)
        at = experiment.experiment_id if experiment else self._client.create_experiment(name)
        self.run = str(self._client.create_run(at, run_name=self.title or None).info.run_id)
        if self.settings:
            self._client.log_dict(self.run, self.settings, "settings.json")

    @override
    def log(self, step: int, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)  # milliseconds, as the service counts
        # MLflow refuses names with other characters than these.
        plain = {name: re.sub(r"[^\w\-. /]", "_", name) for name in values}
        batch = [Metric(plain[name], value, now, step) for name, value in values.items()]
        self._client.log_batch(self.run, metrics=batch)

    @override
    def finish(self) -> None:
        status = "FINISHED" if self._is_complete else "KILLED"
        self._client.set_terminated(self.run, status=status)


@registries.reporters.register("trackio")
class Trackio(ServiceReporter):
    """Hands the values to trackio; ``trackio show`` draws them.

    Values of steps that a resumed run takes again are there twice. What trackio prints is
    left out.
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

    @override
    def resume(self, step: int) -> None:
        import trackio

        self.run = self.run or f"{self.title} {uuid.uuid4().hex[:8]}".strip()
        where = {"project": self.config.project, "space_id": self.config.space_id}
        unmeasured = {"auto_log_gpu": False, "auto_log_cpu": False, "embed": False}
        with redirect_stdout(io.StringIO()):
            trackio.init(name=self.run, resume="allow", config=self.settings, **where, **unmeasured)

    @override
    def log(self, step: int, values: Mapping[str, float]) -> None:
        import trackio

        trackio.log(dict(values), step=step)

    @override
    def finish(self) -> None:
        import trackio

        with redirect_stdout(io.StringIO()):
            trackio.finish()


@registries.reporters.register("wandb")
class Wandb(ServiceReporter):
    """Hands the values to Weights & Biases.

    Offline, its files are in ``wandb`` in the run folder; ``wandb sync`` sends them later. The
    service drops values of steps below the last one that it has: those that a resumed run takes
    again, and those that replace abandoned ones (``trainer.on_nonfinite=rollback``).
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
    _writer: Any

    @override
    def resume(self, step: int) -> None:
        import wandb

        self.run = self.run or uuid.uuid4().hex[:16]
        self._writer = wandb.init(
            project=self.config.project,
            entity=self.config.entity,
            mode=self.config.mode,
            id=self.run,
            resume="allow",
            reinit="create_new",
            name=self.title or None,
            dir=str(self._xp.folder),
            config=self.settings,
            settings=wandb.Settings(console="off", silent=True),
        )

    @override
    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._writer.log(dict(values), step=step)

    @override
    def finish(self) -> None:
        self._writer.finish(exit_code=0 if self._is_complete else 1)
