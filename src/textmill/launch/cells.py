"""The cells of a grid: usual runs, each planned and checked before the first of them starts."""

import hashlib
import json
import multiprocessing
import os
import shlex
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import has_checkpoints
from textmill.config.planning.key import run_key
from textmill.config.planning.plan import Plan
from textmill.config.sources.include import including
from textmill.errors import PlanError, TextmillError, UserError, typed_command
from textmill.launch.launcher import option_words
from textmill.preflight.check import check
from textmill.preflight.load_data import DATA
from textmill.recipes.planning import Planned, plan_recipe, run_named
from textmill.runs.data_checks import compare_data, data_fingerprints, named_paths, run_of_data
from textmill.runs.resume_checks import is_finished, length_of
from textmill.runs.run_lock import choose_folder
from textmill.runtime.lock import owner_of


@dataclass(frozen=True)
class Named:
    """A recipe as a command names it, with the options of how it is read."""

    recipe: str
    configs: tuple[str, ...] = ()
    device: str = "auto"
    allow_code: bool = False
    include: tuple[str, ...] = ()
    debug: bool = False

    def refuse_run(self) -> None:
        """Refuses a run: its cells would be one run.

        Raises:
            UserError: It names one.
        """
        if run_named(self.recipe) is not None:
            raise UserError(
                f"{self.recipe} is a run, which textmill train continues. A grid trains "
                f"anew: name its recipe, or {Path(self.recipe) / 'config.yaml'}."
            )

    def plan(self, words: Sequence[str], *, draft: bool = False) -> Planned:
        """The plan of a run with these settings; that of a draft has its problems."""
        options: dict[str, Any] = {"configs": self.configs, "allow_code": self.allow_code}
        return plan_recipe(self.recipe, words, targets=["trainer"], draft=draft, **options)

    def command(self, words: Sequence[str]) -> list[str]:
        """What is typed after ``textmill`` to train it."""
        options = {name: value for name, value in vars(self).items() if name != "recipe"}
        return ["train", self.recipe, *words, *option_words(**options)]


@dataclass
class Cell:
    """One run of a grid: the words of what varies, and where it stands."""

    chosen: tuple[str, ...]
    """The words of its values, in the order of the axes."""
    words: tuple[str, ...]
    """All its settings, as words of a command line."""
    folder: Path
    """The run folder."""
    state: str = "open"
    """``open``, ``at work``, ``finished``, ``failed``, ``stopped``, ``pruned``."""
    reason: str = ""
    """Of one that is not finished: why."""
    killed: bool = False
    """Whether it failed by a signal from outside, so that it can go on."""
    log: Path | None = field(default=None, repr=False)
    """What its last start printed."""
    length: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How long it is trained, as a run's folder has it."""

    @property
    def label(self) -> str:
        """Its values, for a line."""
        return " ".join(self.chosen)

    @property
    def values(self) -> list[str]:
        """Its values alone, in the order of the axes."""
        return [word.partition("=")[2] for word in self.chosen]

    def typed(self, named: Named) -> str:
        """The command that trains it, for a shell."""
        return shlex.join(["textmill", *named.command(self.words)])


