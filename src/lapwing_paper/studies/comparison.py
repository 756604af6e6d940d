"""What both comparisons of ALLO with GGDO share: tables with the paper's numbers beside ours, and figures."""

from collections.abc import Sized
from functools import partial

import numpy as np

from lapwing_paper.drawings import BarPanel, StudyFigure
from lapwing_paper.published_numbers import PublishedCosine, published_cosines
from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import Welch, aggregate, bootstrap_interval, holm, mean_and_std, welch
from lapwing_paper.studies.methods import ALLO_PAPER, GGDO_PAPER
from lapwing_paper.study import Plan
from lapwing_paper.study_worlds import StudyWorld
from lapwing_paper.tables import MISSING, ResultTable, mean_std, number, p_value, sample_cell

SIGNIFICANT = 0.01


def comparison_tables(plan: Plan, results: Results, ours: str, observation: str) -> list[ResultTable]:
    """The paper's table, ours beside the paper's mean, and aggregates over worlds.

    Args:
        plan: of the study.
        results: its finished runs.
        ours: the label of our own preset.
        observation: ``xy`` or ``pixels``.

    Returns:
        Three tables.
    """
    return [
        _as_in_the_paper(plan, results, observation),
        _beside_the_paper(plan, results, ours, observation),
        _aggregates(plan, results, (ours, ALLO_PAPER, GGDO_PAPER)),
    ]


def comparison_figures(plan: Plan, results: Results, names: tuple[str, str]) -> list[StudyFigure]:
    """Mean differences ALLO - GGDO over worlds, and component by component (paper, Figures 4A, 9 and 10).

    Args:
        plan: of the study.
        results: its finished runs.
        names: of the two figures.

    Returns:
        Two figures.
    """
    shown = [world for world in plan.labels if results.select(world, GGDO_PAPER)]
    tests = [_test(results, world) for world in shown]
    over_worlds = difference_bars("average over components", shown, tests)
    by_component = tuple(_component_bars(results, world) for world in shown)
    note = "Black bars: p < 0.01 (Welch, one-sided)."
    title, parts = (f"{plan.title}\nALLO - GGDO{what}. {note}" for what in (", paper preset", " by component"))
    return [
        StudyFigure(names[0], title, (over_worlds,), 1, "", "difference of cosines"),
        StudyFigure(names[1], parts, by_component, 4, "component", "difference"),
    ]


def difference_bars(title: str, labels: list[str], tests: list[Welch]) -> BarPanel:
    """Differences of means with their standard errors, black where significant, as the paper draws them.

    Args:
        title: of the panel.
        labels: of the bars.
        tests: one per bar.

    Returns:
        A panel.
    """
    return BarPanel(
        title,
        tuple(labels),
        np.array([test.difference for test in tests]),
        np.array([test.standard_error for test in tests]),
        tuple(bool(test.p_value < SIGNIFICANT) for test in tests),
    )


def _test(results: Results, world: str) -> Welch:
    return welch(*(results.values("cosine", world, method) for method in (ALLO_PAPER, GGDO_PAPER)))


def _component_bars(results: Results, world: str) -> BarPanel:
    samples = [results.values("cosines", world, method) for method in (ALLO_PAPER, GGDO_PAPER)]
    components = range(max(sample.shape[1] if len(sample) else 0 for sample in samples))
    tests = [welch(*(sample[:, i] if len(sample) else sample for sample in samples)) for i in components]
    return difference_bars(world, [str(i + 1) for i in components], tests)


def _as_in_the_paper(plan: Plan, results: Results, observation: str) -> ResultTable:
    """ALLO against GGDO with the paper's settings, metric and test."""
    tests = [_test(results, world) for world in plan.labels]
    adjusted = holm([test.p_value for test in tests])
    records = []
    for world, test, corrected in zip(plan.worlds, tests, adjusted, strict=True):
        allo, ggdo = (results.values("cosine", world.label, method) for method in (ALLO_PAPER, GGDO_PAPER))
        published = _published(world, observation)
        records.append(
            {
                "Env": world.label,
                "seeds": seeds_cell(allo, ggdo),
                "ALLO": sample_cell(allo, bold=bool(test.p_value < SIGNIFICANT) and test.difference > 0),
                "GGDO": sample_cell(ggdo),
                "t-statistic": number(test.statistic, 3),
                "p-value": p_value(test.p_value),
                "Holm p": p_value(float(corrected)),
                "ALLO, published": mean_std(published.allo_mean, published.allo_std, published.p_value < SIGNIFICANT),
                "GGDO, published": mean_std(published.ggdo_mean, published.ggdo_std),
                "t, published": number(published.t_statistic, 3),
            }
        )
    notes = (
        f"Paper preset, {plan.scale.steps:,} steps, {plan.scale.transitions:,} transitions: average cosine similarity "
        "as the paper computes it, mean (standard deviation). Welch's t test, one-sided (ALLO larger); bold where "
        f"p < {SIGNIFICANT:g}. Published: 200,000 steps and 60 seeds.",
        plan.layouts_note,
    )
    name = "table-1" if observation == "xy" else "table-2"
    return ResultTable(name, f"{plan.title}: ALLO against GGDO", records, notes)


