"""Every objective with every read-out, from exact and from sampled batches (ours)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing_paper.read_out_tasks import DEFAULT, RAW, READ_OUTS, RITZ
from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import mean_and_std
from lapwing_paper.studies.horizons import WANTED, steps_to
from lapwing_paper.studies.methods import DIM, Settings
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.study_worlds import TWELVE_WORLDS, StudyWorld
from lapwing_paper.tables import MISSING, ResultTable, number, percent, sample_cell

CONTINUOUS_WORLDS = ("UMaze", "ContinuousFourRooms", "LShape")
SENSITIVITY_WORLDS = ("GridMaze-19",)
QUICK_WORLDS = ("GridMaze-9", "GridMaze-19", "UMaze")

WAYFARER = {"barrier": 0.25, "barrier_rate": 0.0, "dual_rate": 5e-5, "initial_dual": -1.0, "outputs": "symlog"}
OBJECTIVES: dict[str, Settings] = {
    "ALLO": {"objective": "allo"},
    "ALLO, Wayfarer's": {"objective": "allo", **WAYFARER},
    "AGDO": {"objective": "agdo"},
    "GGDO": {"objective": "ggdo"},
    "GDO": {"objective": "gdo"},
    "OMM": {"objective": "omm"},
    "OMM, order 2": {"objective": "omm", "order": 2},
    "NestedLoRA": {"objective": "nested_lora"},
    "NeuralEF": {"objective": "neural_ef"},
    "mu-EigenGame": {"objective": "neural_ef", "unbiased": True},
    "VAMP-2": {"objective": "vamp2"},
    "spectral contrastive": {"objective": "spectral_contrastive"},
}
JOINT = {
    "OMM, joint": {"objective": "omm", "sequential": False},
    "NestedLoRA, joint": {"objective": "nested_lora", "sequential": False},
}

# The one hyper-parameter of each and its default; of those that have none, Adam's rate.
RATE = ("learning_rate", 2e-3)
PARAMETERS: dict[str, tuple[str, float]] = {
    "ALLO": ("barrier", 1.0),
    "AGDO": ("barrier", 2.5),
    "GGDO": ("barrier", 2.0),
    "GDO": ("barrier", 2.0),
    "OMM": ("shift", 1.0),
    "NestedLoRA": RATE,
    "NeuralEF": RATE,
    "mu-EigenGame": RATE,
    "VAMP-2": ("ridge", 1e-4),
    "spectral contrastive": RATE,
}
FACTOR = 4.0

EXACT, SAMPLED = KINDS = ("exact", "sampled")
BATCHES: dict[str, Settings] = {
    EXACT: {"batches": "exact"},
    SAMPLED: {"batches": "unbiased", "batch_size": 256, "separate_constraints": True},
}
REFITTED = "ALLO, then refitted"
# The baseline of continuous worlds, for two numbers of cells: few have little noise, many have little bias.
CELLS = {f"{cells:,} k-means cells, counted": cells for cells in (500, 2000)}

# Mean cosines that differ by less count as equal in the advice.
EQUAL = 0.002


def methods(plan: Plan) -> Methods:
    """Every objective with exact and with sampled batches, and their variants of the sensitivity.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels ``OBJECTIVE, KIND`` and ``OBJECTIVE, PARAMETER x FACTOR``, with settings.
    """
    steps = plan.scale.steps
    common = {"dim": DIM, "steps": steps, "log_every": max(1, steps // 10)}

    def run(options: Settings) -> Settings:
        return {"transitions": plan.scale.transitions, "options": {**common, **options}}

    found = [
        (f"{name}, {kind}", run({**own, **BATCHES[kind]})) for kind in KINDS for name, own in _objectives(plan).items()
    ]
    found += [(REFITTED, run({}))]
    counted = {"transitions": plan.scale.transitions, "options": {"dim": DIM}}
    found += [(label, {**counted, "cells": cells}) for label, cells in CELLS.items()]
    for name, (parameter, default) in PARAMETERS.items():
        for factor in (1 / FACTOR, FACTOR):
            changed = {parameter: default * factor, **BATCHES[SAMPLED]}
            found.append((_varied(name, factor), run({**OBJECTIVES[name], **changed})))
    return found


def covers(world: StudyWorld, method: str) -> bool:
    """Exact batches need states that repeat; what the sensitivity needs is run in a few worlds.

    Args:
        world: one of the study.
        method: the label of a method.

    Returns:
        Whether it is run there.
    """
    if method == REFITTED or method in CELLS:
        return _is_continuous(world)
    if method.endswith(tuple(KINDS)):
        return method.endswith(SAMPLED) or not _is_continuous(world)
    return world.paper_name in SENSITIVITY_WORLDS


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """By world, over worlds, sensitivity, and advice.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        Up to six tables; those of worlds that were not asked for are left out.
    """
    grids = [world for world in plan.worlds if not _is_continuous(world)]
    continuous = [world for world in plan.worlds if _is_continuous(world)]
    found = [_by_world(plan, results, kind) for kind in KINDS]
    found += [_over_worlds(plan, results, grids, "over-grids", "the grid worlds", KINDS)] if grids else []
    if continuous:
        found.append(_over_worlds(plan, results, continuous, "over-continuous", "the continuous worlds", (SAMPLED,)))
    sensitive = [world.label for world in plan.worlds if world.paper_name in SENSITIVITY_WORLDS]
    found += [_sensitivity(plan, results, sensitive)] if sensitive else []
    return [*found, _advice(plan, results, *([world.label for world in part] for part in (grids, continuous)))]


def _is_continuous(world: StudyWorld) -> bool:
    return world.world.num_states is None


def _objectives(plan: Plan) -> dict[str, Settings]:
    return {**OBJECTIVES, **JOINT} if plan.is_full else OBJECTIVES


def _varied(name: str, factor: float) -> str:
    return f"{name}, {PARAMETERS[name][0]} x {factor:g}"


def _by_world(plan: Plan, results: Results, kind: str) -> ResultTable:
    """Subspace cosines of the default read-out, a column per objective, beside counting."""
    names = _objectives(plan)
    records = []
    for world in plan.worlds:
        counted = results.values("counting_subspace_cosine", world.label)
        cells = {
            name: sample_cell(results.values("default_subspace_cosine", world.label, f"{name}, {kind}"))
            for name in names
        }
        records.append({"Env": world.label, **cells, "counting": number(mean_and_std(counted).mean)})
    notes = (
        f"{DIM} components, {plan.scale.steps:,} steps with {kind} batches, {plan.scale.transitions:,} transitions, "
        f"{plan.scale.seeds} seed(s): subspace cosine (clusters within 1 %) of the default read-out. Counting: "
        "transitions of the same data counted and diagonalised, where states repeat; for continuous worlds see the "
        "table over these.",
        plan.layouts_note,
    )
    return ResultTable(f"by-world-{kind}", f"{plan.title}: default read-out, {kind} batches", records, notes)


def _over_worlds(
    plan: Plan, results: Results, worlds: list[StudyWorld], name: str, where: str, kinds: Iterable[str]
) -> ResultTable:
    """Means over worlds: each read-out, eigenvalue errors, and the time to the wanted cosine."""
    labels = [world.label for world in worlds]
    rows = [f"{objective}, {kind}" for kind in kinds for objective in _objectives(plan)]
    baselines = CELLS if any(_is_continuous(world) for world in worlds) else {}
    rows += [REFITTED, *baselines] if baselines else []
    records = []
    for method in rows:
        steps, seconds = _times(results, labels, method)
        reached = np.isfinite(steps)
        records.append(
            {
                "method": method,
                **{f"{one}": number(_mean(results, f"{one}_subspace_cosine", labels, method)) for one in READ_OUTS},
                **{
                    f"{one}, the paper's metric": number(_mean(results, f"{one}_cosine", labels, method))
                    for one in (RAW, DEFAULT)
                },
                "own eigenvalues off by": _percent(results, f"{RAW}_eigenvalue_error", labels, method),
                f"{RITZ} off by": _percent(results, f"{RITZ}_eigenvalue_error", labels, method),
                f"{DEFAULT} off by": _percent(results, f"{DEFAULT}_eigenvalue_error", labels, method),
                f"worlds at {WANTED:g}": MISSING if method in CELLS else f"{int(reached.sum())} of {len(steps)}",
                "steps": _middle(steps, reached),
                "seconds": _middle(seconds, reached),
                "collapsed": str(sum("collapsed" in one.numbers for one in _runs(results, labels, method))),
            }
        )
    notes = (
        "Means over worlds of subspace cosines, of one training each: raw, the first outputs as they are; ritz, plain "
        f"Rayleigh-Ritz in the span of all outputs ({DIM} and 6 more) by single steps; default, the read-out of "
        "lapwing. Own eigenvalues are the objective's estimates from its last batch, mapped to one step.",
        f"Steps and seconds are medians over the worlds where the default read-out reaches {WANTED:g}, of one run with "
        "one thread, compilation included, beside whatever else the machine did.",
        *(
            ["Cells: k-means of the observations, then transitions between cells counted and solved."]
            if baselines
            else []
        ),
    )
    return ResultTable(name, f"{plan.title}: over {where}", records, notes)


def _sensitivity(plan: Plan, results: Results, worlds: list[str]) -> ResultTable:
    """Sampled batches with the one hyper-parameter four times smaller, as it is, and four times larger."""
    records = []
    for name, (parameter, default) in PARAMETERS.items():
        record = {"method": name, "parameter": f"{parameter} = {default:g}"}
        for factor in (1 / FACTOR, 1.0, FACTOR):
            method = f"{name}, {SAMPLED}" if factor == 1.0 else _varied(name, factor)
            for one in (RAW, DEFAULT):
                record[f"x {factor:g}, {one}"] = number(_mean(results, f"{one}_subspace_cosine", worlds, method))
        records.append(record)
    notes = (f"Subspace cosines, means over {' and '.join(worlds)}, sampled batches.",)
    return ResultTable("sensitivity", f"{plan.title}: sensitivity", records, notes)


def _advice(plan: Plan, results: Results, grids: list[str], continuous: list[str]) -> ResultTable:
    """Which objective to use when, as the tables say."""
    names = list(_objectives(plan))
    labels = {kind: {name: f"{name}, {kind}" for name in names} for kind in KINDS}
    read_outs = {RAW: "components as they are", DEFAULT: "the default read-out"}
    cases = [
        (f"{kind} batches, {words}", _best(results, f"{one}_subspace_cosine", grids, labels[kind]))
        for kind in KINDS
        for one, words in read_outs.items()
    ]
    if continuous:
        methods = {**labels[SAMPLED], REFITTED: REFITTED}
        when = f"continuous worlds, {read_outs[DEFAULT]}"
        cases.append((when, _best(results, f"{DEFAULT}_subspace_cosine", continuous, methods)))
    records = [{"when": when, "use": use, "mean cosine": mean} for when, (use, mean) in cases]
    for kind in KINDS:
        # First by the number of worlds where it gets there, then by the seconds that it takes.
        times = {name: _times(results, grids, f"{name}, {kind}")[1] for name in names}
        reached = {
            name: (np.isfinite(one).sum(), -np.nanmedian(one)) for name, one in times.items() if _any_finite(one)
        }
        fastest = max(reached, key=lambda name: reached[name], default=MISSING)
        use = f"{fastest} ({-reached[fastest][1]:.0f} s)" if reached else MISSING
        records.append({"when": f"{kind} batches, soonest at {WANTED:g}", "use": use, "mean cosine": MISSING})
    notes = (f"Over the grid worlds unless stated; all objectives within {EQUAL:g} of the best mean are named.",)
    return ResultTable("advice", f"{plan.title}: which to use when", records, notes)


def _best(results: Results, measure: str, worlds: list[str], methods: dict[str, str]) -> tuple[str, str]:
    """The names of the methods with the largest mean, and that mean; dashes where no run has finished."""
    means = {name: _mean(results, measure, worlds, label) for name, label in methods.items()}
    best = float(np.nanmax([*means.values(), -np.inf]))
    equal = [name for name, mean in means.items() if mean >= best - EQUAL]
    return ("; ".join(equal), number(best)) if equal else (MISSING, MISSING)


def _runs(results: Results, worlds: list[str], method: str) -> list[Any]:
    return [one for world in worlds for one in results.select(world, method)]


def _mean(results: Results, name: str, worlds: list[str], method: str) -> float:
    """The mean over worlds of the means over seeds; NaN where no run has finished."""
    means = [mean_and_std(results.values(name, world, method)).mean for world in worlds]
    known = [mean for mean in means if np.isfinite(mean)]
    return float(np.mean(known)) if known else np.nan


def _percent(results: Results, name: str, worlds: list[str], method: str) -> str:
    return percent(_mean(results, name, worlds, method))


def _times(results: Results, worlds: list[str], method: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Steps and seconds to the wanted cosine in every world that has runs; NaN where it is never reached."""
    shown = [world for world in worlds if results.select(world, method)]
    steps = np.array([steps_to(results, world, method)[0] for world in shown])
    last = np.array([_last_step(results, world, method) for world in shown])
    seconds = np.array([mean_and_std(results.values("seconds", world, method)).mean for world in shown])
    return steps, seconds * steps / last


