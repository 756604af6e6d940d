"""``lapwing plot``: a figure for a paper."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, Runs, option, run_folders
from lapwing.errors import ArgumentError


@dataclass(frozen=True)
class PlotCommand:
    """Draw a figure for a paper from one run or several: PDF, fonts sized for print, no titles.

    Example: lapwing plot demo --what eigenvectors --components 1-6 --out figure.pdf
    """

    runs: Runs
    """Folders that `lapwing learn` or `lapwing solve` wrote."""
    what: Literal["eigenvectors", "spectrum", "curves", "trajectories", "comparison"] = "eigenvectors"
    """Eigenvectors on the world or at observations, a spectrum, learning curves, components over time, a comparison."""
    components: Annotated[str | None, option("LIST", "all, of eigenvectors the first 12")] = None
    """Which components, such as 1-6 or 1,3,5-7."""
    inputs: Annotated[tuple[int, int] | None, option("I J", "those that explain most")] = None
    """Which two numbers of observations to draw over, counted from 0, where the environment has no map."""
    data: Annotated[Path | None, option("DATA", "what the run keeps")] = None
    """Folder of a data set at whose observations, or along whose episodes, components are drawn."""
    out: Annotated[Path | None, option("FILE", "RUN/WHAT.pdf, for several runs WHAT.pdf")] = None
    """File to write; its ending chooses .pdf, .png or .svg."""
    width: Annotated[float, tyro.conf.arg(metavar="INCHES")] = 5.5
    """Of the figure: 5.5 fills a page of text, 3.25 one of two columns."""
    json: Flag = False
    """Print JSON instead of where the figure is."""

    def run(self) -> None:
        """Draw the figure and write it."""
        runs = run_folders(self.runs)
        components = None if self.components is None else component_numbers(self.components)
        out = self.out or (self.runs[0] if len(self.runs) == 1 else Path()) / f"{self.what}.pdf"
        names = [run.resolve().name for run in runs]
        if len(set(names)) < len(names):
            names = [str(run) for run in runs]
        with terminal.spinner("drawing"):
            models = {name: lw.load(run) for name, run in zip(names, runs, strict=True)}
            figure = self._figure(runs, models, components)
            lw.plots.save_figure(figure, out, dpi=300)
        width, height = (round(float(inches), 2) for inches in figure.get_size_inches())
        if self.json:
            terminal.print_json({"figure": str(out), "what": self.what, "width": width, "height": height})
            return
        print(f"wrote {out} ({width:g} x {height:g} inches)")

    def _figure(self, runs: list[Path], models: "dict[str, lw.LaplacianRepresentation]", components: Any) -> Any:
        """The figure; of a single run also at observations and over time, as far as it keeps its data."""
        if len(runs) == 1 and self.what in ("eigenvectors", "trajectories"):
            (model,) = models.values()
            if self.what == "trajectories":
                return self._over_time(runs[0], model, components)
            observations = self._observations(runs[0], model)
            if observations is not None:
                options: dict[str, Any] = {"inputs": self.inputs, "width": self.width}
                return lw.plots.observations_figure(model, observations, components, **options)
        if self.what == "trajectories":
            raise ArgumentError("the trajectories figure shows one run; name one")
        if self.inputs is not None:
            raise ArgumentError("--inputs is for one run's eigenvectors in an environment that has no map")
        if self.data is not None:
            raise ArgumentError("--data is for the eigenvectors and the trajectories of one run")
        return lw.plots.representation_figure(models, self.what, components, width=self.width)

    def _observations(self, run: Path, model: "lw.LaplacianRepresentation") -> Any:
        """Where to draw components that are not drawn on a map; None for a map."""
        from lapwing.report.stored_run import read_run

        if self.data is not None:
            return lw.Trajectories.load(self.data).observations
        world = lw.environments.world_from_description(model.metadata.get("world"))
        if world is not None and world.field_points(2) is not None:
            return None
        found = read_run(run, model).observations_to_draw()
        if found is None:
            raise ArgumentError(
                f"{run} has no map and keeps no observations; name the data set to draw at: --data DATA"
            )
        return found

    def _over_time(self, run: Path, model: "lw.LaplacianRepresentation", components: Any) -> Any:
        from lapwing.report.stored_run import read_run

        if self.inputs is not None:
            raise ArgumentError("--inputs is for eigenvectors; trajectories are drawn over time")
        data = read_run(run, model).episodes if self.data is None else lw.Trajectories.load(self.data)
        if data is None:
            raise ArgumentError(f"{run} keeps no experience; name the data set to draw: --data DATA")
        return lw.plots.trajectories_figure(model, data, components, width=self.width)


def component_numbers(text: str) -> list[int]:
    """Read a list of component numbers.

    Args:
        text: numbers and ranges, such as ``1-6`` or ``1,3,5-7``.

    Returns:
        The numbers in the order given, each once.

    Example:
        >>> component_numbers("1,3,5-7")
        [1, 3, 5, 6, 7]
    """
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*", part)
        if match is None:
            raise ArgumentError(f"--components is a list such as 1-6 or 1,3,5-7, got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ArgumentError(f"--components {part.strip()} runs backwards; write {last}-{first}")
        numbers += range(first, last + 1)
    return list(dict.fromkeys(numbers))
