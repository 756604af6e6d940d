"""``lapwing doctor``: versions, extras, devices, memory, and a tiny run. It needs no network."""

import os
import platform
import shutil
import time
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import lapwing as lw
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
    "options": ("simpleoptions", "options of BaRL-SimpleOptions"),
    "atari": ("ale-py", "Atari games (under the GPL)"),
    "minigrid": ("minigrid", "MiniGrid environments"),
    "robotics": ("gymnasium-robotics", "PointMaze and AntMaze"),
    "ray": ("ray", "studies and counting on a cluster"),
    "onnx": ("onnx", "model.export to ONNX"),
    "sklearn": ("scikit-learn", "the transformer of lapwing.sklearn"),
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
            terminal.print_json(found)
        else:
            _show(found)
        for problem in found["problems"]:
            terminal.note(f"{problem['what']}; {problem['advice']}")
        if not found["healthy"]:
            count = len(found["problems"])
            raise LapwingError(f"{count} problem{'s' if count > 1 else ''}, see the advice above")


def examine() -> dict[str, Any]:
    """Check everything; a problem does not end it, so that all are found at once.

    Returns:
        JSON types: versions of ``packages`` and ``extras`` by name (None where something is not installed), facts about
        the machine, ``tiny_run``, and ``problems``, each with what is wrong and advice.
    """
    from lapwing.environments import LAYOUTS_VARIABLE, layout_files

    problems: list[dict[str, str]] = []

    def add(what: str, advice: str) -> None:
        problems.append({"what": what, "advice": advice})

    packages = {name: _version(name) for name in ("lapwing", *REQUIRED)}
    for name in REQUIRED:
        try:
            if packages[name] is None:
                add(f"{name} is not installed", "install lapwing again: pip install --force-reinstall lapwing")
            else:
                import_module(name)
        except Exception as error:  # a broken binary fails in many ways
            add(f"{name} does not import: {_in_a_line(error)}", f"install it: pip install --force-reinstall {name}")
    folder = os.environ.get(LAYOUTS_VARIABLE) or None
    if folder is not None and not Path(folder).is_dir():
        advice = f"set it to a folder of *.txt layouts, or unset {LAYOUTS_VARIABLE}"
        add(f"{LAYOUTS_VARIABLE} names {folder}, which is not a folder", advice)
    devices, processes = [], 1
    try:
        import jax

        lw.training.join_processes()
        processes = jax.process_count()
        devices = [f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices()]
    except Exception as error:  # whatever a driver raises
        advice = "try JAX_PLATFORMS=cpu lapwing doctor; if that works, the driver or jaxlib's GPU build is broken"
        add(f"JAX sees no device: {_in_a_line(error)}", advice)
    tiny = None
    try:
        tiny = None if problems else tiny_run()
        if tiny is not None and not tiny["cosine"] >= TINY_COSINE:
            what = f"the tiny run learns badly: cosine {tiny['cosine']:.3f}, where {TINY_COSINE} is easy"
            add(what, "numbers are wrong on this machine; try JAX_PLATFORMS=cpu")
    except Exception as error:  # it is what the doctor is there to find
        what = f"the tiny run fails: {type(error).__name__}: {_in_a_line(error)}"
        add(what, "report it with the output of `lapwing doctor --json`")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "packages": packages,
        "extras": {name: _version(package) for name, (package, _) in EXTRAS.items()},
        "browser": next((path for name in BROWSERS if (path := shutil.which(name))), None),
        "devices": devices,
        "processes": processes,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory_gib": _memory_gib(),
        "layouts_folder": folder,
        "layouts": len(layout_files(None)) if folder is not None and Path(folder).is_dir() else 0,
        "tiny_run": tiny,
        "problems": problems,
        "healthy": not problems,
    }


def tiny_run() -> dict[str, float]:
    """Collect, solve, learn and score in the smallest world.

    Returns:
        Seconds of solving and of learning (compiling included), and the subspace cosine.
    """
    started = time.perf_counter()
    truth = lw.solve(TINY_WORLD, 3)
    solved = time.perf_counter()
    model = lw.learn(lw.collect(TINY_WORLD, 20_000, seed=0), 3, steps=TINY_STEPS, seed=0)
    learned = time.perf_counter()
    cosine = lw.score(model, truth).subspace_cosine
    return {"solve_seconds": solved - started, "learn_seconds": learned - solved, "cosine": cosine}


def _show(found: dict[str, Any]) -> None:
    packages = [("python", found["python"]), *((name, known or "MISSING") for name, known in found["packages"].items())]
    terminal.print_facts("Installed", packages)
    extras = [["(browser)", found["browser"] or "-", "tests of the report page, nothing else"]]
    for name, (_, purpose) in EXTRAS.items():
        known = found["extras"][name]
        extras.append([name, known or "-", purpose if known else f"pip install 'lapwing[{name}]': {purpose}"])
    terminal.print_table("Extras, none of them needed", ["extra", "version", "for"], extras)
    folder, memory = found["layouts_folder"], found["memory_gib"]
    machine = {
        "system": found["platform"],
        "devices JAX sees": ", ".join(found["devices"]) or "none",
        "processes": str(found["processes"]),
        "cores": str(found["cores"]),
        "memory": "unknown" if memory is None else f"{memory:g} GiB",
        "LAPWING_LAYOUTS": "not set" if folder is None else f"{folder} ({found['layouts']} layouts)",
    }
    terminal.print_facts("Machine", list(machine.items()))
    if found["tiny_run"] is not None:
        text = "solved in {solve_seconds:.1f} s, learned in {learn_seconds:.1f} s, cosine {cosine:.4f}"
        print(f"tiny run in {TINY_WORLD}: {text.format(**found['tiny_run'])}")
    if found["healthy"]:
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
