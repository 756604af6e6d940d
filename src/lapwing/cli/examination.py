"""A look at the installation: versions, extras, devices, memory, and a tiny run. No network."""

import os
import platform
import shutil
import time
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lapwing.environments.registry import LAYOUTS_VARIABLE, layout_files

# What lapwing cannot do without: the distribution and the module that it brings.
REQUIRED = {
    "numpy": "numpy",
    "scipy": "scipy",
    "gymnasium": "gymnasium",
    "jax": "jax",
    "jaxlib": "jaxlib",
    "equinox": "equinox",
    "optax": "optax",
    "safetensors": "safetensors",
    "filelock": "filelock",
    "matplotlib": "matplotlib",
    "jinja2": "jinja2",
    "plotly": "plotly",
    "rich": "rich",
    "threadpoolctl": "threadpoolctl",
    "tyro": "tyro",
}

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
class Problem:
    """Something that keeps lapwing from working, and what to do about it."""

    what: str
    advice: str


@dataclass
class Findings:
    """What the doctor found; ``problems`` is empty where all is well.

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
    problems: list[Problem] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return {**asdict(self), "healthy": not self.problems}


def examine() -> Findings:
    """Look everything over; a problem never ends it, so that all are found at once."""
    found = Findings(
        python=platform.python_version(),
        platform=platform.platform(terse=True),
        packages={name: _version(name) for name in ("lapwing", *REQUIRED)},
        extras={name: _version(package) for name, (package, _) in EXTRAS.items()},
        browser=next((path for name in BROWSERS if (path := shutil.which(name))), None),
        cores=_cores(),
        memory_gib=_memory_gib(),
    )
    _check_packages(found)
    _look_at_layouts(found)
    _look_at_devices(found)
    if not found.problems:
        _try_a_tiny_run(found)
    return found


def _check_packages(found: Findings) -> None:
    for name, module in REQUIRED.items():
        if found.packages[name] is None:
            found.problems.append(
                Problem(f"{name} is not installed", "install lapwing anew: pip install --force-reinstall lapwing")
            )
            continue
        try:
            import_module(module)
        except Exception as error:  # a broken binary fails in many ways
            advice = f"install it anew: pip install --force-reinstall {name}"
            found.problems.append(Problem(f"{name} does not import: {_in_a_line(error)}", advice))


def _look_at_layouts(found: Findings) -> None:
    found.layouts_folder = os.environ.get(LAYOUTS_VARIABLE) or None
    if found.layouts_folder is None:
        return
    if not Path(found.layouts_folder).is_dir():
        what = f"{LAYOUTS_VARIABLE} names {found.layouts_folder}, which is not a folder"
        found.problems.append(Problem(what, f"set it to a folder of *.txt layouts, or unset {LAYOUTS_VARIABLE}"))
        return
    found.layouts = len(layout_files(None))


def _look_at_devices(found: Findings) -> None:
    try:
        import jax

        found.devices = [f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices()]
    except Exception as error:  # whatever a driver may say
        advice = (
            "try JAX_PLATFORMS=cpu lapwing doctor; if that works, the driver or jaxlib's accelerator build is at fault"
        )
        found.problems.append(Problem(f"JAX sees no device: {_in_a_line(error)}", advice))


def _try_a_tiny_run(found: Findings) -> None:
    """Collect, solve, learn and score in the smallest world; a minute at the very most."""
    try:
        found.tiny_run = tiny_run()
    except Exception as error:  # it is what the doctor is there to find
        advice = "report it with the output of `lapwing doctor --json`"
        found.problems.append(Problem(f"the tiny run fails: {type(error).__name__}: {_in_a_line(error)}", advice))
        return
    if not found.tiny_run["cosine"] >= TINY_COSINE:
        what = f"the tiny run learns badly: cosine {found.tiny_run['cosine']:.3f}, where {TINY_COSINE} is easy"
        found.problems.append(Problem(what, "numbers are wrong on this machine; try JAX_PLATFORMS=cpu"))


def tiny_run() -> dict[str, float]:
    """Seconds of solving and of learning (compiling included), and how well it was learned."""
    from lapwing.data.collect import collect
    from lapwing.evaluation.score import score
    from lapwing.solving import solve
    from lapwing.training.learner import learn

    started = time.perf_counter()
    truth = solve(TINY_WORLD, 3)
    solved = time.perf_counter()
    model = learn(collect(TINY_WORLD, 20_000, seed=0), 3, steps=TINY_STEPS, seed=0)
    learned = time.perf_counter()
    cosine = score(model, truth).subspace_cosine
    return {"solve_seconds": solved - started, "learn_seconds": learned - solved, "cosine": cosine}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _cores() -> int:
    """Those that this process may use, which a container or a cluster may have limited."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (AttributeError, OSError, ValueError):  # not on every system
        return None


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
