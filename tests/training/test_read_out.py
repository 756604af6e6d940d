"""From moments to components: refinement, eigenvalues, residuals, honest angles, and error bars."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lapwing as lw
from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.certificate import ritz_angles
from lapwing.diagnostics.problems import ProblemError
from lapwing.operators.lagged import EigenvalueEstimate, lagged_moments
from lapwing.operators.lags import geometric_lags
from lapwing.operators.operator import Operator
from lapwing.operators.ritz import rayleigh_ritz
from lapwing.training.moments import Moments, TableMoments
from lapwing.training.read_out import (
    SpectralEstimate,
    bootstrap_errors,
    disagree,
    lag_rotated,
    merge_inseparable,
    spectral_estimate,
    with_canonical_signs,
)

LAGS = geometric_lags([0.9, 0.99])
Array = NDArray[np.float64]


def exact_eigenvectors(operator: Operator) -> tuple[Array, Array]:
    """All of them, columns of mean square one, and mu, by a dense solver."""
    values, vectors = np.linalg.eigh(operator.symmetrised().toarray())
    return (vectors / np.sqrt(operator.rho)[:, None])[:, ::-1], values[::-1]


@pytest.fixture(scope="module")
def maze() -> Operator:
    return lw.operator(lw.collect("GridMaze-9", steps=3000, seed=0))


def moments_of(operator: Operator, u: Array) -> Moments:
    return TableMoments(operator, LAGS).moments(lambda rows: u)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_refining_undoes_any_mixing_of_exact_eigenvectors(maze: Operator, seed: int) -> None:
    vectors, mu = exact_eigenvectors(maze)
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2))
    mixing = left @ np.diag(rng.uniform(0.05, 20.0, 4)) @ right
    estimate = spectral_estimate(moments_of(maze, vectors[:, :4] @ mixing), LAGS, refine=True, tolerance=0.01)
    np.testing.assert_allclose(estimate.mu, mu[:4], atol=1e-9)
    np.testing.assert_allclose(np.abs(mixing @ estimate.matrix), np.eye(4), atol=1e-6)
    assert estimate.orthonormality_error < 1e-9
    assert estimate.residuals.max() < 1e-6


def test_without_refining_components_are_only_scaled(maze: Operator) -> None:
    vectors, mu = exact_eigenvectors(maze)
    scales = np.array([3.0, -0.5, 0.1])
    estimate = spectral_estimate(moments_of(maze, vectors[:, :3] * scales), LAGS, refine=False, tolerance=0.01)
    np.testing.assert_allclose(estimate.matrix, np.diag(1.0 / np.abs(scales)), rtol=1e-9)
    np.testing.assert_allclose(estimate.mu, mu[:3], atol=1e-10)
    mixed = vectors[:, [1, 0, 2]]
    estimate = spectral_estimate(moments_of(maze, mixed), LAGS, refine=False, tolerance=0.01)
    np.testing.assert_allclose(estimate.mu, mu[[1, 0, 2]], atol=1e-10)
    # Out of order, and said so, however exact they are.
    assert np.isinf(estimate.angles[:2]).all()
    estimate = spectral_estimate(moments_of(maze, vectors[:, [0, 2, 3, 1]]), LAGS, refine=False, tolerance=0.01)
    assert estimate.angles[0] < 1e-6
    assert np.isinf(estimate.angles[1:]).all()


def test_the_residual_of_a_perturbed_eigenvector_is_the_analytic_one(maze: Operator) -> None:
    vectors, mu = exact_eigenvectors(maze)
    angle = 0.3
    u = np.cos(angle) * vectors[:, 1:2] + np.sin(angle) * vectors[:, 4:5]
    estimate = spectral_estimate(moments_of(maze, u * 7.0), LAGS, refine=False, tolerance=0.01)
    low, high = LAGS.eigenvalues(1.0 - mu[[1, 4]])
    # Between two eigenvectors the residual is the spread of a two-valued variable.
    assert estimate.residuals[0] == pytest.approx(np.sin(angle) * np.cos(angle) * (high - low), rel=1e-9)
    quotient = np.cos(angle) ** 2 * low + np.sin(angle) ** 2 * high
    assert estimate.operator_values[0] == pytest.approx(quotient, rel=1e-9)
    assert 1.0 - estimate.mu[0] == pytest.approx(float(LAGS.one_minus_mu(quotient)), rel=1e-9)


def test_outputs_that_are_not_finite_are_an_error(maze: Operator) -> None:
    moments = moments_of(maze, np.ones((maze.num_states, 2)))
    with pytest.raises(ProblemError):
        spectral_estimate(moments._replace(cross=moments.cross * np.nan), LAGS, refine=True, tolerance=0.01)


def test_an_output_that_vanishes_is_left_out_by_refining_and_not_converged_otherwise(maze: Operator) -> None:
    vectors, mu = exact_eigenvectors(maze)
    u = vectors[:, :3] * np.array([1.0, 0.0, 1.0])
    refined = spectral_estimate(moments_of(maze, u), LAGS, refine=True, tolerance=0.01)
    np.testing.assert_allclose(refined.mu, mu[[0, 2]], atol=1e-10)
    plain = spectral_estimate(moments_of(maze, u), LAGS, refine=False, tolerance=0.01)
    assert plain.orthonormality_error == pytest.approx(1.0)


def test_signs_make_the_largest_entry_positive(maze: Operator) -> None:
    vectors, _ = exact_eigenvectors(maze)
    u = vectors[:, :4] * np.array([1.0, -1.0, -1.0, 1.0])
    estimate = with_canonical_signs(spectral_estimate(moments_of(maze, u), LAGS, refine=True, tolerance=0.01), u)
    turned = u @ estimate.matrix
    largest = np.argmax(np.abs(turned), axis=0)
    assert (turned[largest, np.arange(4)] > 0).all()
    np.testing.assert_allclose(np.abs(turned), np.abs(vectors[:, :4]), atol=1e-7)


@pytest.mark.parametrize("world", ["GridMaze-9", "room:5x4", "rooms:2x2x3:1", "maze:4x4:0"])
@pytest.mark.parametrize("size", [1e-3, 1e-2, 3e-2])
def test_angles_of_ritz_vectors_are_honest(world: str, size: float) -> None:
    operator = lw.operator(world)
    vectors, mu = exact_eigenvectors(operator)
    rng = np.random.default_rng(3)
    found, true = [], []
    for _ in range(10):
        u = vectors[:, :9] @ rng.standard_normal((9, 9)) + size * rng.standard_normal((operator.num_states, 9))
        estimate = spectral_estimate(moments_of(operator, u), LAGS, refine=True, tolerance=1e-6)
        turned = u @ estimate.matrix
        for i in range(5):
            cluster = np.abs(mu - mu[i]) < 1e-6
            inside = (operator.rho[:, None] * vectors[:, cluster]).T @ turned[:, i]
            true.append(np.sqrt(max(0.0, 1.0 - float(inside @ inside))))
            found.append(estimate.angles[i])
    assert np.median(true) > size / 30
    ratios = np.array(found) / np.maximum(true, 1e-9)
    assert np.mean(ratios < 0.5) <= 0.02
    assert np.median(ratios) < 10.0
    assert np.percentile(ratios, 98) < 50.0


def test_ritz_angles_are_infinite_for_the_last_and_leave_equal_ones_alone() -> None:
    angles = ritz_angles(np.array([0.0, 0.2, 0.2, 0.6]), np.array([0.0, 0.02, 0.02, 0.1]), 1e-6)
    assert angles[0] == 0.0
    np.testing.assert_allclose(angles[1:3], np.hypot(0.05, 0.05 * 0.1 / 0.4), rtol=1e-9)
    assert np.isinf(angles[3])


def test_values_closer_than_their_errors_become_one_and_others_stay() -> None:
    values = np.array([0.0, 0.4, 0.400001, 0.5, 0.500001, 0.9])
    residuals = np.array([0.0, 1e-3, 1e-3, 1e-5, 1e-5, 0.1])
    merged = merge_inseparable(values, residuals)
    assert merged[1] == merged[2] == pytest.approx(0.4000005, abs=1e-12)
    assert merged[[0, 3, 4, 5]].tolist() == values[[0, 3, 4, 5]].tolist()


def test_values_of_components_far_from_converged_are_left_alone() -> None:
    values = np.array([0.0, 0.1, 0.12, 0.5])
    for residual in (0.3, np.nan, np.inf):
        assert merge_inseparable(values, np.full(4, residual)).tolist() == values.tolist()


@pytest.mark.parametrize("size", [3e-4, 1e-3, 3e-3])
def test_exact_repeats_are_recognised_through_the_noise_of_training(size: float) -> None:
    # An empty square room has each mixed mode twice.
    operator = lw.operator("room:6x6")
    vectors, mu = exact_eigenvectors(operator)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        u = vectors[:, :11] @ rng.standard_normal((11, 11)) + size * rng.standard_normal((36, 11))
        estimate = spectral_estimate(moments_of(operator, u), LAGS, refine=True, tolerance=1e-6)
        assert estimate.mu[1] == estimate.mu[2] == pytest.approx(mu[1], abs=1e-5)
        assert estimate.angles[:6].max() < 0.1
        assert estimate.mu[3] < estimate.mu[2] - 0.01


@pytest.mark.parametrize(("world", "steps"), [("GridMaze-9", 3000), ("room:6x5", 6000)])
def test_error_bars_have_the_size_of_the_real_errors(world: str, steps: int) -> None:
    truth = lw.solve(world, 4)
    found, bars = [], []
    for seed in range(30):
        data = lw.collect(world, steps=steps, seed=seed)
        counted = lw.operator(data)
        assert counted.num_states == len(data.observations)
        vectors, mu = exact_eigenvectors(counted)
        found.append(mu[1:4])
        bars.append(bootstrap_errors(lambda rows, v=vectors: v[rows, :4], mu[:4], data, seed)[1:])
    ratio = np.mean(bars, axis=0) / np.std(found, axis=0)
    assert (ratio > 0.5).all()
    assert (ratio < 2.0).all()
    assert np.abs(np.mean(found, axis=0) - truth.mu[1:4]).max() < 3.0 * np.mean(bars)


def bars_of(data: Trajectories, dim: int = 3) -> Array:
    truth = lw.solve("GridMaze-9", dim)
    return bootstrap_errors(lambda rows: truth.transform(data.observations[rows]), truth.mu[:dim], data, 0)


def test_error_bars_shrink_with_the_root_of_the_data() -> None:
    few, many = (bars_of(lw.collect("GridMaze-9", steps=steps, seed=1)) for steps in (10_000, 160_000))
    np.testing.assert_allclose(few[1:] / many[1:], 4.0, rtol=0.25)
    assert few[0] == 0.0


def test_error_bars_of_a_part_are_scaled_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    data = lw.collect("GridMaze-9", steps=50_000, seed=1)
    whole = bars_of(data)
    monkeypatch.setattr("lapwing.training.read_out.BOOTSTRAP_TRANSITIONS", 10_000)
    np.testing.assert_allclose(bars_of(data)[1:], whole[1:], rtol=0.3)


def test_one_long_episode_is_resampled_in_parts() -> None:
    one, many = (bars_of(lw.collect("GridMaze-9", steps=40_000, episode_length=n, seed=1)) for n in (40_000, 50))
    ratio = one[1:] / many[1:]
    assert (ratio > 0.3).all()
    assert (ratio < 3.0).all()


def test_an_episode_without_a_step_changes_no_error_bar() -> None:
    data = lw.collect("GridMaze-9", steps=5000, seed=1)
    assert data.ids is not None
    flags = np.append(data.truncated, True)
    longer = replace(
        data,
        ids=np.append(data.ids, data.ids[:1]),
        offsets=np.append(data.offsets, data.num_states + 1),
        truncated=flags,
        terminated=~flags,
    )
    np.testing.assert_allclose(bars_of(longer)[1:], bars_of(data)[1:], rtol=0.25)
    one, other = (lw.solve(each, 3).certificate().data_angles for each in (longer, data))
    np.testing.assert_allclose(one, other, rtol=1e-3)


def test_error_bars_do_not_see_steps_between_episodes() -> None:
    # A data set of two states that never leave them: all energy would come from the boundaries.
    offsets = np.arange(0, 401, 4)
    flags = np.ones(100, dtype=bool)
    ids = np.repeat(np.arange(100) % 2, 4).astype(np.int32)
    data = Trajectories(np.eye(2, dtype=np.float32), offsets, ~flags, flags, ids)
    bars = bootstrap_errors(lambda rows: np.eye(2)[rows, :1], np.array([0.5]), data, 0)
    assert bars[0] == 0.0


def test_noise_that_is_new_at_every_step_does_not_turn_components_rotated_at_two_lags() -> None:
    data, truth = lw.collect("Box-1", 60_000, seed=0), lw.solve("Box-1", dim=5)
    rng = np.random.default_rng(0)
    clean = truth.transform(data.observations)
    noisy = clean + rng.standard_normal(clean.shape) * np.array([0.0, 0.6, 0.1, 0.6, 0.1])
    mixing = np.eye(5)
    mixing[1:, 1:] = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    values = noisy @ mixing + np.array([0.0, 0.3, 0.0, 0.0, 0.0])
    one_step = rayleigh_ritz(values, data).rotation
    start = SpectralEstimate(np.eye(5), np.ones(5), np.zeros(5), np.zeros(5), np.zeros(5), 0.0)
    turned = lag_rotated(start, lagged_moments(lambda rows: values[rows], data, (1, 2)))

    def cosines(found: np.ndarray) -> np.ndarray:
        return np.abs((found * clean).sum(axis=0)) / np.linalg.norm(found, axis=0) / np.linalg.norm(clean, axis=0)

    free_of_noise = (clean @ mixing + np.array([0.0, 0.3, 0.0, 0.0, 0.0])) @ turned.matrix
    assert cosines(free_of_noise)[1:].min() > 0.97
    assert cosines(values @ one_step).min() < 0.7
    np.testing.assert_allclose((values @ turned.matrix).mean(axis=0)[1:], 0.0, atol=1e-2)
    np.testing.assert_allclose(((values @ turned.matrix) ** 2).mean(axis=0), 1.0, rtol=2e-2)


def test_readings_disagree_beyond_their_errors() -> None:
    one = EigenvalueEstimate(np.array([1.0, 0.9, 0.8]), np.array([0.0, 0.01, 0.01]))
    other = EigenvalueEstimate(np.array([1.0, 0.9, 0.75]), np.array([0.0, 0.01, 0.01]))
    assert disagree(one, other, 3)
    assert not disagree(one, other, 2)
