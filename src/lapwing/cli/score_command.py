"""``lapwing score``: a saved representation against the ground truth."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, LayoutsFolder, option
from lapwing.errors import ArgumentError

if TYPE_CHECKING:
    from lapwing.representation import LaplacianRepresentation


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
        from lapwing.data.trajectories import Trajectories
        from lapwing.evaluation import counting_score, score
        from lapwing.representation import load

        model = load(self.model)
        show_problems(model)
        truth = self._ground_truth(model)
        scores = {"model": score(model, truth, definition=self.definition, tolerance=self.tolerance)}
        if self.data is not None:
            data = Trajectories.load(self.data)
            scores["baseline"] = counting_score(data, truth, definition=self.definition, tolerance=self.tolerance)
        if self.json:
            terminal.print_json({name: found.as_dict() for name, found in scores.items()})
            return
        columns = ["", "cosine (the paper's)", "subspace cosine", f"mean eigenvalue error, {self.definition}"]
        rows = [[LABELS[name], *score_cells(found)] for name, found in scores.items()]
        title = f"Score of {self.model} (clusters within {scores['model'].tolerance:g})"
        terminal.print_table(title, columns, rows)

    def _ground_truth(self, model: "LaplacianRepresentation") -> "LaplacianRepresentation":
        from lapwing.environments import world_from_description
        from lapwing.representation import load
        from lapwing.solving import solve
        from lapwing.storage.models import MANIFEST

        if self.truth is not None and (Path(self.truth) / MANIFEST).is_file():
            return load(self.truth)
        world = world_from_description(model.metadata.get("world"))
        if self.truth is not None:
            observation = getattr(world, "observation", None)
            return solve(self.truth, model.dim, observation=observation, layouts=self.layouts)
        if world is None:
            raise ArgumentError("the model has no record of its world; name one with --truth")
        return solve(world, model.dim)