def seeds_cell(*samples: Sized) -> str:
    """How many seeds each of several methods has.

    Args:
        samples: the runs of each method, or a number of each of them.

    Returns:
        One number where all have as many, else the numbers in order; a dash where none has any.

    Example:
        >>> seeds_cell([0.9, 0.8], [0.7, 0.9]), seeds_cell([0.9, 0.8], []), seeds_cell([], [])
        ('2', '2, 0', '–')
    """
    counts = [len(sample) for sample in samples]
    if not any(counts):
        return MISSING
    return str(counts[0]) if len(set(counts)) == 1 else ", ".join(map(str, counts))


def _published(world: StudyWorld, observation: str) -> PublishedCosine:
    """The paper's row about this very world; NaN where it has none."""
    unknown = PublishedCosine(*(np.nan for _ in PublishedCosine._fields))
    return published_cosines(observation).get(world.paper_name, unknown) if world.is_the_papers else unknown


def _beside_the_paper(plan: Plan, results: Results, ours: str, observation: str) -> ResultTable:
    records = []
    for world in plan.worlds:
        values = partial(results.values, world=world.label, method=ours)
        subspace, cosine = values("subspace_cosine"), values("cosine")
        low, high = bootstrap_interval(subspace)
        theirs = _published(world, observation).allo_mean
        records.append(
            {
                "Env": world.label,
                f"{ours}, eigenspaces": sample_cell(subspace),
                "95 % bootstrap": f"{number(low)} to {number(high)}" if len(subspace) > 1 else MISSING,
                "worst seed": number(float(subspace.min()) if len(subspace) else None),
                "the paper's metric": sample_cell(cosine),
                "counting, eigenspaces": number(mean_and_std(values("counting_subspace_cosine")).mean),
                "counting, the paper's metric": number(mean_and_std(values("counting_cosine")).mean),
                "ALLO, published": number(theirs),
                "eigenspaces - published": signed(mean_and_std(subspace).mean - theirs),
                "the paper's metric - published": signed(mean_and_std(cosine).mean - theirs),
                "seconds": number(mean_and_std(values("seconds")).mean, 0),
            }
        )
    notes = (
        "Eigenspaces: cosines of principal angles, clusters of eigenvalues within 1 %. The paper's metric: component "
        "by component, whole eigenspaces only where eigenvalues repeat exactly. Counting: transitions of the same data "
        "counted and diagonalised, the limit of any method. Seconds of one run with one thread, beside whatever else "
        "the machine did.",
        plan.layouts_note,
    )
    return ResultTable("beside-the-paper", f"{plan.title}: {ours} beside the paper", records, notes)


def signed(difference: float) -> str:
    """A difference with its sign, a dash for NaN.

    Args:
        difference: any number.

    Returns:
        The text of a cell.
    """
    return "–" if np.isnan(difference) else f"{difference:+.4f}"


def _aggregates(plan: Plan, results: Results, methods: tuple[str, ...]) -> ResultTable:
    """Over all worlds: mean, median and interquartile mean, 95 % intervals by stratified bootstrap."""
    records = []
    for method in methods:
        for name, label in (("cosine", "the paper's metric"), ("subspace_cosine", "eigenspaces")):
            scores = {world: results.values(name, world, method) for world in plan.labels}
            scores = {world: values for world, values in scores.items() if len(values)}
            if not scores:
                continue
            mean, median, middle = (
                number(value) if np.isnan(low) else f"{number(value)} [{number(low)}, {number(high)}]"
                for value, low, high in aggregate(scores)
            )
            records.append(
                {
                    "method": method,
                    "similarity": label,
                    "mean of worlds": mean,
                    "median of worlds": median,
                    "interquartile mean of runs": middle,
                }
            )
    notes = (
        "95 % intervals by stratified bootstrap over seeds within worlds (Agarwal et al., 2021), where every world has "
        "several; over the worlds that have runs of the method.",
    )
    return ResultTable("aggregates", f"{plan.title}: over all worlds", records, notes)
