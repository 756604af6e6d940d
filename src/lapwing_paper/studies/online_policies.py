"""Representations that follow a policy while it is learned (AGDO: Ahmed, Bhargav & Ghasemi, 2025)."""

from typing import Any

from lapwing_paper.drawings import LinePanel, StudyFigure
from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import mean_and_std
from lapwing_paper.studies.learning_curves import band, bands_note, panel
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable, number, sample_cell

WINDOW, LONG_WINDOW = 10_000, 50_000
UPDATES, AGDO_UPDATES = 10, 100

DEFAULT, LONG, RESERVOIR, FROZEN = "default", "default, 50,000 states", "reservoir", "frozen"
BARRIERS = (1.0, 2.5, 10.0)
AGDO = "AGDO, b = 2.5"
SEEN = {DEFAULT: "sees default", RESERVOIR: "sees reservoir", FROZEN: "sees frozen"}
AGENTS = {"coordinates": DEFAULT} | {f"and {own}": seen for own, seen in SEEN.items()}
ONLY_IN_FULL = (LONG, "AGDO, b = 1", "AGDO, b = 10")

OPTIONS = {"batch_size": 256}
# Their graph term lacks its half, so that their barrier of 5 is 2.5 here. A discount near 0 makes all lags 1.
AGDO_OPTIONS = {
    **OPTIONS,
    "fit": False,
    "objective": "agdo",
    "oversampling": 0,
    "discounts": [1e-6],
    "encoder": "mlp",
    "hidden": [256, 256, 256],
    "scale_inputs": False,
    "learning_rate": 1e-3,
    "refine": "none",
}


def methods(plan: Plan) -> Methods:
    """Learners that follow an agent which sees coordinates, and agents that see what some of them learn.

    Args:
        plan: gives the size of the study; the quick version has fewer of them.

    Returns:
        Labels and settings.
    """
    own: dict[str, Any] = {"steps": plan.scale.steps, "window": WINDOW, "updates": UPDATES, "options": OPTIONS}
    learners = {DEFAULT: own, LONG: own | {"window": LONG_WINDOW}}
    for barrier in BARRIERS:
        options = {**AGDO_OPTIONS, "barrier": barrier}
        learners[f"AGDO, b = {barrier:g}"] = own | {"options": options, "updates": AGDO_UPDATES}
    learners[FROZEN] = own | {"updates": 0}
    rows = {label: settings | {"seen": False} for label, settings in learners.items()}
    learners[RESERVOIR] = own | {"options": {**OPTIONS, "keep": "reservoir"}}
    rows |= {SEEN[label]: learners[label] | {"seen": True} for label in SEEN}
    return [(label, settings) for label, settings in rows.items() if plan.is_full or label not in ONLY_IN_FULL]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """How near each representation is to that of the present policy, beside counting; and what agents get.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        A table of cosines and one of returns.
    """
    labels = [label for label, _ in methods(plan)]
    followed = [
        _cosines(results, world, label) for world in plan.labels for label in labels if label not in SEEN.values()
    ]
    returns = [_returns(results, world, name, label) for world in plan.labels for name, label in AGENTS.items()]
    notes = (
        "Cosines with the eigenvectors of the present policy, means over the last 50,000 steps, mean (standard "
        "deviation) over seeds; the agent sees coordinates, so that all rows of a world are about the same states. "
        "Counting: eigenvectors solved from the states that the learner holds at that moment.",
        "Eigenspaces: eigenvalues within 1 % of each other are compared as one space. Published for AGDO: cosines of "
        "about 0.7 to 0.9, read off figures.",
        plan.layouts_note,
    )
    explained = (
        "Expected sum of rewards in an episode as a share of the largest possible one: over the last 50,000 steps, and "
        "over all steps; mean (standard deviation) over seeds.",
    )
    return [
        ResultTable("online-policies", plan.title, followed, notes),
        ResultTable("online-returns", "Returns of agents by what they see", returns, explained),
    ]


def _cosines(results: Results, world: str, label: str) -> dict[str, str]:
    cosines, counted = (results.values(name, world, label) for name in ("cosine", "counting_cosine"))
    return {
        "world": world,
        "representation": label,
        "cosine": sample_cell(cosines),
        "counting": sample_cell(counted),
        "less counting": number(mean_and_std(cosines - counted).mean),
        "eigenspaces": sample_cell(results.values("subspace_cosine", world, label)),
        "counting, eigenspaces": sample_cell(results.values("counting_subspace_cosine", world, label)),
    }


