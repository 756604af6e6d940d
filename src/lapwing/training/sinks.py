"""Where the metrics of learning can go besides the run's own files: TensorBoard, Weights & Biases. Never required."""

import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lapwing.errors import LapwingError, did_you_mean
from lapwing.training.engine import Report, history_rows

# The package that each sink needs, which the extra of the sink's name installs.
PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb"}


class Writer(NamedTuple):
    """An open log: ``write`` takes a step and the numbers of that step."""

    write: Callable[[int, dict[str, float]], None]
    finish: Callable[[], None]


class Sink:
    """A place for reports; give it to ``lw.learn(..., report=...)`` and close it afterwards, or use it in a ``with``.

    The log is opened at the first report, so that learning that never begins leaves no file.
    """

    def __init__(self, start: Callable[[], Writer]) -> None:
        """Keep how to start."""
        self._start = start
        self._writer: Writer | None = None

    def __call__(self, line: Report) -> None:
        """Write the numbers of one report."""
        if self._writer is None:
            self._writer = self._started()
        self._writer.write(line.step, numbers_of(line))

    def _started(self) -> Writer:
        try:
            return self._start()
        except Exception as error:  # each package has errors of its own
            raise LapwingError(f"cannot begin a log: {error}") from error

    def close(self) -> None:
        """Write what is left and close; a second time does nothing."""
        if self._writer is not None:
            self._writer.finish()
            self._writer = None

    def __enter__(self) -> "Sink":
        """The sink itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close, whatever happened."""
        self.close()


def tensorboard(folder: str | Path) -> Sink:
    """Metrics as TensorBoard's event files in a folder: ``tensorboard --logdir FOLDER`` shows them.

    Example:
        >>> sink = tensorboard("logs")  # doctest: +SKIP
        >>> model = lw.learn(data, report=sink); sink.close()  # doctest: +SKIP
    """
    package = _package("tensorboard")

    def start() -> Writer:
        # From an earlier run in the same folder nothing is shown any more.
        log = package.SummaryWriter(logdir=str(folder), purge_step=0)

        def write(step: int, numbers: dict[str, float]) -> None:
            for name, number in numbers.items():
                log.add_scalar(name, number, step)
            log.flush()

        return Writer(write, log.close)

    return Sink(start)


def wandb(folder: str | Path, *, project: str = "lapwing", config: dict[str, Any] | None = None) -> Sink:
    """Metrics as a Weights & Biases run below a folder, offline unless the variable WANDB_MODE says otherwise.

    ``wandb sync FOLDER/wandb/offline-run-*`` sends it later, if ever. Its reports about itself to its makers are off
    unless WANDB_ERROR_REPORTING says otherwise.
    """
    # It sends them offline too, and reads the variable when it is imported.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    package = _package("wandb")

    def start() -> Writer:
        Path(folder).mkdir(parents=True, exist_ok=True)
        log = package.init(
            project=project,
            dir=str(folder),
            mode=os.environ.get("WANDB_MODE", "offline"),
            config=config,
            settings=package.Settings(silent=True, console="off"),
        )
        return Writer(lambda step, numbers: log.log(numbers, step=step), log.finish)

    return Sink(start)


# By the name that `lapwing learn --log` takes.
SINKS: dict[str, Callable[[Path], Sink]] = {
    "tensorboard": lambda folder: tensorboard(folder / "tensorboard"),
    # It makes a folder of its own name in the one that it is given.
    "wandb": lambda folder: wandb(folder),
}


def make_sink(name: str, folder: Path) -> Sink:
    """The sink of that name, with its files in its own folder below ``folder``."""
    if name not in SINKS:
        raise LapwingError(f"no sink {name!r}; {did_you_mean(name, SINKS)}")
    return SINKS[name](folder)


def numbers_of(line: Report) -> dict[str, float]:
    """All numbers of a report by name, seeds averaged; the objective's reading of each eigenvalue among them."""
    (row,) = history_rows([line])
    row.pop("step")
    # Panels are sorted by name and gathered by what stands before the stroke.
    return {re.sub(r"^reading_(\d+)$", lambda found: f"readings/{int(found[1]):02d}", name): row[name] for name in row}


def _package(sink: str) -> Any:
    advice = f"logging to {sink} needs the package {PACKAGES[sink]}; install it with: pip install 'lapwing[{sink}]'"
    try:
        package = importlib.import_module(PACKAGES[sink])
    except ImportError as error:
        raise LapwingError(advice) from error
    if getattr(package, "__file__", None) is None:
        # Not the package: a folder of its name, such as an earlier log, where Python looks for packages.
        raise LapwingError(advice)
    return package
