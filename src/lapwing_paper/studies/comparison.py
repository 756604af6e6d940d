"""What both comparisons of ALLO with GGDO share: tables with the paper's numbers beside ours, and figures."""

import numpy as np

from lapwing_paper.engine.artefact import Plan
from lapwing_paper.engine.pictures import Bars, Picture
from lapwing_paper.engine.places import Place
from lapwing_paper.engine.runs import Results
from lapwing_paper.engine.tables import Cell, Table, mean_std_cell, number, p_value
from lapwing_paper.published import PublishedCosine, published_cosines
from lapwing_paper.statistics import Welch, aggregate, bootstrap_interval, holm, mean_and_std, welch
from lapwing_paper.studies.methods import ALLO_PAPER, GGDO_PAPER

SIGNIFICANT = 0.01


def comparison_tables(plan: Plan, results: Results, ours: str, observation: str) -> list[Table]:
    """The paper's table, ours beside the paper's mean, and aggregates over worlds."""
    number_of_table = "1" if observation == "xy" else "2"
    return [
        _as_in_the_paper(plan, results, observation, f"table-{number_of_table}"),
        _beside_the_paper(plan, results, ours, observation),
        _aggregates(plan, results, (ours, ALLO_PAPER, GGDO_PAPER)),
    ]


def comparison_pictures(plan: Plan, results: Results, names: tuple[str, str]) -> list[Picture]:
    """Mean differences ALLO - GGDO over worlds, and component by component (paper, Figures 4A, 9 and 10)."""
    shown = [place for place in plan.places if len(results.select(place.label, GGDO_PAPER))]
    tests = [_test(results, place) for place in shown]
    over_worlds = difference_bars("average over components", [place.label for place in shown], tests)
    by_component = tuple(_component_bars(results, place) for place in shown)
    words = "Black bars: p < 0.01 (Welch, one-sided)."
    return [
        Picture(
            names[0],
            f"{plan.title}\nALLO - GGDO, paper preset. {words}",
            (over_worlds,),
            1,
            "",
            "difference of cosines",
        ),
        Picture(
            names[1], f"{plan.title}\nALLO - GGDO by component. {words}", by_component, 4, "component", "difference"
        ),
    ]


def difference_bars(title: str, labels: list[str], tests: list[Welch]) -> Bars:
    """Differences of means with their standard errors, black where significant, as the paper draws them."""
    return Bars(
        title,
        tuple(labels),
        np.array([test.difference for test in tests]),
        np.array([test.standard_error for test in tests]),
        tuple(bool(test.p_value < SIGNIFICANT) for test in tests),
    )


def _test(results: Results, place: Place, component: int | None = None) -> Welch:
    name = "cosine" if component is None else "cosines"
    samples = [results.values(name, place.label, method) for method in (ALLO_PAPER, GGDO_PAPER)]
    if component is not None:
        samples = [sample[:, component] if len(sample) else sample for sample in samples]
    return welch(samples[0], samples[1])


def _component_bars(results: Results, place: Place) -> Bars:
    samples = [results.values("cosines", place.label, method) for method in (ALLO_PAPER, GGDO_PAPER)]
    count = max(sample.shape[1] if len(sample) else 0 for sample in samples)
    tests = [_test(results, place, component) for component in range(count)]
    return difference_bars(place.label, [str(component + 1) for component in range(count)], tests)


def _as_in_the_paper(plan: Plan, results: Results, observation: str, name: str) -> Table:
    """ALLO against GGDO with the paper's settings, metric and test (paper, Tables 1 and 2)."""
    tests = [_test(results, place) for place in plan.places]
    adjusted = holm([test.p_value for test in tests])
    rows = []
    for place, test, corrected in zip(plan.places, tests, adjusted, strict=True):
        allo, ggdo = (mean_and_std(results.values("cosine", place.label, m)) for m in (ALLO_PAPER, GGDO_PAPER))
        significant = bool(test.p_value < SIGNIFICANT)
        published = _published(place, observation)
        theirs = ("–", "–", "–") if published is None else _published_cells(published)
        rows.append(
            (
                place.label,
                mean_std_cell(allo.mean, allo.std, bold=significant and test.difference > 0),
                mean_std_cell(ggdo.mean, ggdo.std),
                number(test.statistic, 3),
                p_value(test.p_value),
                p_value(float(corrected)),
                *theirs,
            )
        )
    columns = (
        "Env",
        "ALLO",
        "GGDO",
        "t-statistic",
        "p-value",
        "Holm p",
        "ALLO, published",
        "GGDO, published",
        "t, published",
    )
    notes = (
        f"Paper preset, {plan.scale.steps:,} steps, {plan.scale.transitions:,} transitions, {plan.scale.seeds} seeds: "
        "average cosine similarity as the paper computes it, mean (standard deviation). Welch's t test, one-sided "
        f"(ALLO larger); bold where p < {SIGNIFICANT:g}. Published: 200,000 steps and 60 seeds.",
        plan.layouts_note,
    )
    return Table(name, f"{plan.title}: ALLO against GGDO", columns, tuple(rows), notes)


