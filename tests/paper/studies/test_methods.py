"""The paper's coefficients in our units: our losses are half of the losses that the authors' code minimises."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.objectives import Constraints, Values, allo, ggdo
from lapwing.training.config import make_config
from lapwing_paper.studies.catalogue import STUDIES
from lapwing_paper.studies.methods import (
    PAPER_ALLO_BARRIER,
    PAPER_GGDO_BARRIER,
    allo_settings,
    exact_run,
    ggdo_barrier,
    ggdo_settings,
    paper_run,
)
from lapwing_paper.study import make_plan

Matrix = NDArray[np.float64]


class Batch:
    """Random values of d components at pairs of states and on two batches for the constraints."""

    def __init__(self, dim: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.start, self.end, self.first, self.second = rng.normal(size=(4, 40, dim)) * 0.7 + 0.2

    @property
    def values(self) -> Values:
        return Values(*(jnp.asarray(part) for part in (self.start, self.end, self.first, self.second)))

    @property
    def squared_steps(self) -> Matrix:
        """(d,) ``E (u_i(s) - u_i(s'))^2``, without the half."""
        return np.array([np.mean([(a - b) ** 2 for a, b in zip(*pair, strict=True)]) for pair in self._columns])

    @property
    def errors(self) -> tuple[Matrix, Matrix]:
        """(d, d) twice: ``<u_j, u_k> - delta_jk`` on each batch."""
        dim = self.first.shape[1]
        return tuple(  # type: ignore[return-value]
            np.array([[np.mean(b[:, j] * b[:, k]) - (j == k) for k in range(dim)] for j in range(dim)])
            for b in (self.first, self.second)
        )

    @property
    def _columns(self) -> list[tuple[Matrix, Matrix]]:
        return list(zip(self.start.T, self.end.T, strict=True))


@pytest.fixture(autouse=True)
def in_double_precision() -> Any:
    with jax.enable_x64(True):
        yield


def authors_ggdo(batch: Batch, coefficient: float) -> float:
    """``sum_i c_i E(u_i - u_i')^2 + B d^2 / sum_jk min(c_j, c_k) sum_jk min(c_j, c_k) e_jk^2`` with c = d, ..., 1."""
    dim = batch.first.shape[1]
    c = [float(dim - i) for i in range(dim)]
    smaller = np.array([[min(c[j], c[k]) for k in range(dim)] for j in range(dim)])
    first, second = batch.errors
    graph = sum(weight * step for weight, step in zip(c, batch.squared_steps, strict=True))
    return float(graph + coefficient * dim**2 / smaller.sum() * (smaller * first * second).sum())


def authors_allo(batch: Batch, coefficient: float, duals: Matrix) -> float:
    """``sum_i E(u_i - u_i')^2 + sum_{k <= j} beta'_jk e_jk + B sum_{k <= j} e_jk^2``; e is the mean of both batches."""
    first, second = batch.errors
    dim = len(first)
    below = [(j, k) for j in range(dim) for k in range(j + 1)]
    linear = sum(duals[jk] * (first[jk] + second[jk]) / 2 for jk in below)
    return float(batch.squared_steps.sum() + linear + coefficient * sum(first[jk] * second[jk] for jk in below))


@pytest.mark.parametrize("dim", [11, 4, 1])
@pytest.mark.parametrize("coefficient", [PAPER_GGDO_BARRIER, 0.05])
def test_ggdo_is_half_of_the_authors_loss(dim: int, coefficient: float) -> None:
    batch = Batch(dim, seed=dim)
    objective = ggdo(barrier=ggdo_barrier(coefficient, dim))
    loss, _ = objective.loss(objective.init(dim), batch.values)
    assert float(loss) == pytest.approx(authors_ggdo(batch, coefficient) / 2, rel=1e-10)


@pytest.mark.parametrize("coefficient", [PAPER_ALLO_BARRIER, 7.0])
def test_allo_is_half_of_the_authors_loss_with_duals_twice_ours(coefficient: float) -> None:
    dim = 5
    batch = Batch(dim)
    settings = allo_settings(coefficient)
    objective = allo(barrier=settings["barrier"], barrier_rate=settings["barrier_rate"])
    duals = np.tril(np.random.default_rng(1).normal(size=(dim, dim)))
    state = objective.init(dim)._replace(duals=jnp.asarray(duals))
    loss, _ = objective.loss(state, batch.values)
    assert float(loss) == pytest.approx(authors_allo(batch, coefficient, 2 * duals) / 2, rel=1e-10)


@pytest.mark.parametrize(("settings", "ratio"), [(allo_settings, 0.5), (ggdo_settings, ggdo_barrier(1.0))])
def test_a_growing_barrier_stays_in_the_same_proportion_to_the_authors(settings: Any, ratio: float) -> None:
    # Theirs grows by rate x the mean of the squared errors; ours must grow by as much in our units.
    theirs, rate, squares = 3.0, 0.25, 0.4
    options = settings(theirs, rate)
    make = {"allo": allo, "ggdo": ggdo}[options.pop("objective")]
    objective = make(**options, error_average_rate=1.0)
    state = objective.init(1)
    errors = jnp.full((1, 1), np.sqrt(squares))
    grown = objective.update(state, Constraints(jnp.zeros(1), errors, errors, jnp.zeros(())))
    found = getattr(grown, "barrier", grown).coefficient
    assert float(found) == pytest.approx((theirs + rate * squares) * ratio)


def test_modes_above_0478_vanish_from_the_papers_ggdo() -> None:
    # One mode alone: lambda n + b (n - 1)^2 over squared norms n >= 0 has its minimum at n = 1 - lambda / (2 b).
    def norm_at_minimum(eigenvalue: float) -> float:
        norms = np.linspace(0.0, 1.0, 100_001)
        return float(norms[np.argmin(eigenvalue * norms + ggdo_barrier(PAPER_GGDO_BARRIER) * (norms - 1.0) ** 2)])

    assert norm_at_minimum(0.479) == 0.0
    assert norm_at_minimum(0.477) > 0.0


def test_the_papers_allo_is_the_papers_preset() -> None:
    plain, ours = make_config("paper"), make_config("paper", **allo_settings())
    assert ours == plain


def test_ggdo_keeps_its_barrier_unless_told_to_let_it_grow() -> None:
    assert ggdo_settings()["barrier_rate"] == 0.0
    assert ggdo_settings(2.0, 0.5)["barrier_rate"] > 0.0


def test_options_pass_through_and_make_a_configuration() -> None:
    for settings in (allo_settings, ggdo_settings):
        options = settings(0.5, encoder="conv", scale_inputs=False)
        config = make_config("paper", **paper_run(options, 1000, 500)["options"])
        assert (config.encoder, config.scale_inputs, config.steps, config.log_every) == ("conv", False, 500, 10)


@pytest.mark.parametrize(("steps", "every"), [(1, 1), (49, 1), (50, 1), (200_000, 4000)])
def test_runs_of_the_paper_report_about_fifty_times(steps: int, every: int) -> None:
    assert paper_run({}, 0, steps)["options"]["log_every"] == every


def test_what_is_given_comes_before_the_number_of_reports() -> None:
    assert paper_run({"log_every": 7}, 0, 100)["options"]["log_every"] == 7


def test_runs_are_every_method_in_every_world_with_every_seed() -> None:
    study = replace(
        STUDIES["theory"], worlds=("GridMaze-7",), methods=lambda plan: [("one", {}), ("two", exact_run({}, 10))]
    )
    runs = make_plan(study, seeds=3, worlds=("GridMaze-7", "GridMaze-9")).runs()
    assert len(runs) == len({(run.method, run.world_label, run.seed) for run in runs}) == 2 * 2 * 3
    assert {run.seed for run in runs} == {0, 1, 2}
    assert {run.settings["transitions"] for run in runs if run.method == "two"} == {10}