def _last_step(results: Results, world: str, method: str) -> float:
    steps, _ = results.curves("cosine", world, method)
    return float(steps[-1]) if len(steps) else np.nan


def _any_finite(values: NDArray[np.float64]) -> bool:
    return bool(np.isfinite(values).any())


def _middle(values: NDArray[np.float64], reached: NDArray[np.bool_]) -> str:
    return f"{np.median(values[reached]):,.0f}" if reached.any() else MISSING


STUDY = Study(
    name="rivals",
    title="Objectives and read-outs compared",
    paper="",
    worlds=(*TWELVE_WORLDS, *CONTINUOUS_WORLDS),
    quick=Scale(seeds=1, steps=400, transitions=300_000),
    full=Scale(seeds=10, steps=4_000, transitions=1_000_000),
    deviations=(
        "All objectives share data, network, steps, Adam and its schedule (the default preset), and have 6 outputs "
        "more than components. They differ in the loss, and Wayfarer's in the symmetric logarithm of its outputs; its "
        "duals rise at the authors' rate, 5e-5 here.",
        "Exact batches are expectations over the counted transitions; sampled ones are 256 pairs and two separate "
        "batches of 256 states, so that what can be unbiased is.",
        "In continuous worlds nothing is refitted but in the row that says so.",
        "The full version adds the joint variants of OMM and NestedLoRA.",
    ),
    methods=methods,
    tables=tables,
    task="read-outs",
    covers=covers,
    quick_worlds=QUICK_WORLDS,
)
