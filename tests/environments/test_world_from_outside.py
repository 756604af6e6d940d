"""Worlds added from outside the package: collected from, solved, learned, drawn, described and registered."""

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.sparse import csr_array

import lapwing as lw
from lapwing.environments import WORLDS, World, register_world, world_from_description
from lapwing.errors import ArgumentError, DataError
from lapwing.plots import representation_figure


class Ring(World):
    """States on a circle; a step goes left or right. Its table and its matrix are known."""

    def __init__(self, count: int = 12) -> None:
        self.name, self.count = f"Ring-{count}", count
        self.observation_shape, self.observation_bounds, self.actions = (2,), (-1.0, 1.0), 2

    def describe(self) -> dict[str, Any]:
        return {"kind": "ring", "name": self.name, "count": self.count}

    def summary(self) -> dict[str, Any]:
        return {"size": str(self.count), "states": self.count, "parts": 1, "description": "a ring"}

    def reset(self, count: int, rng: np.random.Generator) -> Any:
        return rng.integers(self.count, size=count)

    def step(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        moves = rng.integers(2, size=len(states)) if actions is None else np.asarray(actions)
        return (states + 2 * moves - 1) % self.count, moves

    def observe(self, states: Any) -> Any:
        angles = 2 * np.pi * np.asarray(states) / self.count
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def table(self) -> Any:
        return self.observe(np.arange(self.count))

    def transition_matrix(self) -> csr_array:
        eye = np.eye(self.count)
        return csr_array((np.roll(eye, 1, axis=1) + np.roll(eye, -1, axis=1)) / 2)

    def field_points(self, cells: int = 96) -> Any:
        return self.table()

    def field_image(self, values: Any) -> Any:
        return np.ma.masked_array(np.asarray(values)[None, :])

    def field_extent(self) -> tuple[float, float, float, float]:
        return 0.0, float(self.count), 1.0, 0.0


class Drift(World):
    """A continuous walk pulled to zero, without table, matrix, closed form or picture."""

    name, observation_shape, observation_bounds, actions = "Drift", (1,), (-50.0, 50.0), (1,)

    def describe(self) -> dict[str, Any]:
        return {"kind": "drift", "name": self.name}

    def summary(self) -> dict[str, Any]:
        return {"size": "line", "states": None, "parts": 1, "description": "a pulled walk"}

    def reset(self, count: int, rng: np.random.Generator) -> Any:
        return rng.normal(size=(count, 1))

    def step(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        pushes = rng.normal(size=states.shape) if actions is None else np.asarray(actions, dtype=np.float64)
        return 0.9 * states + np.sqrt(0.19) * pushes, pushes

    def observe(self, states: Any) -> Any:
        return states.astype(np.float32)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register_world("Ring-12", Ring)
    register_world("Drift", Drift)
    yield
    for name in ("Ring-12", "Drift"):
        del WORLDS[name]
        gymnasium.registry.pop(f"lapwing/{name}-v0", None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Ring-12", "Drift"])
def test_a_world_from_outside_is_collected_from_learned_and_described(name: str, tmp_path: Path) -> None:
    data = lw.collect(name, steps=2000, seed=0, record="actions")
    assert data.num_transitions == 2000
    assert data.has_table == (name == "Ring-12")
    assert name in lw.world_names()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.LapwingWarning)  # twenty steps are too few
        learned = lw.learn(data, dim=2, steps=20, log_every=10, hidden=(8,))
    model = lw.load(learned.save(tmp_path / "model"))
    assert world_from_description(model.metadata["world"]).name == name
    assert world_from_description({**model.metadata["world"], "other": 1}) is None


def test_a_ring_is_solved_and_drawn() -> None:
    truth = lw.solve("Ring-12", dim=5)
    np.testing.assert_allclose(truth.eigenvalues, 1 - np.cos(2 * np.pi * np.array([0, 1, 1, 2, 2]) / 12), atol=1e-12)
    counted = lw.solve(lw.collect("Ring-12", steps=20_000), dim=5)
    assert lw.score(counted, truth).subspace_cosine > 0.99
    figure = representation_figure({"ring": truth}, "eigenvectors")
    assert len([ax for ax in figure.axes if ax.images]) == 5


def test_what_a_world_does_not_know_is_refused() -> None:
    with pytest.raises(DataError):
        lw.solve("Drift", dim=3)
    with pytest.raises(ArgumentError):
        lw.collect("Ring-12", steps=10, slip=0.1)


@pytest.mark.parametrize("name", ["Ring-12", "Drift"])
def test_a_world_from_outside_is_a_gymnasium_environment(name: str) -> None:
    env = gymnasium.make(f"lapwing/{name}-v0")
    check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize(
    "program",
    [
        "import lapwing, gymnasium; gymnasium.make('lapwing/Rooms-16-v0')",
        "import gymnasium, lapwing; gymnasium.make('lapwing/Rooms-16-v0')",
        "import gymnasium; gymnasium.make('lapwing:lapwing/Rooms-16-v0')",
        "import lapwing; from gymnasium.envs.registration import make; make('lapwing/Box-2-v0')",
        "import lapwing, sys; assert not {'jax', 'scipy', 'gymnasium', 'numpy'} & set(sys.modules)",
        "import gymnasium, lapwing, sys; assert not {'jax', 'scipy'} & set(sys.modules)",
        "import lapwing.environments, sys; assert not {'jax', 'scipy', 'gymnasium'} & set(sys.modules)",
    ],
)
def test_worlds_are_registered_in_any_order_of_imports(program: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, capture_output=True)
