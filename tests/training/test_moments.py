"""Second moments of components: exact ones against dense formulas, sampled ones against closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import lapwing as lw
from lapwing.data.trajectories import Trajectories
from lapwing.operators.lags import geometric_lags, lags_inside_episodes
from lapwing.operators.operator import Operator
from lapwing.training import batches
from lapwing.training import moments as moments_module
from lapwing.training.moments import Moments, TableMoments, WalkMoments, draw_walks

MIXTURE = geometric_lags([0.9, 0.99, 0.999])


@pytest.fixture(scope="module")
def counted() -> Operator:
    return lw.operator(lw.collect("GridMaze-9", steps=300, episode_length=6, seed=2))


def by_formula(operator: Operator, f: NDArray[np.float64], u: NDArray[np.float64]) -> Moments:
    d = np.diag(operator.rho)
    return Moments(u.T @ d @ u, u.T @ d @ f @ u, (f @ u).T @ d @ (f @ u), u.T @ d @ u)


def test_exact_moments_are_the_dense_formulas(counted: Operator) -> None:
    u = np.random.default_rng(0).standard_normal((counted.num_states, 4))
    p, identity = counted.matrix.toarray(), np.eye(counted.num_states)
    f = np.mean([(1.0 - g) * p @ np.linalg.inv(identity - g * p) for g in MIXTURE.discounts], axis=0)
    found = TableMoments(counted, MIXTURE).moments(lambda rows: u)
    for moment, expected in zip(found, by_formula(counted, f, u), strict=True):
        np.testing.assert_allclose(moment, expected, atol=1e-11)


def test_exact_moments_of_large_tables_are_those_of_the_cut_gaps(
    counted: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments_module, "DENSE_STATES", 0)
    u = np.random.default_rng(0).standard_normal((counted.num_states, 3))
    estimator = TableMoments(counted, geometric_lags([0.9]))
    weights = estimator.lags.weights
    assert weights is not None
    assert 0.9 ** len(weights) <= batches.TAIL
    p = counted.matrix.toarray()
    f = np.asarray(sum(w * np.linalg.matrix_power(p, k) for k, w in enumerate(weights, 1)))
    for moment, expected in zip(estimator.moments(lambda rows: u), by_formula(counted, f, u), strict=True):
        np.testing.assert_allclose(moment, expected, atol=1e-12)


def test_moments_of_rotated_components_are_rotated_forms(counted: Operator) -> None:
    rng = np.random.default_rng(0)
    u, matrix = rng.standard_normal((counted.num_states, 4)), rng.standard_normal((4, 2))
    estimator = TableMoments(counted, MIXTURE)
    turned = estimator.moments(lambda rows: u).rotated(matrix)
    for moment, expected in zip(turned, estimator.moments(lambda rows: u @ matrix), strict=True):
        np.testing.assert_allclose(moment, expected, atol=1e-12)


@pytest.mark.parametrize(("name", "dim"), [("Box-1", 5), ("Box-2", 6)])
def test_moments_from_pairs_are_those_of_the_cosines_in_closed_form(name: str, dim: int) -> None:
    data = lw.collect(name, steps=300_000, seed=0)
    assert not data.has_table
    truth = lw.solve(name, dim)
    estimator = WalkMoments(data, MIXTURE)
    values = 1.0 - estimator.lags.eigenvalues(1.0 - truth.mu[:dim])
    found = estimator.moments(lambda rows: truth.transform(data.observations[rows]))
    # 6,000 independent episodes tell means of products to about 0.01.
    np.testing.assert_allclose(found.gram, np.eye(dim), atol=0.035)
    np.testing.assert_allclose(found.middle, np.eye(dim), atol=0.035)
    np.testing.assert_allclose(found.cross, np.diag(values), atol=0.035)
    np.testing.assert_allclose(found.square, np.diag(values**2), atol=0.035)
    for moment in found:
        np.testing.assert_allclose(moment, moment.T, atol=1e-12)


def test_the_constant_is_exact_in_moments_from_pairs() -> None:
    data = lw.collect("Box-1", steps=2000, seed=0)
    found = WalkMoments(data, MIXTURE, walks=500).moments(lambda rows: np.ones((len(rows), 1)))
    np.testing.assert_allclose([moment[0, 0] for moment in found], 1.0, atol=1e-12)


def test_the_noise_of_moments_from_pairs_cancels_in_residuals() -> None:
    truth = lw.solve("Box-1", 2)
    plain, matched = [], []
    for seed in range(8):
        data = lw.collect("Box-1", steps=20_000, seed=seed)
        estimator = WalkMoments(data, MIXTURE, walks=20_000)
        c = float(1.0 - estimator.lags.eigenvalues(1.0 - truth.mu[1]))
        found = estimator.moments(lambda rows, data=data: truth.transform(data.observations[rows]))
        plain.append(found.square[1, 1] - c**2)
        matched.append(found.square[1, 1] - 2.0 * c * found.cross[1, 1] + c**2 * found.middle[1, 1])
    # The cosine is an eigenfunction, so both should be zero.
    assert np.linalg.norm(matched) < 0.25 * np.linalg.norm(plain)


def positions_as_observations(lengths: NDArray[np.int64]) -> Trajectories:
    offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
    flags = np.ones(len(lengths), dtype=bool)
    return Trajectories(np.arange(offsets[-1], dtype=np.float32)[:, None], offsets, ~flags, flags)


def test_walks_stay_inside_episodes_and_their_lags_come_as_often_as_asked() -> None:
    # One long episode among many short ones: long lags must not be lost because they fit in few places only.
    lengths = np.array([1] * 2000 + [12, 0, 3])
    data = positions_as_observations(lengths)
    lags = lags_inside_episodes(geometric_lags([0.7]), np.array([6]), unbiased=True)
    assert lags.weights is not None
    walks = draw_walks(data, lags, 50_000, 2, np.random.default_rng(0))
    assert walks.shape == (3, 50_000)
    episode = np.repeat(np.arange(len(lengths)), lengths + 1)
    assert (episode[walks] == episode[walks[0]]).all()
    for leg in np.diff(walks, axis=0):
        expected = lags.weights * 50_000
        statistic = float(((np.bincount(leg, minlength=7)[1:] - expected) ** 2 / expected).sum())
        assert statistic < chi2.ppf(1 - 1e-4, 5)


def test_starts_of_walks_are_uniform_among_those_where_they_fit() -> None:
    data = positions_as_observations(np.array([2, 5]))
    lags = lags_inside_episodes(geometric_lags([0.7]), np.array([1]), unbiased=True)
    starts = draw_walks(data, lags, 40_000, 2, np.random.default_rng(0))[0]
    counts = np.bincount(starts, minlength=9)
    assert np.flatnonzero(counts).tolist() == [0, 3, 4, 5, 6]
    np.testing.assert_allclose(counts[[0, 3, 4, 5, 6]], 8000, rtol=0.05)


def test_episodes_of_one_step_give_eigenvalues_but_no_residuals() -> None:
    data = lw.collect("Box-1", steps=20_000, episode_length=1, seed=0)
    truth = lw.solve("Box-1", 3)
    estimator = WalkMoments(data, MIXTURE)
    found = estimator.moments(lambda rows: truth.transform(data.observations[rows]))
    np.testing.assert_allclose(np.diag(found.cross), truth.mu[:3], atol=0.04)
    assert np.isnan(found.square).all()


def test_the_same_states_are_used_every_time() -> None:
    data = lw.collect("Box-1", steps=2000, seed=0)

    def cosines(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.cos(data.observations[rows], dtype=np.float64)

    estimator, again = WalkMoments(data, MIXTURE, walks=300), WalkMoments(replace(data), MIXTURE, walks=300)
    for one, other in zip(estimator.moments(cosines), again.moments(cosines), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(estimator.sample(cosines), again.sample(cosines))
    assert estimator.sample(cosines).shape == (300, 1)


def test_a_rough_estimate_is_the_mean_over_the_first_walks() -> None:
    data = lw.collect("Box-1", steps=2000, seed=0)
    few = WalkMoments(data, MIXTURE, walks=300, quick_walks=100)
    seen: list[int] = []

    def counted(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        seen.append(len(rows))
        return np.ones((len(rows), 1))

    assert few.moments(counted, quick=True).gram[0, 0] == 1.0
    assert seen == [100, 100, 100]
