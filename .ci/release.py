"""Builds the source distribution and the wheel, and tries the wheel in an empty environment outside the source tree.

    python .ci/release.py                    # builds into dist/, runs the demo
    python .ci/release.py tests/operators    # and these tests, against the installed wheel
    python .ci/release.py --built            # tries what dist/ holds already

Needs nothing but Python: `make release` runs it, and so do the workflows, on systems without make as well.
Environments and outputs of the demo lie in a temporary folder that is removed at the end.
"""

import argparse
import os
import subprocess
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = [ROOT / folder for folder in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
CONSTRAINTS = ROOT / "constraints.txt"
# What the tests of the mathematics import beside the package's own requirements.
FOR_TESTS = ("pytest", "pytest-xdist", "hypothesis", "beartype", "packaging")


def expected_files() -> set[str]:
    """What the wheel must hold beside its metadata: every file of the packages, data and templates included."""
    return {
        path.relative_to(package.parent).as_posix()
        for package in PACKAGES
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def content_problems(wheel: Path, expected: set[str]) -> list[str]:
    """What is wrong with the files of a wheel, one line each; an empty list if nothing is."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        metadata = f"{PROJECT['project']['name']}-{PROJECT['project']['version']}.dist-info"
        held = {name for name in names if not name.startswith(f"{metadata}/")}
        problems = [f"{wheel.name} lacks {name}" for name in sorted(expected - held)]
        problems += [
            f"{wheel.name} holds {name}, which is not a file of the package" for name in sorted(held - expected)
        ]
        for needed in ("METADATA", "entry_points.txt", "licenses/LICENSE"):
            if f"{metadata}/{needed}" not in names:
                problems.append(f"{wheel.name} lacks {metadata}/{needed}")
    return problems


def environment(folder: Path, *arguments: str) -> Path:
    """A new virtual environment with these packages; the path of its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install(python, *arguments)
    return python


def install(python: Path, *arguments: str) -> None:
    """Install packages into the environment of this Python."""
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)


def run(python: Path, *arguments: str, cwd: Path | None = None) -> None:
    """Run a program; the end of this one if it fails."""
    # Nothing may be found in the source tree: neither through PYTHONPATH nor in the current folder.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    ended = subprocess.run([str(python), *arguments], cwd=cwd, env=clean, check=False)
    if ended.returncode:
        raise SystemExit(f"release: {' '.join(map(str, arguments))} ended with exit code {ended.returncode}")


def report(what: str, started: float) -> None:
    """Print what was done and how long it took."""
    print(f"release: {what} ({time.perf_counter() - started:.0f} s)", flush=True)


def built_files() -> tuple[Path, Path]:
    """The source distribution and the wheel of this version."""
    name = f"{PROJECT['project']['name']}-{PROJECT['project']['version']}"
    return ROOT / "dist" / f"{name}.tar.gz", ROOT / "dist" / f"{name}-py3-none-any.whl"


def build(folder: Path) -> None:
    """Build both files into dist/, and check their metadata, in an environment of their own."""
    started = time.perf_counter()
    tools = environment(folder / "tools", "build", "twine")
    sdist, wheel = built_files()
    for old in (sdist, wheel):
        old.unlink(missing_ok=True)
    # The wheel is made from the source distribution, so that the latter is known to be complete.
    run(tools, "-m", "build", "--outdir", str(sdist.parent), str(ROOT))
    run(tools, "-m", "twine", "check", "--strict", str(sdist), str(wheel))
    report("built", started)


def try_wheel(folder: Path, sdist: Path, wheel: Path, tests: list[str]) -> None:
    """The demo with nothing installed but the wheel, then the tests of the source distribution, without its src/."""
    started = time.perf_counter()
    python = environment(folder / "empty", "--constraint", str(CONSTRAINTS), str(wheel))
    report("installed the wheel into an empty environment", started)
    started, elsewhere = time.perf_counter(), folder / "elsewhere"
    elsewhere.mkdir()
    where = "import lapwing, sys; assert lapwing.__file__.startswith(sys.prefix), lapwing.__file__"
    run(python, "-c", where, cwd=elsewhere)
    version = f"import lapwing; assert lapwing.__version__ == {PROJECT['project']['version']!r}, lapwing.__version__"
    run(python, "-c", version, cwd=elsewhere)
    script = python.with_name("lapwing.exe" if os.name == "nt" else "lapwing")
    run(script, "learn", "Rooms-16", "--dim", "11", "--out", "demo", cwd=elsewhere)
    run(script, "reproduce", "--list", cwd=elsewhere)
    if not (elsewhere / "demo" / "report.html").is_file():
        raise SystemExit("release: the demo wrote no report.html")
    report("ran the demo", started)
    if not tests:
        return
    started = time.perf_counter()
    install(python, "--constraint", str(CONSTRAINTS), *FOR_TESTS)
    with tarfile.open(sdist) as archive:
        members = [member for member in archive.getmembers() if Path(member.name).parts[1:2] != ("src",)]
        archive.extractall(folder, members=members, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    run(python, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "not slow", *tests, cwd=unpacked)
    report("ran the tests", started)


def main() -> None:
    """Build, check and try; both files stay in dist/."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="tests to run against the installed wheel")
    parser.add_argument("--built", action="store_true", help="take the files in dist/ instead of building them")
    given = parser.parse_args()
    sdist, wheel = built_files()
    with tempfile.TemporaryDirectory(prefix="release-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if not given.built:
            build(folder)
        if problems := content_problems(wheel, expected_files()):
            raise SystemExit("\n".join(f"release: {problem}" for problem in problems))
        try_wheel(folder, sdist, wheel, given.tests)
    print(f"release: {wheel} and {sdist} are ready")


if __name__ == "__main__":
    main()
