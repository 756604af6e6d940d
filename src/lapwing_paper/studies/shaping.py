"""Rewards shaped by distances in the representation (Wu, Tucker & Nachum, 2019, and psi beside their phi)."""

import numpy as np

from lapwing_paper.drawings import StudyFigure
from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import mean_and_std, welch
from lapwing_paper.shaping_tasks import REWARDS
from lapwing_paper.studies.learning_curves import bands_note, panel
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.study_worlds import StudyWorld
from lapwing_paper.tables import MISSING, ResultTable, number, p_value

DIM = 20
PSI, POTENTIAL = "mix with psi", "potential of psi"
POTENTIAL_STEPS = 10_000

# Read off the published curves, one run each: the return that they are compared at, and when each reward reaches it.
THRESHOLDS = {"HardMaze": -21.0, "TwoRoom": -15.0}
PUBLISHED = {
    "HardMaze": {"sparse": 28_000, "l2": 26_000, "rawmix": 21_000, "mix with phi": 9_000},
    "TwoRoom": {"sparse": 14_500, "l2": 26_000, "rawmix": 13_000, "mix with phi": 8_000},
}
OTHER_MARGIN = 2.0


def methods(plan: Plan) -> Methods:
    """Every reward.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings.
    """
    for name in REWARDS:
        steps = min(plan.scale.steps, POTENTIAL_STEPS) if name == POTENTIAL else plan.scale.steps
        yield name, {"reward": name, "steps": steps, "dim": DIM, "transitions": plan.scale.transitions}


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """When each reward reaches the threshold, where it ends, and whether psi is better.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per world and reward.
    """
    records = []
    for world in plan.worlds:
        optimum = mean_and_std(results.values("optimum", world.label)[:1]).mean
        threshold = _threshold(world, optimum)
        published = PUBLISHED.get(world.paper_name, {}) if world.is_the_papers else {}
        psi = results.values("mean_return", world.label, PSI)
        for name in REWARDS:
            steps, returns = results.curves("return", world.label, name)
            means = results.values("mean_return", world.label, name)
            compared = name not in (PSI, POTENTIAL) and len(means) and len(psi)
            test = welch(psi, means) if compared else None
            records.append(
                {
                    "world": world.label,
                    "reward": name,
                    "threshold": number(threshold, 1),
                    "reached, published": _thousands(published.get(name)),
                    "reached": _reached(steps, returns.mean(axis=0), threshold) if len(steps) else MISSING,
                    "reached, first to last seed": _range(steps, returns, threshold),
                    "return at 9,000": number(_at(steps, returns, 9_000), 1),
                    "at the end": _with_spread(results.values("final_return", world.label, name)),
                    "optimum": number(optimum, 2),
                    "mean over training": _with_spread(means),
                    "t of psi": number(test.statistic if test else None, 1),
                    "p": p_value(test.p_value if test else None),
                }
            )
    notes = (
        "Returns are of the sparse reward, in an episode of 50 steps, by the greedy policy, from every start; mean "
        "(standard deviation) over seeds. Published: read off curves of one run each.",
        "Reached: training steps after which the mean curve is first at the threshold; then the earliest and the "
        "latest seed.",
        "t of psi: Welch's one-sided test whether the mean over training is larger with mix with psi. The potential "
        f"is trained for {POTENTIAL_STEPS:,} steps at most.",
        plan.layouts_note,
    )
    return [ResultTable("shaping", plan.title, records, notes)]


def figures(plan: Plan, results: Results) -> list[StudyFigure]:
    """Learning curves, one panel per world.

    Args:
        plan: of the study.
        results: its finished runs.

    Returns:
        One figure.
    """
    panels = tuple(panel(results, "return", world, REWARDS) for world in plan.labels)
    description = (
        f"Return of the greedy policy over training steps, one line per reward; {bands_note(plan)}. With psi, mixed or "
        "as a potential, the agent is near the optimum first."
    )
    return [StudyFigure("curves", plan.title, panels, 2, "training steps", "return", description)]


