"""``lapwing worlds``: the list of worlds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, LayoutsFolder, option

RULES = "Any size by rule: room:20x30, rooms:4x4x5:SEED, maze:10x15:SEED. Your own: a .txt file, or --layouts DIR. "
RULES += "As a continuous maze: continuous:NAME. As images: images:84:UMaze. Side by side: product:NAME*NAME."

# Points along the longer side of a continuous world's picture.
PICTURE_CELLS = 32


@dataclass(frozen=True)
class WorldsCommand:
    """List the worlds, shipped and in a layouts folder, with a small picture of each if asked.

    Example: lapwing worlds --pictures
    """

    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    pictures: Flag = False
    """Draw each world in the terminal."""
    out: Annotated[Path | None, option("FILE", "none")] = None
    """Write a sheet of pictures to this .png, .pdf or .svg file."""
    json: Flag = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Print the list."""
        files = lw.environments.layout_files(self.layouts)
        worlds = [lw.make_world(name, layouts=self.layouts) for name in lw.world_names(self.layouts)]
        rows = [_row(world, "layouts folder" if world.name in files else "shipped") for world in worlds]
        if self.out is not None:
            lw.plots.save_figure(lw.plots.worlds_figure(worlds), self.out)
        if self.json:
            keys = ("name", "source", "canvas", "states", "parts", "description")
            terminal.print_json([dict(zip(keys, row, strict=True)) for row in rows])
            return
        if self.pictures:
            rows = [[row[0], row[3], small_picture(world)] for row, world in zip(rows, worlds, strict=True)]
            terminal.print_table("Worlds", ["world", "states", "picture"], rows)
        else:
            terminal.print_table("Worlds", ["world", "source", "canvas", "states", "parts", "what it is"], rows)
        print(RULES if self.out is None else f"pictures: {self.out}")


def _row(world: "lw.environments.World", source: str) -> list[str]:
    facts = world.summary()
    states, parts = terminal.cell(facts["states"]), str(facts["parts"])
    return [world.name, source, facts["size"], states, parts, facts["description"]]


def small_picture(world: "lw.environments.World", width: int = 64) -> str:
    """The walls of a world in half-block characters, two rows of cells per line.

    Args:
        world: any world; a continuous one without walls has nothing to draw.
        width: columns at most; larger worlds are thinned.

    Returns:
        The lines of the picture.

    Example:
        >>> from lapwing.environments import Layout, make_world
        >>> print(small_picture(make_world(Layout.from_text("XXX\\nX X\\nXXX"))))
        █▀█
        ▀▀▀
    """
    import numpy as np

    points = world.field_points(PICTURE_CELLS)
    if points is None:
        return ""
    walls = np.ma.getmaskarray(world.field_image(np.zeros(len(points))))
    if world.num_states is None and not walls.any():
        return ""
    step = -(-max(walls.shape) // width)
    walls = walls[::step, ::step]
    lines = []
    for row in range(0, walls.shape[0], 2):
        lower = walls[row + 1] if row + 1 < walls.shape[0] else [False] * walls.shape[1]
        lines.append("".join(" ▀▄█"[int(top) + 2 * int(bottom)] for top, bottom in zip(walls[row], lower, strict=True)))
    return "\n".join(lines)
