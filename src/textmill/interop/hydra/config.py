"""A folder of Hydra's configs: composed by Hydra itself, every problem told with its place."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textmill.config.registry import suggest
from textmill.config.values.raw_values import Entries, Items, Node, Scalar
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import MissingExtraError, Place, Problem, UserError
from textmill.interop.hydra.stand_ins import register_stand_ins

if TYPE_CHECKING:
    from omegaconf import DictConfig

MOST_FILES = 2_000
"""Files of a folder of configs that are read; the template has sixty."""


class ConfigError(UserError):
    """Everything that is wrong with a config, found before anything was built."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = f"{len(problems)} problem{'s' * (len(problems) != 1)}"
        lines = [f"{count} in the config {name}; nothing was run.", *(f"  {p}" for p in problems)]
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class WrittenConfigs:
    """What stands where in a folder of configs, to say where a problem was written."""

    folder: Path
    """The folder that was typed."""
    words: tuple[str, ...] = ()
    """What was typed after it."""
    scalars: tuple[tuple[tuple[str, ...], Scalar], ...] = field(default=(), repr=False)
    """Every value with its path in its file."""

    @classmethod
    def read(cls, folder: Path, words: Sequence[str] = ()) -> "WrittenConfigs":
        """Reads all files below a folder, each as bounded data: no alias, no tag, no code.

        Raises:
            ConfigError: A file is not what a config may be; all of them are named.
            UserError: There is no such folder, or it has no config.
        """
        files = sorted(folder.rglob("*.yaml")) if folder.is_dir() else []
        if not files or len(files) > MOST_FILES:
            found = f"{len(files):,} files" if files else "none" if folder.is_dir() else "no folder"
            raise UserError(
                f"--hydra {folder}: wanted a folder of Hydra's configs, with 1 to {MOST_FILES:,} "
                f"files *.yaml; found {found}."
            )
        scalars: list[tuple[tuple[str, ...], Scalar]] = []
        problems = []
        for file in files:
            try:
                scalars += _scalars(read_yaml(file), ())
            except UserError as error:
                problems.append(Problem(str(error)))
        if problems:
            raise ConfigError(str(folder), problems)
        return cls(folder, tuple(words), tuple(scalars))

    def place(self, key: str, text: object = None) -> Place | None:
        """Where a dotted key was written: a word that was typed, or the line of a file.

        Files know no more than the end of a key, as ``model/bilstm.yaml`` has ``lr`` of
        ``model.lr``; of several, one in a file of the key's own group is meant.
        """
        for word in self.words:
            if word.lstrip("+~").partition("=")[0] == key:
                return Place(f"command line: {word}")
        parts = tuple(key.split("."))
        best: tuple[int, Place | None] = 0, None
        for path, scalar in self.scalars:
            if parts[-len(path) :] != path or (text is not None and scalar.text != str(text)):
                continue
            group = ".".join(Path(scalar.place.source).relative_to(self.folder).parts[:-1])
            fits = len(path) + (group != "" and f"{group}." in f"{key}.")
            best = max(best, (fits, scalar.place), key=lambda found: found[0])
        return best[1]

    def problem(self, key: str, why: str, text: object = None) -> Problem:
        """Something wrong with a key, and where it was written."""
        return Problem(f"{key}: {why}", self.place(key, text))


def _scalars(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Scalar]]:
    if isinstance(node, Scalar):
        yield path, node
    elif isinstance(node, Items):
        for number, item in enumerate(node.items):
            yield from _scalars(item, (*path, str(number)))
    elif isinstance(node, Entries):
        for name, item in node.entries.items():
            yield from _scalars(item, (*path, name))


@dataclass(frozen=True)
class ComposedConfig:
    """A config as Hydra composed it, not yet resolved: the run folder may be a part of it."""

    written: WrittenConfigs
    name: str
    """The config's, without ``.yaml``."""
    root: Path
    """The folder above the configs: what ``src.models.…`` is imported from."""
    _config: "DictConfig" = field(repr=False)

    @property
    def sweeper(self) -> dict[str, Any]:
        """The settings of Hydra's sweeper, as ``params`` and ``n_trials``, resolved.

        Raises:
            ConfigError: A name in them leads to nothing.
        """
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        try:
            found: Any = OmegaConf.to_container(self._config.hydra.sweeper, resolve=True)
        except OmegaConfBaseException as error:
            key = str(error.full_key or "hydra.sweeper")
            problem = self.written.problem(key, _why(error, self._config))
            raise ConfigError(self.name, [problem]) from error
        return dict(found)

    @property
    def is_multirun(self) -> bool:
        """Whether ``hydra.mode`` says that there are several runs."""
        return "MULTIRUN" in str(self._config.hydra.mode)

    def resolved(self, run_folder: str, *, began: datetime | None = None) -> dict[str, Any]:
        """All settings as plain data, every ``${…}`` replaced.

        Args:
            run_folder: What ``${hydra:runtime.output_dir}`` stands for.
            began: What ``${now:…}`` tells; None: a word that is the same always.

        Raises:
            ConfigError: A name leads to nothing, or a value is missing; all are named.
        """
        from omegaconf import OmegaConf

        with self._as_hydra_has_it(run_folder, began):
            config = self._config.copy()
            OmegaConf.set_struct(config, False)
            del config["hydra"]
            if problems := [*self._problems(config, config)]:
                raise ConfigError(self.name, problems)
            plain: Any = OmegaConf.to_container(config, resolve=True)
        return {str(key): value for key, value in plain.items()}

    @contextmanager
    def _as_hydra_has_it(self, run_folder: str, began: datetime | None) -> Iterator[None]:
        """Lets ``${hydra:…}`` and ``${now:…}`` answer; Lightning must not find them later."""
        from hydra.core.hydra_config import HydraConfig
        from hydra.core.singleton import Singleton
        from omegaconf import OmegaConf, open_dict, read_write

        def now(form: str) -> str:
            return "NOW" if began is None else began.strftime(form)

        OmegaConf.register_new_resolver("now", now, replace=True)
        config = self._config.copy()  # it is made read-only
        with read_write(config), open_dict(config):
            config.hydra.runtime.output_dir = run_folder
        HydraConfig.instance().set_config(config)
        try:
            yield
        finally:
            Singleton._instances.pop(HydraConfig, None)

    def _problems(self, node: Any, whole: Any, path: str = "") -> Iterator[Problem]:
        """What cannot be resolved, each with its key and place."""
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        keys = range(len(node)) if OmegaConf.is_list(node) else list(node.keys())
        raw: Any = OmegaConf.to_container(node, resolve=False)
        for key in keys:
            dotted = f"{path}.{key}" if path else str(key)
            if OmegaConf.is_missing(node, key) and raw[key] == "???":
                why = f"{dotted} is ???, which is to be given: {dotted}=… on the command line."
                yield Problem(why, self.written.place(dotted, raw[key]))
                continue
            try:
                value = node[key]
            except (OmegaConfBaseException, ValueError) as error:
                why = _why(error, whole)
                yield Problem(f"{dotted}: {raw[key]}: {why}", self.written.place(dotted, raw[key]))
                continue
            if OmegaConf.is_config(value) and not OmegaConf.is_interpolation(node, key):
                yield from self._problems(value, whole, dotted)


