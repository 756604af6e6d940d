"""A world of your own: a ring of states, each step to a neighbour, observed as a point on the circle."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

import lapwing as lw
from lapwing.environments import World


class Ring(World):
    """A random walk on a ring.

    Args:
        count: how many states.
        stay: probability of staying.
    """

    actions = 2
    observation_shape = (2,)
    observation_bounds = (-1.0, 1.0)

    def __init__(self, count: int = 20, stay: float = 0.1) -> None:
        self.name = f"Ring-{count}"
        self.count, self.stay = count, stay

    # What every world has.

    def describe(self) -> dict[str, Any]:
        return {"kind": "ring", "name": self.name, "count": self.count, "stay": self.stay}

    def summary(self) -> dict[str, Any]:
        return {"size": str(self.count), "states": self.count, "parts": 1, "description": "a walk on a ring"}

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        return rng.integers(self.count, size=count)

    def step(
        self, states: NDArray[Any], actions: NDArray[Any] | None, rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        chosen = rng.integers(2, size=len(states)) if actions is None else actions
        moves = np.where(rng.random(len(states)) < self.stay, 0, 2 * chosen - 1)
        return (states + moves) % self.count, chosen

    def observe(self, states: NDArray[Any]) -> NDArray[Any]:
        angles = 2 * np.pi * states / self.count
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    # What is known of this one: its states, its matrix, how to draw it. Leave out what is not known.

    def table(self) -> NDArray[Any]:
        return self.observe(np.arange(self.count))

    def transition_matrix(self) -> csr_array:
        here = np.arange(self.count)
        moves = [(here, self.stay), ((here + 1) % self.count, (1 - self.stay) / 2), (here - 1, (1 - self.stay) / 2)]
        columns = np.concatenate([target % self.count for target, _ in moves])
        weights = np.concatenate([np.full(self.count, probability) for _, probability in moves])
        return coo_array((weights, (np.tile(here, 3), columns)), shape=(self.count, self.count)).tocsr()

    def field_points(self, cells: int = 0) -> NDArray[Any]:
        return self.table()

    def field_image(self, values: NDArray[np.float64]) -> "np.ma.MaskedArray[Any, Any]":
        return np.ma.masked_invalid(values[None, :])

    def field_extent(self) -> tuple[float, float, float, float]:
        return 0.0, float(self.count), 0.0, 1.0


if __name__ == "__main__":
    world = Ring(20)
    truth = lw.solve(world, dim=3)
    expected = 0.9 * (1 - np.cos(2 * np.pi * np.array([0, 1, 1]) / 20))
    print(np.abs(truth.eigenvalues - expected).max())
    data = lw.collect(world, steps=20_000, seed=0)
    print(lw.score(lw.learn(data, dim=3, steps=400, seed=0), truth))
