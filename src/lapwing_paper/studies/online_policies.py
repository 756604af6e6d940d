"""Representations that follow a policy while it is learned (AGDO: Ahmed, Bhargav & Ghasemi, 2025)."""

from typing import Any

from lapwing_paper.drawings import LinePanel, StudyFigure
from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import mean_and_std
from lapwing_paper.studies.learning_curves import band, bands_note, panel
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable, number, percent, sample_cell

WINDOW, LONG_WINDOW = 10_000, 50_000
UPDATES, AGDO_UPDATES = 5, 50

DEFAULT, LONG, FROZEN, UNSEEN = "default", "default, 50,000 states", "frozen", "default, not seen"
BARRIERS = (0.5, 1.0, 2.5, 5.0, 10.0)
AGDO = "AGDO, b = 2.5"
QUICK_ROWS = (DEFAULT, AGDO, FROZEN, UNSEEN)

# Their graph term lacks its half, so that their barrier of 5 is 2.5 here. A discount near 0 makes all lags 1.
AGDO_OPTIONS = {
    "fit": False,
    "objective": "quadratic_penalty",
    "oversampling": 0,
    "discounts": [1e-6],
    "batches": "sampled",
    "batch_size": 256,
    "separate_constraints": True,
    "encoder": "mlp",
    "hidden": [256, 256, 256],
    "scale_inputs": False,
    "learning_rate": 1e-3,
    "refine": "none",
}


def methods(plan: Plan) -> Methods:
    """Our default, AGDO's objective with several barriers, a frozen representation, and one that the agent ignores.

    Args:
        plan: gives the size of the study; the quick version has four rows.

    Returns:
        Labels and settings.
    """
    own: dict[str, Any] = {"steps": plan.scale.steps, "window": WINDOW, "updates": UPDATES, "seen": True, "options": {}}
    rows: dict[str, dict[str, Any]] = {DEFAULT: own, LONG: own | {"window": LONG_WINDOW}}
    for barrier in BARRIERS:
        options = {**AGDO_OPTIONS, "barrier": barrier}
        rows[f"AGDO, b = {barrier:g}"] = own | {"options": options, "updates": AGDO_UPDATES}
    rows |= {FROZEN: own | {"updates": 0}, UNSEEN: own | {"seen": False}}
    return [(label, settings) for label, settings in rows.items() if plan.is_full or label in QUICK_ROWS]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """How near each representation is to that of the present policy, beside counting, and what the agent gets.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per world and learner.
    """
    records = []
    for world in plan.labels:
        for method, _ in methods(plan):
            cosines, counted = (results.values(name, world, method) for name in ("cosine", "counting_cosine"))
            records.append(
                {
                    "world": world,
                    "representation": method,
                    "cosine": sample_cell(cosines),
                    "counting": sample_cell(counted),
                    "less counting": number(mean_and_std(cosines - counted).mean),
                    "cosine of eigenspaces": sample_cell(results.values("subspace_cosine", world, method)),
                    "counting, eigenspaces": sample_cell(results.values("counting_subspace_cosine", world, method)),
                    "return": percent(mean_and_std(results.values("return_share", world, method)).mean),
                }
            )
    notes = (
        "Cosines with the eigenvectors of the present policy, means over the last 50,000 steps, mean (standard "
        "deviation) over seeds. Counting: eigenvectors solved from the states that the learner holds at the same "
        "moment of the same run. Published for AGDO: about 0.7 to 0.9, read off figures.",
        "Eigenspaces: eigenvalues within 1 % of each other are compared as one space.",
        "Return: expected sum of rewards in an episode as a share of the largest possible, over the same steps.",
        plan.layouts_note,
    )
    return [ResultTable("online-policies", plan.title, records, notes)]


def figures(plan: Plan, results: Results) -> list[StudyFigure]:
    """Cosines and returns over the agent's steps, one panel per world.

    Args:
        plan: of the study.
        results: its finished runs.

    Returns:
        Two figures.
    """
    shown = QUICK_ROWS[:3]
    followed = []
    for world in plan.labels:
        counted = band(results, "counting_cosine", world, DEFAULT, "counting, same states", highlighted=False)
        lines = (*panel(results, "cosine", world, shown).lines, *([counted] if len(counted.x) else []))
        followed.append(LinePanel(world, lines))
    returns = tuple(panel(results, "return_share", world, QUICK_ROWS) for world in plan.labels)
    cosine = (
        f"Cosine with the eigenvectors of the present policy over the agent's steps; {bands_note(plan)}. Our default "
        "stays with counting on the states that it holds."
    )
    reward = f"Return as a share of the largest possible one over the agent's steps; {bands_note(plan)}."
    limits = (0.0, 1.02)
    return [
        StudyFigure("cosines", plan.title, tuple(followed), 2, "steps of the agent", "cosine", cosine, limits),
        StudyFigure("returns", plan.title, returns, 2, "steps of the agent", "return", reward, limits),
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
        "The agent sees coordinates joined with the 11 components, which are refreshed every 1,000 steps and keep "
        "their signs from refresh to refresh. In the authors' code it sees coordinates alone, and the copy of the "
        "encoder that is refreshed every 1,000 steps is not used: `default, not seen` is that.",
        "`default`: lapwing.OnlineLearner as it is, with a window of 10,000 states and 5 updates per rollout. `AGDO`: "
        "its objective without duals and with a fixed barrier b (2.5 here is 5 in their units), network of three "
        "layers of 256 on coordinates, batches of 256 pairs of consecutive states, Adam with rate 1e-3; 50 updates "
        "per rollout, where the authors' code makes 2,500. `frozen`: lapwing.learn on the first 10,000 states, whose "
        "policy is almost uniform, and no update after that.",
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
