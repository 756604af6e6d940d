"""Angles that noise in the data turns eigenvectors by, against what it really does over many data sets."""

import numpy as np
import pytest

import lapwing as lw
from lapwing.diagnostics.noise import sampling_angles, step_variances


def true_sines(world: str, steps: int, dim: int, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Root mean square sines over data sets, and the mean of the predicted ones, for each component."""
    truth = lw.solve(world, dim)
    squares, predicted = [], []
    for seed in seeds:
        model = lw.solve(lw.collect(world, steps, seed=seed), dim)
        cosines = lw.score(model, truth).cosines
        squares.append(1.0 - cosines**2)
        predicted.append(model.certificate().data_angles)
    return np.sqrt(np.mean(squares, axis=0)), np.mean(predicted, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("world", "steps", "dim"), [("GridMaze-17", 100_000, 6), ("Rooms-16", 400_000, 6)])
def test_predicted_angles_are_those_of_independent_data_sets(world: str, steps: int, dim: int) -> None:
    real, predicted = true_sines(world, steps, dim, range(12))
    # The constant is known whatever the data; the others to within the scatter of twelve draws.
    assert predicted[0] < 1e-6
    assert (predicted[1:] < 2.0 * real[1:]).all()
    assert (predicted[1:] > 0.5 * real[1:]).all()


def test_four_times_the_data_halve_the_angles() -> None:
    few = lw.solve(lw.collect("GridMaze-17", 50_000, seed=1), 6).certificate().data_angles[1:]
    many = lw.solve(lw.collect("GridMaze-17", 200_000, seed=1), 6).certificate().data_angles[1:]
    np.testing.assert_allclose(few / many, 2.0, rtol=0.2)


def test_components_of_one_cluster_need_not_be_told_apart() -> None:
    data = lw.collect("GridRoom-1", 100_000, seed=0)
    truth = lw.solve("GridRoom-1", 4)
    numbers = np.asarray(truth.encoder.values)

    def values_at(rows: np.ndarray) -> np.ndarray:
        return numbers[rows]

    apart = sampling_angles(values_at, 1.0 - truth.mu + np.array([0.0, 0.0, 1e-4, 0.0]), data, 1e-6)
    together = sampling_angles(values_at, 1.0 - truth.mu, data, 1e-6)
    assert apart[1] > 10.0 * together[1]


def test_few_data_are_called_too_few_and_expected_cosine_falls() -> None:
    few = lw.solve(lw.collect("Rooms-16", 20_000, seed=0), 11).certificate()
    many = lw.solve(lw.collect("Rooms-16", 3_000_000, seed=0), 11).certificate()
    assert "too few data" in few.verdicts
    assert few.expected_cosine < 0.99 < 0.999 < many.expected_cosine


def test_exact_dynamics_have_no_noise() -> None:
    certificate = lw.solve("Rooms-16", 5).certificate()
    assert (certificate.data_angles == 0).all()
    assert certificate.expected_cosine == pytest.approx(1.0)


def test_one_long_episode_is_as_noisy_as_it_is() -> None:
    data = lw.collect("Rooms-16", 20_000, episode_length=20_000, seed=0)
    counted = lw.solve(data, 6)
    certificate = counted.certificate()
    assert lw.score(counted, lw.solve("Rooms-16", 6)).subspace_cosine < 0.9
    assert certificate.expected_cosine < 0.9
    assert set(certificate.verdicts[1:]) == {"too few data"}


def test_a_handful_of_steps_tells_nothing() -> None:
    data = lw.collect("GridMaze-7", 60, episode_length=60, seed=0)
    assert set(lw.solve(data, 3).certificate().data_angles) == {1.0}


def test_a_known_rho_leaves_the_noise_of_steps_alone_and_predicts_it() -> None:
    world, dim = "GridMaze-17", 5
    truth = lw.solve(world, dim)
    real, predicted, spread, bars, visited = [], [], [], [], []
    for seed in range(12):
        data = lw.collect(world, 50_000, seed=seed)
        operator = lw.operator(data, rho="uniform")
        model = lw.solve(data, dim, rho="uniform")
        real.append(1.0 - lw.score(model, truth).cosines[1:] ** 2)
        visited.append(1.0 - lw.score(lw.solve(data, dim), truth).cosines[1:] ** 2)
        predicted.append(model.certificate().data_angles[1:])
        spread.append(model.eigenvalues[1:dim])
        bars.append(np.sqrt(np.diag(step_variances(operator, model.transform(operator.observations))))[1:])
    real_sines = np.sqrt(np.mean(real, axis=0))
    assert (np.sqrt(np.mean(visited, axis=0)) > 3.0 * real_sines).all()
    assert (np.mean(predicted, axis=0) < 2.0 * real_sines).all()
    assert (np.mean(predicted, axis=0) > 0.5 * real_sines).all()
    ratio = np.mean(bars, axis=0) / np.std(spread, axis=0, ddof=1)
    assert (ratio > 0.5).all()
    assert (ratio < 2.0).all()