def _returns(results: Results, world: str, name: str, label: str) -> dict[str, str]:
    return {
        "world": world,
        "the agent sees": name,
        "optimum": number(mean_and_std(results.values("optimum", world, label)).mean, 1),
        "return": sample_cell(results.values("return_share", world, label)),
        "over training": sample_cell(results.values("mean_return_share", world, label)),
    }


def figures(plan: Plan, results: Results) -> list[StudyFigure]:
    """Cosines and returns over the agent's steps, one panel per world.

    Args:
        plan: of the study.
        results: its finished runs.

    Returns:
        Two figures.
    """
    followed = []
    for world in plan.labels:
        counted = band(results, "counting_cosine", world, DEFAULT, "counting", highlighted=False)
        learned = panel(results, "cosine", world, (DEFAULT, AGDO, FROZEN)).lines
        followed.append(LinePanel(world, (*learned, *([counted] if len(counted.x) else []))))
    agents, names = list(AGENTS.values()), list(AGENTS)
    returns = tuple(panel(results, "return_share", world, agents, labels=names) for world in plan.labels)
    cosine = (
        f"Cosine with the eigenvectors of the present policy over the agent's steps; {bands_note(plan)}. The lines "
        "of our default and of counting on the states that it holds lie on each other."
    )
    reward = (
        f"Return as a share of the largest possible one over the agent's steps, by what the agent sees; "
        f"{bands_note(plan)}."
    )
    limits, steps = (0.0, 1.02), "steps of the agent"
    return [
        StudyFigure("cosines", plan.title, tuple(followed), 2, steps, "cosine", cosine, limits),
        StudyFigure("returns", plan.title, returns, 2, steps, "share of the optimal return", reward, limits),
    ]


STUDY = Study(
    name="online-policies",
    title="Representations that follow a policy while it is learned",
    paper="",
    worlds=("GridRoom-1", "GridRoom-4", "GridMaze-9", "GridMaze-11"),
    quick=Scale(seeds=1, steps=100_000, transitions=0),
    full=Scale(seeds=5, steps=200_000, transitions=0),
    deviations=(
        "Protocol of Ahmed, Bhargav & Ghasemi (AGDO, 2025), from their code where their paper leaves it open: four "
        "moves, replaced by a random one with probability 0.3; the goal is a random state, another one for each seed; "
        "a step from the goal is rewarded with 1 and leads to any state; episodes of 1,000 steps from random starts. "
        "Coordinates are observed.",
        "Agent: PPO with two networks of 64 and 64 units, rollouts of 500 steps with 10 gradient steps each on the "
        "whole rollout, Adam with rate 3e-4, gradients clipped at norm 0.5, discount 0.99, entropy weight 0.01, value "
        "weight 0.5, a clip range of 0.2 in the first half that falls to 0.01 in the second; no update in the first "
        "10,000 steps. Here advantages are generalised ones with lambda 0.95; their code sums rewards to the end of "
        "the rollout.",
        "In the authors' code the agent sees coordinates, and the copy of the encoder that is refreshed every 1,000 "
        "steps is not used; so here, and all learners follow the same agent. In rows that say so the agent sees the 11 "
        "components too, refreshed every 1,000 steps and each time turned, inside their span, to what it saw before.",
        "`default`: lapwing.OnlineLearner as it is, with a window of 10,000 states, batches of 256 and 10 updates in "
        "1,000 steps. `AGDO`: its objective without duals and with a fixed barrier b (2.5 here is 5 in their units), a "
        "network of three layers of 256 on coordinates, batches of 256 pairs of consecutive states, whose halves are "
        "the two constraint batches, Adam with rate 1e-3; 100 updates in 1,000 steps, where the authors' code makes "
        "5,000. `reservoir`: the default with a uniform sample of 10,000 of all states until then, instead of the last "
        "ones; what it learns is the mixture of all policies until then. `frozen`: lapwing.learn on the first 10,000 "
        "states, whose policy is almost uniform, and no update after that.",
        "Ground truth: pairs (s, s') inside episodes of T = 1,000 states, counted both ways, have the expected flow "
        "C = (diag(v) P + P^T diag(v)) / 2 with P the matrix of the present policy and v the mean distribution of the "
        "first states of pairs; the operator is diag(rho)^-1 C, with rho = (v + vP) / 2 the weights of the cosine. "
        "All of this is computed from the dynamics and the policy's probabilities. AGDO's ground truth, (P + P*)/2 in "
        "the stationary distribution, is the limit of long episodes.",
    ),
    methods=methods,
    tables=tables,
    figures=figures,
    task="online-policies",
)
