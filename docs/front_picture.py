"""Makes the picture of the front page, images/front.png: python docs/front_picture.py"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

import lapwing as lw
from lapwing.applications import GoalDistance, eigenoptions
from lapwing.plots import draw_field, draw_option, draw_world, field_values, save_figure

OUT = Path(__file__).parent / "images" / "front.png"
INK = "#3a3f4a"


def cell(world: Any, state: int) -> tuple[float, float]:
    """The middle of a state's cell, across and down."""
    row, column = np.argwhere(world.layout.free)[state]
    return float(column), float(row)


def main() -> None:
    world = lw.make_world("Rooms-16")
    data = lw.collect(world, 1_000_000, seed=0)
    model = lw.learn(data, dim=11, seed=0)
    score = lw.score(model, lw.solve(world, dim=11))

    figure = Figure(figsize=(13, 3.9))
    places = {
        "walk": (0.01, 0.11, 0.205, 0.76),
        "distance": (0.585, 0.11, 0.195, 0.76),
        "option": (0.795, 0.11, 0.195, 0.76),
    }
    axes = {name: figure.add_axes(place) for name, place in places.items()}
    parts = [figure.add_axes((0.265 + 0.142 * (i % 2), 0.5 - 0.41 * (i // 2), 0.135, 0.36)) for i in range(4)]

    draw_world(axes["walk"], world)
    walk = lw.collect(world, 1_500, episode_length=300, seed=3)
    for episode, colour in zip(range(5), ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"), strict=True):
        ids = [int(np.flatnonzero((world.table() == row).all(axis=1))[0]) for row in walk.episode(episode)]
        across, down = np.array([cell(world, one) for one in ids]).T
        jitter = np.random.default_rng(episode).normal(scale=0.12, size=(2, len(ids)))
        axes["walk"].plot(across + jitter[0], down + jitter[1], color=colour, lw=0.8, alpha=0.9)

    for number, ax in enumerate(parts, start=1):
        values = field_values(model, world.field_points())[:, number]
        draw_field(ax, world, values, float(np.abs(values).max()))
        ax.set_title(f"$\\lambda_{{{number + 1}}}$ = {model.eigenvalues[number]:.5f}", fontsize=9, color=INK, pad=2)

    goal = world.num_states - 1
    distance = GoalDistance(model, world.table()[goal])(world.table())
    image = axes["distance"].imshow(world.field_image(distance), extent=world.field_extent(), cmap="viridis_r")
    image.cmap.set_bad("#282c34")
    axes["distance"].plot(*cell(world, goal), "*", color="white", ms=11, mec=INK)
    draw_option(axes["option"], world, eigenoptions(model, world)[0], field_values(model, world.field_points())[:, 1])

    titles = {
        "walk": ("experience", "a million random steps (five walks)"),
        "distance": ("distances", "steps to the star, through the doors"),
        "option": ("options", "climb a component: across the world"),
    }
    for name, ax in axes.items():
        ax.set_axis_off()
        middle = (places[name][0] + places[name][2] / 2, 0.935)
        figure.text(*middle, titles[name][0], ha="center", fontsize=14, weight="bold", color=INK)
        figure.text(middle[0], 0.045, titles[name][1], ha="center", va="center", fontsize=9.5, color=INK)
    for ax in parts:
        ax.set_axis_off()
    figure.text(0.4035, 0.935, "components and eigenvalues", ha="center", fontsize=14, weight="bold", color=INK)
    found = f"learned; cosine with the exact eigenvectors {score.cosine:.4f}"
    figure.text(0.4035, 0.045, found, ha="center", va="center", fontsize=9.5, color=INK)
    for begin, end in ((0.222, 0.258), (0.548, 0.582)):
        arrow = FancyArrowPatch((begin, 0.49), (end, 0.49), arrowstyle="-|>", mutation_scale=18, color=INK, lw=1.6)
        arrow.set_transform(figure.transFigure)
        figure.add_artist(arrow)
    save_figure(figure, OUT)


if __name__ == "__main__":
    main()
