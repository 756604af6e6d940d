"""A Gymnasium environment of your own: collect from it, audit, solve by counts, draw.

    python examples/own_environment.py [PICTURE.png]

The world is a ring of cells with a tunnel across it; the agent sees the cosine and sine of its angle. Nothing in
the package knows it: everything comes from the observations.
"""

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.plots import save_figure

CELLS = 40
TUNNEL = {0: CELLS // 2, CELLS // 2: 0}


class RingWithTunnel(gymnasium.Env[np.ndarray, np.int64]):
    """Moves: left, right, and through the tunnel where there is one."""

    def __init__(self) -> None:
        self.action_space = gymnasium.spaces.Discrete(3)
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.cell = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(CELLS))
        return self.observe(), {}

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, dict]:
        if action == 2:
            self.cell = TUNNEL.get(self.cell, self.cell)
        else:
            self.cell = (self.cell + (1 if action else -1)) % CELLS
        return self.observe(), 0.0, False, False, {}

    def observe(self) -> np.ndarray:
        angle = 2.0 * np.pi * self.cell / CELLS
        return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)


def draw(model: lw.LaplacianRepresentation, observations: np.ndarray, path: Path) -> None:
    """The components as colour on the places where the observations lie."""
    values = model.transform(observations)
    figure = Figure(figsize=(9.0, 2.5), layout="constrained")
    for number, ax in enumerate(figure.subplots(1, 4)):
        ax.scatter(*observations.T, c=values[:, number + 1], cmap="RdBu_r", vmin=-2.0, vmax=2.0, ec="#888", lw=0.5)
        ax.set_title(f"$u_{number + 2}$   $\\lambda$ = {model.eigenvalues[number + 1]:.4f}", fontsize=10)
        ax.set_aspect("equal")
        ax.set_axis_off()
    save_figure(figure, path)


def main(picture: str = "runs/own_environment.png") -> None:
    data = lw.collect(RingWithTunnel(), steps=50_000, episode_length=50, seed=0)
    print(lw.audit(data))
    model = lw.solve(data, dim=5)
    print(model.certificate())
    draw(model, data.observations, Path(picture))
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
