"""``lapwing solve``: exact eigenvectors, or those of a counted data set."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import (
    Flag,
    LayoutsFolder,
    Observation,
    PolicyFile,
    Slip,
    file_name,
    is_data,
    option,
    read_data,
    typed_command,
)


@dataclass(frozen=True)
class SolveCommand:
    """Solve exactly, or by counting where a data set is given; write spectrum and pictures.

    Example: lapwing solve FourRooms --dim 11 --definition "successor(0.9)"
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A world's name, a rule, a .txt layout, a data folder, or a .npy row-stochastic matrix."""
    parts: Annotated[tuple[str, ...], tyro.conf.Positional, option("PART...", "none")] = ()
    """Further folders of a data set in several parts, which are counted together."""
    dim: int = 11
    """How many eigenvectors."""
    definition: str = "one_step"
    """one_step, successor(g), geometric(g) or truncated(g, T)."""
    observation: Observation = None
    """What is observed in a grid."""
    slip: Slip = None
    """Probability that a random move replaces the chosen one, in a grid."""
    policy: PolicyFile = None
    """Table (states, 4) of move probabilities, in a grid."""
    rho: Annotated[Literal["uniform"] | None, option("{uniform}", "the stationary distribution")] = None
    """Inner product; uniform is the paper's."""
    engine: Annotated[str, option("{auto,scipy,multilevel,slepc,slepc:N}", "auto")] = "auto"
    """Which eigensolver: scipy up to 2,000,000 states, multilevel beyond, slepc in N processes under mpirun."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    on: Annotated[str, option("local|ray|ray://HOST:PORT", "local")] = "local"
    """Where the parts of a data set are counted: in this process, or on a Ray cluster."""
    out: Annotated[Path | None, option("DIR", "runs/solve-SOURCE")] = None
    """Folder to write."""
    json: Flag = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        """Solve and write the run."""
        from lapwing.cli.results import exit_code, print_spectrum, run_facts, show_problems
        from lapwing.data import TransitionCounts
        from lapwing.report.run_folder import refuse_foreign, write_run
        from lapwing.storage.folders import locked
        from lapwing.storage.reading import read_array
        from lapwing.storage.run_configuration import refuse_unfinished, remove_configuration

        source, label = self._source()
        out = self.out or Path("runs") / f"solve-{file_name(label)}"
        refuse_foreign(out)
        with locked(out), terminal.spinner(f"solving {label}") as say:
            refuse_unfinished(out)
            names = ("definition", "observation", "slip", "rho", "layouts", "engine")
            options: dict[str, Any] = {name: getattr(self, name) for name in names}
            policy = None if self.policy is None else read_array(self.policy)
            model = lw.solve(source, self.dim, policy=policy, say=say, **options)
            data = source if isinstance(source, (lw.Trajectories, TransitionCounts)) else None
            written = write_run(model, out, data=data, command=typed_command())
            remove_configuration(out)
        if self.json:
            terminal.print_json(run_facts(model, label, out, written))
            return exit_code(model)
        print_spectrum(model, label)
        for path in written:
            print(f"wrote {path}")
        show_problems(model)
        return exit_code(model)

    def _source(self) -> tuple[Any, str]:
        """What to solve, and a label for it."""
        from lapwing.storage.reading import read_array

        path = Path(self.source)
        if self.parts or self.on != "local":
            with terminal.spinner(f"counting {1 + len(self.parts)} part(s)"):
                return lw.count([self.source, *self.parts], on=self.on), path.resolve().name
        if is_data(path):
            return read_data(path), path.resolve().name
        if path.suffix == ".npy":
            return read_array(path), path.stem
        return self.source, self.source
