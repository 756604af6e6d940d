"""``lapwing doctor``: versions, extras, devices, memory, and a tiny run. It needs no network."""

import os
import platform
import shutil
import time
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from lapwing.cli import terminal
from lapwing.cli.arguments import Flag
from lapwing.errors import LapwingError

# What lapwing cannot do without; distributions and modules have the same names.
REQUIRED = (
    "numpy", "scipy", "gymnasium", "jax", "jaxlib", "equinox", "optax", "safetensors", "filelock", "msgspec",
    "matplotlib", "jinja2", "plotly", "rich", "threadpoolctl", "tyro",
)  # fmt: skip

# Extras by name: the distribution that shows that one is installed, and what it is for.
EXTRAS = {
    "minari": ("minari", "data sets of Minari"),
    "ray": ("ray", "studies on a cluster"),
    "tensorboard": ("tensorboardX", "lapwing learn --log tensorboard"),
    "wandb": ("wandb", "lapwing learn --log wandb"),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

TINY_WORLD = "GridMaze-7"
TINY_STEPS = 200
TINY_COSINE = 0.9


@dataclass(frozen=True)
class DoctorCommand:
    """Check what is installed, which devices JAX sees, and whether a tiny run works; advice where something is wrong.

    Example: lapwing doctor
    """

    json: Flag = False
    """Print JSON instead of tables."""

    def run(self) -> None:
        """Print what was found; an error if anything that is needed is missing or does not work."""
        with terminal.spinner("checking"):
            found = examine()
        if self.json:
            problems = [problem._asdict() for problem in found.problems]
            terminal.print_json({**asdict(found), "problems": problems, "healthy": not problems})
        else:
            _show(found)
        for problem in found.problems:
            terminal.note(f"{problem.what}; {problem.advice}")
        if found.problems:
            count = len(found.problems)
            raise LapwingError(f"{count} problem{'s' if count > 1 else ''}, see the advice above")


class Defect(NamedTuple):
    """Something that keeps lapwing from working, and what to do about it."""

    what: str
    advice: str


@dataclass
class Findings:
    """What the doctor found; ``problems`` is empty where everything works.

    ``packages`` and ``extras`` are versions by name, None where something is not installed.
    """

    python: str = ""
    platform: str = ""
    packages: dict[str, str | None] = field(default_factory=dict)
    extras: dict[str, str | None] = field(default_factory=dict)
    browser: str | None = None
    devices: list[str] = field(default_factory=list)
    cores: int = 1
    memory_gib: float | None = None
    layouts_folder: str | None = None
    layouts: int = 0
    tiny_run: dict[str, float] | None = None
    problems: list[Defect] = field(default_factory=list)

    def add(self, what: str, advice: str) -> None:
        """Note a defect."""
        self.problems.append(Defect(what, advice))


def examine() -> Findings:
    """Check everything; a defect does not end it, so that all are found at once.

    Returns:
        What was found.
    """
    found = Findings(
        python=platform.python_version(),
        platform=platform.platform(terse=True),
        packages={name: _version(name) for name in ("lapwing", *REQUIRED)},
        extras={name: _version(package) for name, (package, _) in EXTRAS.items()},
        browser=next((path for name in BROWSERS if (path := shutil.which(name))), None),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_gib=_memory_gib(),
    )
    for name in REQUIRED:
        if found.packages[name] is None:
            found.add(f"{name} is not installed", "install lapwing again: pip install --force-reinstall lapwing")
            continue
        try:
            import_module(name)
        except Exception as error:  # a broken binary fails in many ways
            advice = f"install it again: pip install --force-reinstall {name}"
            found.add(f"{name} does not import: {_in_a_line(error)}", advice)
    _check_layouts(found)
    _check_devices(found)
    if not found.problems:
        _check_tiny_run(found)
    return found


def _check_layouts(found: Findings) -> None:
    from lapwing.environments import LAYOUTS_VARIABLE, layout_files

    found.layouts_folder = os.environ.get(LAYOUTS_VARIABLE) or None
    if found.layouts_folder is None:
        return
    if Path(found.layouts_folder).is_dir():
        found.layouts = len(layout_files(None))
    else:
        what = f"{LAYOUTS_VARIABLE} names {found.layouts_folder}, which is not a folder"
        found.add(what, f"set it to a folder of *.txt layouts, or unset {LAYOUTS_VARIABLE}")


def _check_devices(found: Findings) -> None:
    try:
        import jax

        found.devices = [f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices()]
    except Exception as error:  # whatever a driver raises
        advice = (
            "try JAX_PLATFORMS=cpu lapwing doctor; if that works, the driver or jaxlib's accelerator build is broken"
        )
        found.add(f"JAX sees no device: {_in_a_line(error)}", advice)


def _check_tiny_run(found: Findings) -> None:
    try:
        found.tiny_run = tiny_run()
    except Exception as error:  # it is what the doctor is there to find
        advice = "report it with the output of `lapwing doctor --json`"
        found.add(f"the tiny run fails: {type(error).__name__}: {_in_a_line(error)}", advice)
        return
    if not found.tiny_run["cosine"] >= TINY_COSINE:
        what = f"the tiny run learns badly: cosine {found.tiny_run['cosine']:.3f}, where {TINY_COSINE} is easy"
        found.add(what, "numbers are wrong on this machine; try JAX_PLATFORMS=cpu")


def tiny_run() -> dict[str, float]:
    """Collect, solve, learn and score in the smallest world.

    Returns:
        Seconds of solving and of learning (compiling included), and the subspace cosine.
    """
    from lapwing import collect, learn, score, solve

    started = time.perf_counter()
    truth = solve(TINY_WORLD, 3)
    solved = time.perf_counter()
    model = learn(collect(TINY_WORLD, 20_000, seed=0), 3, steps=TINY_STEPS, seed=0)
    learned = time.perf_counter()
    cosine = score(model, truth).subspace_cosine
    return {"solve_seconds": solved - started, "learn_seconds": learned - solved, "cosine": cosine}


def _show(found: Findings) -> None:
    packages = [("python", found.python), *((name, known or "MISSING") for name, known in found.packages.items())]
    terminal.print_facts("Installed", packages)
    extras: list[list[str]] = []
    for name, (_, purpose) in EXTRAS.items():
        known = found.extras[name]
        extras.append([name, known or "-", purpose if known else f"pip install 'lapwing[{name}]': {purpose}"])
    extras.append(["(browser)", found.browser or "-", "tests of the report page, nothing else"])
    terminal.print_table("Extras, none of them needed", ["extra", "version", "for"], extras)
    folder = found.layouts_folder
    machine = {
        "system": found.platform,
        "devices JAX sees": ", ".join(found.devices) or "none",
        "cores": str(found.cores),
        "memory": "unknown" if found.memory_gib is None else f"{found.memory_gib:g} GiB",
        "LAPWING_LAYOUTS": "not set" if folder is None else f"{folder} ({found.layouts} layouts)",
    }
    terminal.print_facts("Machine", list(machine.items()))
    run: dict[str, Any] | None = found.tiny_run
    if run is not None:
        print(
            f"tiny run in {TINY_WORLD}: solved in {run['solve_seconds']:.1f} s, "
            f"learned in {run['learn_seconds']:.1f} s (compiling included), cosine {run['cosine']:.4f}"
        )
    if not found.problems:
        print("everything works")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (AttributeError, OSError, ValueError):  # not on every system
        return None


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
