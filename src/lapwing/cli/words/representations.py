"""Representations: ``lapwing solve``, ``learn`` and ``score``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from lapwing.cli.words.options import Flag, LayoutsFolder, Observation, PolicyFile, Runnable, Slip, option

Sink = Literal["tensorboard", "wandb"]


@dataclass(frozen=True)
class Solve(Runnable):
    """Solve exactly, or by counting where a data set is given; write spectrum and pictures.

    Example: lapwing solve FourRooms --dim 11 --definition "successor(0.9)"
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A world's name, a rule, a .txt layout, a data folder, or a .npy row-stochastic matrix."""
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
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    out: Annotated[Path | None, option("DIR", "runs/solve-SOURCE")] = None
    """Folder to write."""
    json: Flag = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Learn(Runnable):
    """Learn a representation from a world's experience, its exact operator, or a data set.

    Example: lapwing learn Rooms-16 --dim 11 --out demo
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help_behavior_hint="")] = ""
    """A world's name, a rule, a .txt layout, gym:ID, or a data folder."""
    resume: Annotated[Path | None, option("RUN", "none")] = None
    """Go on with a run that was interrupted, however it was; the end is the same to the last bit. No other words."""
    dim: int = 11
    """How many components."""
    preset: Literal["default", "paper", "pixels"] = "default"
    """What the other options start from."""
    exact: Flag = False
    """Learn from the exact operator of the world instead of experience."""
    data_steps: int = 1_000_000
    """Transitions to collect where no data folder is given."""
    steps: Annotated[int | None, option("N", "the preset's")] = None
    """Gradient steps at most."""
    all_steps: Flag = False
    """Make all of them, converged or not."""
    seed: int = 0
    """Of collection and of learning."""
    seeds: int = 1
    """How many seeds to learn in one program, from --seed on; of several, each is a run of its own in OUT/seed-N."""
    objective: Annotated[str | None, option("NAME", "allo")] = None
    """allo, ggdo, gdo or quadratic_penalty."""
    encoder: Annotated[str | None, option("NAME", "by the shape of observations")] = None
    """fourier, mlp, conv or table."""
    batches: Annotated[str | None, option("KIND", "exact where observations repeat")] = None
    """exact, sampled (the paper's) or unbiased."""
    discounts: Annotated[tuple[float, ...] | None, option("G...", "the preset's")] = None
    """Discounts of the gaps; several are mixed."""
    batch_size: Annotated[int | None, option("N", "1024")] = None
    """Pairs per step, where batches are sampled."""
    barrier: Annotated[float | None, option("B", "the preset's")] = None
    """Barrier coefficient at the start."""
    barrier_rate: Annotated[float | None, option("R", "the preset's")] = None
    """Growth of the barrier."""
    dual_rate: Annotated[float | None, option("R", "the preset's")] = None
    """Step of the dual ascent."""
    learning_rate: Annotated[float | None, option("R", "the preset's")] = None
    """Of Adam, at the start."""
    refine: Annotated[str | None, option("{ritz,none}", "the preset's")] = None
    """Rotate inside the learned span at the end, or not."""
    log_every: Annotated[int | None, option("N", "the preset's")] = None
    """Steps between reports."""
    observation: Observation = None
    """What is observed in a grid."""
    slip: Slip = None
    """Probability that a random move replaces the chosen one, in a grid."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    out: Annotated[Path | None, option("DIR", "runs/learn-SOURCE")] = None
    """Folder to write."""
    again: Flag = False
    """Begin anew where the folder holds a run that was interrupted."""
    log: Annotated[tuple[Sink, ...], tyro.conf.UseAppendAction, option("{tensorboard,wandb}", "none")] = ()
    """Write metrics there too, into the run's folder; may be given twice. wandb stays offline unless WANDB_MODE says
    otherwise."""
    no_report: Flag = False
    """Leave out report.html, the page that shows the run."""
    json: Flag = False
    """Print JSON instead of tables."""


@dataclass(frozen=True)
class Score(Runnable):
    """Score a saved representation against the exact one, beside the counting estimate.

    Example: lapwing score runs/solve-data --truth Rooms-16 --data data
    """

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a saved representation."""
    truth: Annotated[str | None, option("WORLD|MODEL", "the world the model names")] = None
    """A world's name or a folder of a saved representation."""
    data: Annotated[Path | None, option("DATA", "none")] = None
    """Data folder, for the counting estimate as a yardstick."""
    definition: str = "successor(0.9)"
    """In which to compare eigenvalues."""
    tolerance: Annotated[float | None, option("X", "1e-6 exact, 0.01 from data")] = None
    """Relative width within which eigenvalues count as one."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    json: Flag = False
    """Print JSON instead of a table."""