class Problems:
    """What is wrong with cells: each text once, with the cells it is said of."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def add(self, label: str, texts: Sequence[str]) -> None:
        """Notes what is wrong with one cell."""
        for text in texts:
            self.found.setdefault(text, []).append(label)

    def refuse(self, count: int) -> None:
        """Raises all of it.

        Raises:
            UserError: There is a problem; nothing was started.
        """
        if not self.found:
            return
        bad = {label for labels in self.found.values() for label in labels}
        lines = [f"{len(bad)} of {count} cells cannot be trained; nothing was started."]
        for text, labels in self.found.items():
            more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
            which = "all" if len(labels) == count > 1 else ", ".join(labels[:3]) + more
            lines += [f"  {which}:", *(f"    {line}" for line in text.splitlines())]
        raise UserError("\n".join(lines))


def plan_cells(
    named: Named,
    fixed: Sequence[str],
    asked: Iterable[tuple[str, ...]],
    *,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[str, list[Cell]]:
    """Plans every cell, and finds its run: begun, finished, or still to be begun or gone on with.

    Data is read where a run exists, to see that it is still the run's: once for all cells of the
    same data.

    Returns:
        The recipe's name, and the cells.

    Raises:
        UserError: Some of them cannot be; all that is wrong is listed.
    """
    problems, found, keys = Problems(), list[Cell](), dict[str, str]()
    cells = list(asked)
    known: dict[str, Mapping[str, str]] = {}
    name = ""
    for number, chosen in enumerate(cells, 1):
        label, words = " ".join(chosen), (*fixed, *chosen)
        try:
            planned = named.plan(words)
            name, key = planned.name, run_key(planned.plan)
            if key in keys:
                problems.add(label, [_same_run(keys[key])])
                continue
            keys[key] = label
            folder, finished = _placed(planned, named.device, known)
        except TextmillError as error:
            problems.add(label, _texts(error))
            continue
        state = "finished" if finished else "open"
        found.append(Cell(chosen, words, folder, state, length=length_of(planned.plan)))
        say(f"planned {number} of {len(cells)} cells")
    problems.refuse(len(cells))
    return name, found


def place_cell(named: Named, fixed: Sequence[str], chosen: tuple[str, ...]) -> Cell:
    """A single cell; one that cannot be planned has failed, and has no folder."""
    try:
        return plan_cells(named, fixed, [chosen])[1][0]
    except UserError as error:
        nowhere = Path("-", hashlib.sha256(" ".join(chosen).encode()).hexdigest()[:12])
        return Cell(chosen, (*fixed, *chosen), nowhere, "failed", str(error))


def _same_run(label: str) -> str:
    return (
        f"this is the same run as that of {label}: they differ only in settings that change no "
        "result, such as length, saving and reporting. Give one value; write a list in brackets: "
        "[a,b]."
    )


def _placed(
    planned: Planned, device: str, known: dict[str, Mapping[str, str]]
) -> tuple[Path, bool]:
    """The folder of a run, and whether it is finished."""
    folder = choose_folder(planned, run_dir=None, again=False)

    def read() -> Mapping[str, str]:
        said = _data_settings(planned.plan)
        if said not in known:
            known[said] = data_fingerprints(planned, device)
        return known[said]

    folder = run_of_data(folder, planned, named=False, changes=(), read=read, extend=True)
    finished = is_finished(folder, planned, extend=True)
    if has_checkpoints(folder.path) and not finished:
        compare_data(folder, read())
    return folder.path, finished


def _data_settings(plan: Plan) -> str:
    """All that decides what is read, as text: settings of the data and of what makes it; files."""
    reached, waiting = set[str](), [name for name in DATA if name in plan.nodes]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [needed for needed in plan.nodes[name].needs if needed in plan.nodes]
    settings = {name: plan.settings.get(name) for name in sorted(reached)}
    return json.dumps([settings, named_paths(plan)], sort_keys=True, default=str)


def _texts(error: Exception) -> list[str]:
    if isinstance(error, PlanError):
        return [str(problem) for problem in error.problems]
    return [str(error)]


def check_cells(
    named: Named, cells: Sequence[Cell], *, jobs: int, say: Callable[[str], None]
) -> list[str]:
    """Checks every cell that is not begun as ``textmill check`` does, ``jobs`` at a time.

    Returns:
        What a person should know of them, though it is not wrong; each once.

    Raises:
        UserError: Some of them cannot be trained; all that is wrong is listed.
    """
    fresh = [c for c in cells if c.state == "open" and not has_checkpoints(c.folder)]
    fresh = [cell for cell in fresh if owner_of(cell.folder) is None]
    problems, notes = Problems(), dict[str, None]()
    for number, (cell, (wrong, noted)) in enumerate(_checked(named, fresh, jobs), 1):
        problems.add(cell.label, wrong)
        notes |= dict.fromkeys(noted)
        say(f"checked {number} of {len(fresh)} cells")
    problems.refuse(len(cells))
    return list(notes)


def _checked(
    named: Named, cells: Sequence[Cell], jobs: int
) -> Iterator[tuple[Cell, tuple[list[str], list[str]]]]:
    # Apart from this process, which touches no accelerator, and which a check cannot end.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([check.__module__])  # imported once for all of them
    options: dict[str, Any] = {"mp_context": context, "initializer": _of_the_driver}
    with ExitStack() as stack:
        if not cells:
            return
        pool = stack.enter_context(ProcessPoolExecutor(min(jobs, len(cells)), **options))
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        asked = [pool.submit(_check, named, cell.words) for cell in cells]
        for cell, answer in zip(cells, asked, strict=True):
            try:
                yield cell, answer.result()
            except BrokenProcessPool:
                alone = cell.typed(named).replace("textmill train", "textmill check", 1)
                raise UserError(
                    f"the process that checked {cell.label}, or one beside it, was killed; maybe "
                    f"memory ran out. Try it alone: {alone}"
                ) from None


def _of_the_driver() -> None:
    """What a process that checks does first: it ends with the driver, and not before it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all: the driver decides
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    if (driver := multiprocessing.parent_process()) is not None:
        driver.join()
        os._exit(1)  # it was killed: nobody would end this one


def _check(named: Named, words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The problems and notes of one cell."""
    with typed_command(), ExitStack() as stack:
        if named.include:
            stack.enter_context(including(list(named.include)))
        options: dict[str, Any] = {"configs": named.configs, "device": named.device}
        found = check(named.recipe, words, allow_code=named.allow_code, **options)
    return found.problems, found.notes
