"""Eigenvalues by ALLO and by GGDO with Monte Carlo, beside the paper's (paper, Figure 4B and Table 3)."""

import numpy as np
from numpy.typing import NDArray

from lapwing.data.collect import DEFAULT_EPISODE_LENGTH
from lapwing.definitions import truncated
from lapwing.evaluation.score import relative_errors
from lapwing_paper.engine.artefact import Artefact, Plan, Spec
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.places import Place
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Cell, Table, mean_std_cell, number, p_value, percent
from lapwing_paper.published import PublishedEigenvalue, published_eigenvalues
from lapwing_paper.statistics import Welch, holm, mean_and_std, welch
from lapwing_paper.studies import comparison_xy
from lapwing_paper.studies.comparison import difference_bars
from lapwing_paper.studies.methods import ALLO_DEFAULT, ALLO_PAPER, GGDO_PAPER

# Four printed decimals say little of smaller ones.
SMALLEST_PRINTED = 0.0005

SPEC = Spec(
    name="eigenvalues",
    title="Eigenvalues by ALLO and by GGDO with Monte Carlo in twelve worlds",
    paper="Figure 4B, Table 3",
    worlds=comparison_xy.SPEC.worlds,
    quick=comparison_xy.SPEC.quick,
    full=comparison_xy.SPEC.full,
    deviations=(
        "The runs are those of `comparison-xy`.",
        "GGDO's Monte Carlo estimate is the energy of its components as they are, not divided by their norms, as the "
        "paper's printed values show; here without sampling noise. Divided by the norms it stands beside it.",
        "Mean relative errors are over eigenvalues above 0.0005, for the paper prints four decimals; ours over all "
        "that are not zero stand beside them.",
    ),
)

Values = NDArray[np.float64]


def runs(plan: Plan) -> list[Run]:
    """Those of the comparison."""
    return comparison_xy.runs(plan)


def monte_carlo(results: Results, world: str) -> Values:
    """(runs, d) GGDO's energies ``1/2 E (u(s) - u(s'))^2`` of components as they are, under the sampled gaps."""
    mu, norms = (results.values(name, world, GGDO_PAPER) for name in ("mu", "squared_norms"))
    return truncated(0.9, DEFAULT_EPISODE_LENGTH).from_mu(mu) * norms if len(mu) else mu


def mean_errors(estimates: Values, truth: Values) -> Values:
    """(runs,) mean relative errors over the eigenvalues that four decimals can show."""
    if not len(estimates):
        return np.zeros(0)
    errors = np.array([relative_errors(row, truth) for row in estimates])
    return errors[:, truth > SMALLEST_PRINTED].mean(axis=1)