def _why(error: Exception, whole: Any) -> str:
    """OmegaConf's words for an interpolation that leads nowhere, with the nearest name."""
    said = str(error).splitlines()[0]
    if "'" not in said or "not found" not in said:
        return said
    name = said.split("'")[1]
    return f"there is no '{name}'. {suggest(name, _names(whole))}".rstrip()


def _names(node: Any, path: str = "") -> Iterator[str]:
    """Every dotted name of a config."""
    from omegaconf import OmegaConf

    plain: Any = OmegaConf.to_container(node, resolve=False) if OmegaConf.is_config(node) else node
    for key, value in plain.items() if isinstance(plain, Mapping) else ():
        yield f"{path}{key}"
        yield from _names(value, f"{path}{key}.")


def compose_config(folder: str | Path, name: str, words: Sequence[str]) -> ComposedConfig:
    """Composes a config as ``python train.py`` with ``@hydra.main`` would, by Hydra itself.

    Args:
        folder: The folder of configs.
        name: The config in it, with or without ``.yaml``.
        words: Overrides, as Hydra has them: ``trainer=cpu``, ``model.lr=2e-5``, ``+a.b=1``.

    Raises:
        ConfigError: Hydra cannot compose it.
        MissingExtraError: Hydra is not installed.
        UserError: The folder is none of configs.
    """
    try:
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException
    except ImportError:
        what = "textmill train --hydra"
        raise MissingExtraError("hydra-core", extra="lightning", what=what) from None
    configs, name = Path(folder), name.removesuffix(".yaml")
    written = WrittenConfigs.read(configs, words)
    root = configs.resolve().parent
    register_stand_ins()
    try:
        config = _composed(configs, name, words)
    except (HydraException, OmegaConfBaseException, ValueError) as error:  # Hydra's own are so, too
        raise ConfigError(name, [_of_composing(error, written, name)]) from error
    return ComposedConfig(written, name, root, config)


def _composed(folder: Path, name: str, words: Sequence[str]) -> "DictConfig":
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(folder.resolve()), job_name=name, version_base="1.3"):
        return compose(name, overrides=list(words), return_hydra_config=True)


def not_an_override(error: Any) -> Problem:
    """A word that is not one of Hydra's."""
    why = f"not an override as Hydra reads it: {error.message.splitlines()[0]}."
    wanted = "Wanted name=value; +name=value adds a setting, ~name leaves one out."
    return Problem(f"{why} {wanted}", Place(f"command line: {error.override}"))


def _of_composing(error: Exception, written: WrittenConfigs, name: str) -> Problem:
    """What Hydra refuses, with the options there are and the word that asked for it."""
    from hydra.errors import MissingConfigException, OverrideParseException

    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        missing = str(error.missing_cfg_file)
        group, _, option = missing.rpartition("/")
        options = sorted(error.options or ()) or _options(written.folder / group)
        where = f"the group {group}" if group else str(written.folder)
        found = f"{where} has {', '.join(options) or 'no config'}"
        place = written.place(group.lstrip("/").replace("/", ".")) if group else None
        hint = suggest(option.removesuffix(".yaml"), options)
        return Problem(f"there is no config '{missing}': {found}. {hint}".rstrip(), place)
    if isinstance(error, OverrideParseException):
        return not_an_override(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines[:2]).rstrip(".")
    for word in written.words:
        key = word.lstrip("+~").partition("=")[0]
        place = Place(f"command line: {word}")
        if f"'{key}'" in said:
            hint = suggest(key, {*_names_without(word, written, name)} - {key})
            return Problem(f"{said}. {hint}".rstrip(), place)
        if isinstance(error, ValueError) and (options := _options(written.folder / key)):
            why = (
                f"wanted one of the group's configs ({', '.join(options)}). To leave it out: ~{key}"
            )
            return Problem(f"{key}: {why}", place)
    return Problem(said)


def _names_without(word: str, written: WrittenConfigs, name: str) -> list[str]:
    """The names that a config has without a word that it refuses; none if it has more faults."""
    try:
        return [*_names(_composed(written.folder, name, [w for w in written.words if w != word]))]
    except Exception:  # of any kind: the word that is told of is not the only one that is wrong
        return []


def _options(folder: Path) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.yaml"))
