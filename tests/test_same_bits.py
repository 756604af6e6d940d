"""The same seed gives the same bits: in another process, beside a busy one, whatever Python's hashes are."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from lapwing.data import collect

pytestmark = pytest.mark.slow

Numbers = dict[str, np.ndarray]

LEARN = """
import sys
import numpy as np
import lapwing as lw

found = {}

def keep(label, model):
    estimates = model.metadata["eigenvalue_estimates"]
    found.update({f"{label}/weights/{name}": array for name, array in model.encoder.arrays().items()})
    found.update({f"{label}/estimates/{name}": values for name, values in estimates.items()})
    found[f"{label}/history"] = [list(row.values()) for row in model.metadata["history"]]
    found[f"{label}/eigenvalues"], found[f"{label}/bars"] = model.eigenvalues, model.mu_errors
    found[f"{label}/noise"], found[f"{label}/components"] = model.data_angles, model.transform(data.observations)

data = lw.collect("GridMaze-9", 20_000, seed=3)
found["data/ids"] = data.ids
options = {"dim": 4, "steps": 30, "log_every": 15, "hidden": (64, 64), "stop_when_converged": False}
for batches in ("exact", "sampled"):
    keep(f"{batches}, alone", lw.Learner(batches=batches, **options).fit(data))
for seed, model in enumerate(lw.Learner(batches="exact", **options).fit_many(data, [0, 1])):
    keep(f"seed {seed} of two", model)
np.savez(sys.argv[1], **found)
"""

BUSY = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(10**6))"


def start(path: Path, **variables: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", LEARN, str(path)], env={**os.environ, **variables})


def finished(process: "subprocess.Popen[bytes]", path: Path) -> Numbers:
    assert process.wait() == 0
    with np.load(path) as archive:
        return dict(archive)


@contextmanager
def busy_process() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Numbers]:
    """The same learning in three processes: first, again beside others that keep the machine busy, with two devices."""
    folder = tmp_path_factory.mktemp("bits")
    first = finished(start(folder / "first.npz", PYTHONHASHSEED="1"), folder / "first.npz")
    two = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    with busy_process():
        again = start(folder / "again.npz", PYTHONHASHSEED="2")
        devices = start(folder / "devices.npz", **two)
        return {
            "first": first,
            "again": finished(again, folder / "again.npz"),
            "devices": finished(devices, folder / "devices.npz"),
        }


def part(numbers: Numbers, label: str) -> Numbers:
    return {name.removeprefix(f"{label}/"): array for name, array in numbers.items() if name.startswith(f"{label}/")}


def largest_difference(one: Numbers, other: Numbers, kind: str) -> float:
    """Relative to the largest number of each array."""
    assert one.keys() == other.keys()
    chosen = [name for name in one if name.startswith(kind)]
    sizes = [max(float(np.abs(one[name]).max()), 1e-30) for name in chosen]  # some arrays are all zeros
    return max(float(np.abs(one[name] - other[name]).max()) / size for name, size in zip(chosen, sizes, strict=True))


def test_the_same_seed_gives_the_same_bits_in_another_process_beside_a_busy_one(runs: dict[str, Numbers]) -> None:
    first, again = runs["first"], runs["again"]
    assert first.keys() == again.keys()
    assert sum(array.size for array in first.values()) > 10_000
    assert [name for name in first if first[name].tobytes() != again[name].tobytes()] == []


def test_another_seed_gives_other_bits(runs: dict[str, Numbers]) -> None:
    zero, one = (part(runs["first"], f"seed {seed} of two") for seed in (0, 1))
    assert largest_difference(zero, one, "weights") > 0.1


def test_a_second_device_changes_no_data(runs: dict[str, Numbers]) -> None:
    one, two = part(runs["first"], "data"), part(runs["devices"], "data")
    assert [name for name in one if one[name].tobytes() != two[name].tobytes()] == []


@pytest.mark.parametrize("kind", ["weights", "eigenvalues", "components", "estimates"])
@pytest.mark.parametrize("label", ["exact, alone", "sampled, alone"])
def test_one_seed_on_two_devices_agrees_with_one_up_to_rounding(
    runs: dict[str, Numbers], label: str, kind: str
) -> None:
    assert largest_difference(part(runs["first"], label), part(runs["devices"], label), kind) < 1e-3


@pytest.mark.parametrize("kind", ["weights", "eigenvalues", "components", "estimates"])
def test_seeds_spread_over_two_devices_agree_with_one_up_to_rounding(runs: dict[str, Numbers], kind: str) -> None:
    for seed in (0, 1):
        one, two = (part(runs[name], f"seed {seed} of two") for name in ("first", "devices"))
        assert largest_difference(one, two, kind) < 1e-4


@pytest.mark.parametrize("kind", ["weights", "eigenvalues", "components", "estimates"])
def test_a_seed_alone_and_among_others_agree_up_to_rounding(runs: dict[str, Numbers], kind: str) -> None:
    alone, among = part(runs["first"], "exact, alone"), part(runs["first"], "seed 0 of two")
    assert largest_difference(alone, among, kind) < 1e-4


@pytest.mark.parametrize("world", ["Rooms-16", "Box-2"])
@pytest.mark.parametrize("episode_length", [50, (3, 80)])
def test_collected_bits_depend_on_the_seed_and_not_on_where_they_go(
    tmp_path: Path, world: str, episode_length: int | tuple[int, int]
) -> None:
    kept = collect(world, 30_000, seed=5, episode_length=episode_length)
    streamed = collect(world, 30_000, seed=5, episode_length=episode_length, out=tmp_path / "data")
    other = collect(world, 30_000, seed=6, episode_length=episode_length)
    for name in ("observations", "ids", "offsets", "terminated", "truncated"):
        one, two = getattr(kept, name), getattr(streamed, name)
        assert (one is None) == (two is None)
        assert one is None or one.tobytes() == two.tobytes(), name
    column = "ids" if kept.has_table else "observations"
    assert getattr(kept, column).tobytes() != getattr(other, column).tobytes()