def _threshold(world: StudyWorld, optimum: float) -> float:
    known = THRESHOLDS.get(world.paper_name) if world.is_the_papers else None
    return optimum - OTHER_MARGIN if known is None else known


def _first(steps: np.ndarray, curve: np.ndarray, threshold: float) -> float | None:
    """The first step at which a curve is at the threshold."""
    there = np.flatnonzero(curve >= threshold)
    return float(steps[there[0]]) if len(there) else None


def _reached(steps: np.ndarray, curve: np.ndarray, threshold: float) -> str:
    found = _first(steps, curve, threshold)
    return f"not by {steps[-1]:,.0f}" if found is None else _thousands(found)


def _range(steps: np.ndarray, returns: np.ndarray, threshold: float) -> str:
    """When the first and the last seed got there."""
    found = [_first(steps, curve, threshold) for curve in returns]
    known = sorted(step for step in found if step is not None)
    if not known:
        return MISSING
    last = _thousands(known[-1]) if len(known) == len(found) else f"{len(found) - len(known)} never"
    return f"{_thousands(known[0])} to {last}"


def _at(steps: np.ndarray, returns: np.ndarray, step: int) -> float:
    there = np.flatnonzero(steps == step)
    return float(returns[:, there[0]].mean()) if len(there) else float("nan")


def _thousands(step: float | None) -> str:
    return MISSING if step is None else f"{step:,.0f}"


def _with_spread(values: np.ndarray) -> str:
    found = mean_and_std(values)
    spread = "" if np.isnan(found.std) else f" ({number(found.std, 2)})"
    return f"{number(found.mean, 2)}{spread}"


STUDY = Study(
    name="shaping",
    title="Rewards shaped by distances in the representation",
    paper="",
    worlds=("HardMaze", "TwoRoom"),
    quick=Scale(seeds=1, steps=12_000, transitions=30_000),
    full=Scale(seeds=5, steps=30_000, transitions=30_000),
    deviations=(
        "Protocol of Wu, Tucker & Nachum (2019), as in the authors' own re-implementation: five actions (four moves "
        "and stay), episodes of 50 steps from random starts, reward -1 until at the goal and 0 there; DQN with three "
        "layers of 256 units on coordinates, batches of 128, discount 0.98, 20 % random actions, Adam with rate 1e-3, "
        "a target network moved by 5 % every 50 steps, 10,000 random transitions first, one new transition per step.",
        "Rewards: `l2` is minus the distance in coordinates; `rawmix` is the mean of that and of the sparse reward; "
        "`mix` is the mean of minus a distance in the representation and of the sparse reward. `u` are components with "
        "mean square 1, `psi` are u / sqrt(lambda); both distances are divided by their root mean square. `potential` "
        "adds 0.98 Phi(s') - Phi(s) to the sparse reward, where Phi is -20 times the same distance of psi.",
        "`phi` is what the published objective has as its minimum, computed from our eigenpairs: phi_i = sqrt(n_i) u_i "
        "with n_i = max(0, 1/20 - lambda_i / w), lambda of geometric lags with discount 0.9 and w = 1 in HardMaze, 5 "
        "elsewhere. The penalty leaves only the slowest components, so that it is a low-pass filter like psi, "
        "unlike u.",
        "Representations: 20 components learned with the default preset from 30,000 transitions of a random walk with "
        "four moves, anew for each seed; a fifth that stays changes all eigenvalues by one factor, which is put in "
        "where it matters.",
        "Tests are exact: the mean over all starts instead of 50 random episodes. The agent's action comes from the "
        "network before the step's gradient is added.",
        "HardMaze and TwoRoom are read from --layouts; without it worlds of our own stand in, whose goal is the state "
        "with the longest shortest paths to it on average, and whose threshold is the optimum less 2.",
    ),
    methods=methods,
    tables=tables,
    figures=figures,
    task="shaping",
)
