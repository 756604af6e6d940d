"""``lapwing score``: a saved representation against the ground truth."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, LayoutsFolder, option, read_data
from lapwing.errors import ArgumentError


@dataclass(frozen=True)
class ScoreCommand:
    """Score a saved representation against the ground truth, beside the tabular estimate.

    Example: lapwing score runs/solve-data --truth Rooms-16 --data data
    """

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a saved representation."""
    truth: Annotated[str | None, option("WORLD|MODEL", "the world the model names")] = None
    """The ground truth: a world's name or a folder of a saved representation."""
    data: Annotated[Path | None, option("DATA", "none")] = None
    """Data folder; what counting its transitions reaches is the baseline."""
    definition: str = "successor(0.9)"
    """In which to compare eigenvalues."""
    tolerance: Annotated[float | None, option("X", "1e-6 exact, 0.01 from data")] = None
    """Relative width within which eigenvalues count as one."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    json: Flag = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Print the scores."""
        from lapwing.cli.results import LABELS, score_cells, show_problems

        model = lw.load(self.model)
        show_problems(model)
        truth = self._ground_truth(model)
        options: dict[str, Any] = {"definition": self.definition, "tolerance": self.tolerance}
        scores = {"model": lw.score(model, truth, **options)}
        if self.data is not None:
            scores["baseline"] = lw.counting_score(read_data(self.data), truth, **options)
        if self.json:
            terminal.print_json({name: found.as_dict() for name, found in scores.items()})
            return
        columns = ["", "cosine (the paper's)", "subspace cosine", f"mean eigenvalue error, {self.definition}"]
        rows = [[LABELS[name], *score_cells(found)] for name, found in scores.items()]
        title = f"Score of {self.model} (clusters within {scores['model'].tolerance:g})"
        terminal.print_table(title, columns, rows)

    def _ground_truth(self, model: "lw.LaplacianRepresentation") -> "lw.LaplacianRepresentation":
        from lapwing.storage.models import MANIFEST

        if self.truth is not None and (Path(self.truth) / MANIFEST).is_file():
            return lw.load(self.truth)
        world = lw.environments.world_from_description(model.metadata.get("world"))
        if self.truth is not None:
            observation = getattr(world, "observation", None)
            return lw.solve(self.truth, model.dim, observation=observation, layouts=self.layouts)
        if world is None:
            raise ArgumentError("the model has no record of its world; name one with --truth")
        return lw.solve(world, model.dim)
