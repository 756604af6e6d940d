"""Loggers of the metrics of learning beside the run's own files: TensorBoard, Weights & Biases. Never required."""

import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lapwing.errors import CannotWriteError, MissingExtraError
from lapwing.training.loop import Progress

# The package that each logger needs, which the extra of the logger's name installs.
PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb"}


class Writer(NamedTuple):
    """An open log: ``write`` takes a step and the numbers of that step."""

    write: Callable[[int, dict[str, float]], None]
    finish: Callable[[], None]


class Logger:
    """A callback that writes to a log, for ``lw.learn(..., callback=logger)``; close it, or use it in a ``with``.

    The log is opened at the first call, so that learning that never begins leaves no file.
    """

    def __init__(self, start: Callable[[], Writer]) -> None:
        """Keep how to start."""
        self._start = start
        self._writer: Writer | None = None

    def __call__(self, progress: Progress) -> None:
        """Write the numbers of one report.

        Args:
            progress: of learning; seeds are averaged.
        """
        if self._writer is None:
            try:
                self._writer = self._start()
            except Exception as error:  # each package has errors of its own
                raise CannotWriteError(f"cannot begin a log: {error}") from error
        row = progress.row()
        row.pop("step")
        # Panels are sorted by name and gathered by what stands before the stroke.
        named = {
            re.sub(r"^eigenvalue_(\d+)$", lambda x: f"eigenvalues/{int(x[1]):02d}", name): row[name] for name in row
        }
        self._writer.write(progress.step, named)

    def close(self) -> None:
        """Write what is left and close; a second time does nothing."""
        if self._writer is not None:
            self._writer.finish()
            self._writer = None

    def __enter__(self) -> "Logger":
        """The logger itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close, whatever happened."""
        self.close()


def tensorboard(folder: str | Path) -> Logger:
    """Metrics as TensorBoard's event files in a folder: ``tensorboard --logdir FOLDER`` shows them.

    Args:
        folder: to write into.

    Returns:
        The logger.

    Example:
        >>> logger = tensorboard("logs")  # doctest: +SKIP
        >>> model = lw.learn(data, callback=logger); logger.close()  # doctest: +SKIP
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

    return Logger(start)


def wandb(folder: str | Path, *, project: str = "lapwing", config: dict[str, Any] | None = None) -> Logger:
    """Metrics as a Weights & Biases run below a folder, offline unless the variable WANDB_MODE says otherwise.

    ``wandb sync FOLDER/wandb/offline-run-*`` sends it later, if ever. Its reports about itself to its makers are off
    unless WANDB_ERROR_REPORTING says otherwise.

    Args:
        folder: to write into.
        project: of the run.
        config: to show with the run.

    Returns:
        The logger.
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

    return Logger(start)


# By the name that `lapwing learn --log` takes; each writes into its own folder below that of the run.
LOGGERS: dict[str, Callable[[Path], Logger]] = {
    "tensorboard": lambda folder: tensorboard(folder / "tensorboard"),
    # It makes a folder of its own name in the one that it is given.
    "wandb": wandb,
}


def _package(logger: str) -> Any:
    advice = (
        f"logging to {logger} needs the package {PACKAGES[logger]}; install it with: pip install 'lapwing[{logger}]'"
    )
    try:
        package = importlib.import_module(PACKAGES[logger])
    except ImportError as error:
        raise MissingExtraError(advice) from error
    if getattr(package, "__file__", None) is None:
        # Not the package: a folder of its name, such as an earlier log, where Python looks for packages.
        raise MissingExtraError(advice)
    return package
