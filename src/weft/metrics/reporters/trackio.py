"""trackio: the values of a run in its local database, or on a Hugging Face Space."""

import io
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any, final

from typing_extensions import override

from weft.config.component import Config as BaseConfig
from weft.config.component import setting
from weft.metrics import registries
from weft.metrics.reporters.remote_reporter import RemoteReporter, digest_of
from weft.metrics.reporters.reporter import RunInfo

__all__ = ["Trackio"]

LOG = logging.getLogger("weft")


@final
@registries.reporters.register("trackio")
class Trackio(RemoteReporter):
    """Hands the values to trackio; ``trackio show`` draws them. A resumed run goes on there.

    What trackio prints goes to the log. It measures nothing of the machine here.
    """

    class Config(BaseConfig):
        """Where the run goes; what is not set, trackio takes from its environment variables."""

        project: str = setting("weft", in_key=False)
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

        name = known or f"{self._xp.recipe} {self._xp.key} {self.new_name()[:8]}".strip()
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
    def _has(self, run: str) -> dict[tuple[str, int], str | None]:
        """What a killed process wrote, for its database takes everything once more."""
        from trackio.sqlite_storage import SQLiteStorage

        found: dict[tuple[str, int], str | None] = {}
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
