"""Options in MiniGrid FourRooms, an environment that the package does not know: learned from random steps alone.

    pip install minigrid
    python examples/minigrid_options.py [PICTURE.png]

The agent sees the whole grid as an image. From 40,000 random steps come the components (by counting, since images
repeat) and, from the same steps, options that climb and descend them; then the options are followed in the environment.
"""

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.applications import learn_options
from lapwing.plots import save_figure

STEPS = 40_000
AGENT = 10  # MiniGrid's number of the object that the agent is
MOVES = 3  # turn left, turn right, go forward; MiniGrid's other actions find nothing to act on here


class FixedRooms(gymnasium.Wrapper[Any, Any, Any, Any]):
    """MiniGrid with the layout of one seed, and a start drawn anew in each episode."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.starts = np.random.default_rng(seed)
        self.env.reset(seed=0)
        self.unwrapped.np_random = self.starts
        self.unwrapped.place_agent()
        return self.unwrapped.gen_obs(), {}


def place(image: np.ndarray) -> tuple[int, int]:
    """Column and row of the agent."""
    column, row = np.argwhere(image[..., 0] == AGENT)[0]
    return int(column), int(row)


def follow(env: gymnasium.Env[Any, Any], option: Any, limit: int = 200) -> list[np.ndarray]:
    """What is seen along an option, from a new start; a single image where it may not start there."""
    seen = [env.reset()[0]]
    while len(seen) <= limit and (option.termination(seen[-1]) < 1 if len(seen) > 1 else option.initiation(seen[0])):
        image, _, terminated, _, _ = env.step(option.policy(seen[-1]))
        seen.append(image)
        if terminated:
            break
    return seen


def draw(model: lw.LaplacianRepresentation, images: np.ndarray, walks: dict[str, list[list[np.ndarray]]]) -> Figure:
    """Each component, averaged over the four directions, with walks of its two options."""
    values, places = model.transform(images), np.array([place(image) for image in images])
    shape = images.shape[2:0:-1]
    figure = Figure(figsize=(9.6, 5.2), layout="constrained")
    for ax, (name, paths) in zip(figure.subplots(2, 3).T.ravel(), walks.items(), strict=True):
        sums, counts = np.zeros(shape), np.zeros(shape)
        np.add.at(sums, (places[:, 1], places[:, 0]), values[:, int(name.lstrip("-u")) - 1])
        np.add.at(counts, (places[:, 1], places[:, 0]), 1)
        ax.set_facecolor("#282c34")
        ax.imshow(np.ma.masked_where(counts == 0, sums / np.maximum(counts, 1)), cmap="RdBu_r", vmin=-2, vmax=2)
        for path in paths:
            ax.plot(*np.array([place(image) for image in path]).T, color="black", lw=0.8, alpha=0.6)
        ends = np.array([place(path[-1]) for path in paths])
        ax.scatter(*ends.T, s=70, color="#F0E442", ec="black", lw=0.8, zorder=3)
        ax.set(title=f"option {name}", xticks=[], yticks=[])
    return figure


def main(picture: str = "runs/minigrid_options.png") -> None:
    try:
        from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper
    except ImportError:
        print("this example needs MiniGrid: pip install minigrid")
        return
    rooms = gymnasium.make("MiniGrid-FourRooms-v0", max_steps=1000)
    env = ImgObsWrapper(FullyObsWrapper(FixedRooms(rooms)))
    rng = np.random.default_rng(0)
    data = lw.collect(env, STEPS, policy=lambda _: int(rng.integers(MOVES)), record="actions", episode_length=200)
    print(data)
    model = lw.solve(data, dim=4)
    print(model.certificate())
    options = learn_options(model, data)  # a table of counted transitions, since images repeat
    walks = {}
    for option in options:
        paths = walks[option.name] = [follow(env, option) for _ in range(20)]
        number, sign = int(option.name.lstrip("-u")) - 1, -1.0 if option.name.startswith("-") else 1.0
        gains = [sign * float(np.diff(model.transform(np.stack([path[0], path[-1]]))[:, number])[0]) for path in paths]
        steps = np.mean([len(path) - 1 for path in paths])
        ends, counts = np.unique([place(path[-1]) for path in paths], axis=0, return_counts=True)
        most = ends[counts.argmax()].tolist()
        print(f"{option.name:>3}: {steps:5.1f} steps, gain {np.mean(gains):5.2f}, {counts.max()} of 20 end at {most}")
    Path(picture).parent.mkdir(parents=True, exist_ok=True)
    save_figure(draw(model, data.observations, walks), Path(picture))
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