def _published(place: Place, observation: str) -> PublishedCosine | None:
    return published_cosines(observation).get(place.paper_name) if place.is_the_papers else None


def _published_cells(published: PublishedCosine) -> tuple[Cell | str, ...]:
    return (
        mean_std_cell(published.allo_mean, published.allo_std, bold=published.p_value < SIGNIFICANT),
        mean_std_cell(published.ggdo_mean, published.ggdo_std),
        number(published.t_statistic, 3),
    )


def _beside_the_paper(plan: Plan, results: Results, ours: str, observation: str) -> Table:
    rows = []
    for place in plan.places:
        subspace = results.values("subspace_cosine", place.label, ours)
        low, high = bootstrap_interval(subspace)
        own_metric = mean_and_std(results.values("cosine", place.label, ours))
        counted, counted_own = (
            mean_and_std(results.values(f"counting_{name}", place.label, ours)).mean
            for name in ("subspace_cosine", "cosine")
        )
        published = _published(place, observation)
        theirs = None if published is None else published.allo_mean
        here = mean_and_std(subspace)
        rows.append(
            (
                place.label,
                mean_std_cell(here.mean, here.std),
                f"{number(low, 4)} to {number(high, 4)}",
                number(float(subspace.min()) if len(subspace) else None, 4),
                mean_std_cell(own_metric.mean, own_metric.std),
                number(counted, 4),
                number(counted_own, 4),
                number(theirs, 4),
                _signed(here.mean, theirs),
                _signed(own_metric.mean, theirs),
                number(mean_and_std(results.values("seconds", place.label, ours)).mean, 0),
            )
        )
    columns = (
        "Env",
        f"{ours}, eigenspaces",
        "95 % bootstrap",
        "worst seed",
        "the paper's metric",
        "counting, eigenspaces",
        "counting, the paper's metric",
        "ALLO, published",
        "eigenspaces - published",
        "the paper's metric - published",
        "seconds",
    )
    notes = (
        "Eigenspaces: cosines of principal angles, clusters of eigenvalues within 1 %. The paper's metric: component "
        "by component, whole eigenspaces only where eigenvalues repeat exactly. Counting: transitions of the same data "
        "counted and diagonalised, the limit of any method. Seconds of one run with one thread, beside whatever else "
        "the machine did.",
        plan.layouts_note,
    )
    return Table("beside-the-paper", f"{plan.title}: {ours} beside the paper", columns, tuple(rows), notes)


def _signed(value: float, other: float | None) -> str:
    return "–" if other is None or np.isnan(value) else f"{value - other:+.4f}"


def _aggregates(plan: Plan, results: Results, methods: tuple[str, ...]) -> Table:
    """Over all worlds: mean, median and interquartile mean, 95 % intervals by stratified bootstrap."""
    rows = []
    for method in methods:
        for name, label in (("cosine", "the paper's metric"), ("subspace_cosine", "eigenspaces")):
            scores = {place.label: results.values(name, place.label, method) for place in plan.places}
            scores = {world: values for world, values in scores.items() if len(values)}
            if not scores:
                continue
            found = aggregate(scores)
            cells = [
                f"{number(value, 4)} [{number(low, 4)}, {number(high, 4)}]"
                for value, low, high in (found.mean, found.median, found.interquartile_mean)
            ]
            rows.append((method, label, *cells))
    columns = ("method", "similarity", "mean of worlds", "median of worlds", "interquartile mean of runs")
    notes = ("95 % intervals by stratified bootstrap over seeds within worlds (Agarwal et al., 2021).",)
    return Table("aggregates", f"{plan.title}: over all worlds", columns, tuple(rows), notes)