def table(plan: Plan, results: Results) -> list[Table]:
    """Mean relative errors by world, and Table 3 itself."""
    return [_errors_table(plan, results), _table_3(plan, results)]


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Figure 4B: how much larger the errors of GGDO are."""
    shown = [place for place in plan.places if len(results.select(place.label, GGDO_PAPER))]
    tests = [_test(results, place) for place in shown]
    bars = difference_bars("average over components", [place.label for place in shown], tests)
    title = f"{plan.title}\nrelative error of GGDO - that of ALLO, paper preset. Black bars: p < 0.01."
    return [Picture("figure-4b", title, (bars,), 1, "", "difference of relative errors")]


def _truth(results: Results, place: Place) -> Values:
    found = results.values("true_eigenvalues", place.label)
    return found[0] if len(found) else np.zeros(0)


def _test(results: Results, place: Place) -> Welch:
    truth = _truth(results, place)
    allo = mean_errors(results.values("dual", place.label, ALLO_PAPER), truth)
    return welch(mean_errors(monte_carlo(results, place.label), truth), allo)


def _errors_table(plan: Plan, results: Results) -> Table:
    tests = [_test(results, place) for place in plan.places]
    adjusted = holm([test.p_value for test in tests])
    columns = (
        "Env",
        "default preset",
        "default, all non-zero",
        "counting",
        "ALLO duals",
        "GGDO Monte Carlo",
        "GGDO over norms",
        "p-value",
        "Holm p",
        "ALLO, published",
        "GGDO, published",
    )
    everything = [_error_row(results, place) for place in plan.places]
    rows = [
        (
            place.label,
            *(percent(value, 2) for value in row[:6]),
            p_value(test.p_value),
            p_value(float(holm_p)),
            *(percent(value, 2) for value in row[6:]),
        )
        for place, row, test, holm_p in zip(plan.places, everything, tests, adjusted, strict=True)
    ]
    means = [_nanmean([row[i] for row in everything]) for i in range(8)]
    rows.append(
        ("mean", *(percent(value, 2) for value in means[:6]), "–", "–", *(percent(value, 2) for value in means[6:]))
    )
    notes = (
        "Mean relative error in successor(0.9) over eigenvalues above 0.0005; smaller is better. ALLO duals: -beta/2, "
        "the paper's reading, after the paper preset's steps. One-sided Welch test that the error of GGDO's Monte "
        "Carlo is larger than that of ALLO's duals. Published: from the means in the paper's Table 3.",
        f"Paper preset: {plan.scale.steps:,} steps. {plan.scale.transitions:,} transitions, {plan.scale.seeds} seeds.",
        plan.layouts_note,
    )
    return Table("figure-4b", f"{plan.title}: mean relative errors", columns, tuple(rows), notes)


def _error_row(results: Results, place: Place) -> list[float]:
    """Mean relative errors: default, default over all, counting, duals, Monte Carlo, quotients, published twice."""
    world, truth = place.label, _truth(results, place)
    estimates = [
        results.values("eigenvalues", world, ALLO_DEFAULT),
        results.values("counting_eigenvalues", world, ALLO_DEFAULT),
        results.values("dual", world, ALLO_PAPER),
        monte_carlo(results, world),
        results.values("eigenvalues", world, GGDO_PAPER),
    ]
    errors = [_nanmean(list(mean_errors(values, truth))) for values in estimates]
    over_all = _nanmean(list(results.values("eigenvalue_error", world, ALLO_DEFAULT)))
    published = _published(place)
    if published is None:
        return [errors[0], over_all, *errors[1:], np.nan, np.nan]
    printed = np.array([row.true for row in published])
    theirs = [np.array([[row.allo_mean for row in published]]), np.array([[row.ggdo_mean for row in published]])]
    return [errors[0], over_all, *errors[1:], *(float(mean_errors(values, printed)[0]) for values in theirs)]


def _table_3(plan: Plan, results: Results) -> Table:
    """True, learned and published eigenvalues, one row per component."""
    rows: list[tuple[Cell | str, ...]] = []
    for place in plan.places:
        truth, published = _truth(results, place), _published(place)
        samples = [
            results.values("eigenvalues", place.label, ALLO_DEFAULT),
            results.values("dual", place.label, ALLO_PAPER),
            monte_carlo(results, place.label),
        ]
        for i in range(1, len(truth)):
            found = [mean_and_std(sample[:, i]) if len(sample) else mean_and_std([]) for sample in samples]
            cells = [mean_std_cell(one.mean, one.std) for one in found]
            theirs = ("–", "–") if published is None else _published_cells(published[i])
            rows.append((place.label, str(i + 1), number(float(truth[i]), 4), *cells, *theirs))
    columns = (
        "Env",
        "component",
        "True",
        ALLO_DEFAULT,
        "ALLO duals",
        "GGDO Monte Carlo",
        "ALLO, published",
        "GGDO, published",
    )
    return Table("table-3", f"{plan.title}: successor(0.9)", columns, tuple(rows), (plan.layouts_note,))


def _published(place: Place) -> list[PublishedEigenvalue] | None:
    return published_eigenvalues().get(place.paper_name) if place.is_the_papers else None


def _published_cells(row: PublishedEigenvalue) -> tuple[str, str]:
    return mean_std_cell(row.allo_mean, row.allo_std).text, mean_std_cell(row.ggdo_mean, row.ggdo_std).text


def _nanmean(values: list[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


ARTEFACT = Artefact(SPEC, runs, table, pictures)
