"""Eigenfunctions in spans of smooth functions: against closed forms, and chosen by data held out."""

import numpy as np
import pytest

import lapwing as lw
from lapwing.operators.lagged import LaggedMoments, lagged_sums
from lapwing.training import smooth_functions
from lapwing.training.fitting import with_constant
from lapwing.training.smooth_functions import (
    MOST_INPUTS,
    WAVES,
    cosine_products,
    held_out_scores,
    lowest_frequencies,
    random_waves,
    ridged_ritz,
    smooth_targets,
    table_of_rows,
)


@pytest.fixture(scope="module")
def box() -> lw.Trajectories:
    return lw.collect("Box-2", 30_000, seed=0)


def exact_values(data: lw.Trajectories, count: int) -> np.ndarray:
    return lw.solve("Box-2", dim=count + 1).transform(data.observations)[:, 1:]


def test_cosines_are_orthogonal_over_their_box() -> None:
    low, high = np.array([-1.0, 2.0]), np.array([3.0, 2.5])
    middles = (np.arange(40) + 0.5) / 40
    grid = np.stack(np.meshgrid(*(a + (b - a) * middles for a, b in zip(low, high, strict=True))), axis=-1)
    values = cosine_products(low, high, 30)(grid.reshape(-1, 2)).astype(np.float64)
    gram = values.T @ values / len(values)
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-6)
    assert set(np.diag(gram).round(4)) == {0.25, 0.5}


@pytest.mark.parametrize(("inputs", "count"), [(1, 7), (2, 50), (4, 400), (MOST_INPUTS, 400)])
def test_frequencies_are_distinct_and_none_is_left_out(inputs: int, count: int) -> None:
    waves = lowest_frequencies(inputs, count)
    squares = (waves**2).sum(axis=1)
    assert waves.shape == (count, inputs)
    assert len({tuple(wave) for wave in waves}) == count
    assert (np.diff(squares) >= 0).all()
    assert (squares > 0).all()
    assert {1} == set(squares[:inputs])


def test_an_input_that_never_changes_is_no_trouble() -> None:
    functions = cosine_products(np.zeros(2), np.array([1.0, 0.0]), 9)
    assert np.isfinite(functions(np.array([[0.3, 0.0], [0.7, 0.0]]))).all()


def test_products_of_random_waves_estimate_a_gaussian() -> None:
    rng = np.random.default_rng(0)
    points, spread = rng.normal(size=(5, 2)) * [1.0, 10.0], np.array([1.0, 10.0])
    values = np.concatenate([random_waves(np.zeros(2), spread, 1.5, rng)(points) for _ in range(200)], axis=1)
    scaled = points / spread
    expected = np.exp(-0.5 * 1.5**2 * ((scaled[:, None] - scaled) ** 2).sum(axis=2))
    np.testing.assert_allclose(values @ values.T / (200 * WAVES), expected, atol=0.02)


def test_ridged_ritz_is_the_generalised_eigenproblem() -> None:
    rng = np.random.default_rng(1)
    factor, cross = rng.normal(size=(50, 5)), rng.normal(size=(5, 5))
    factor[:, 3] = 0.0
    cross[3] = cross[:, 3] = 0.0
    gram, cross = factor.T @ factor, cross + cross.T
    raised = gram + np.diag([0.0, *0.1 * np.diag(gram)[1:]]) + np.diag([0.0, 0.0, 0.0, 0.1, 0.0])
    mu = np.sort(np.linalg.eigvals(np.linalg.solve(raised, cross)).real)[::-1]
    for count in (2, 5, 9):
        found = ridged_ritz(LaggedMoments(cross[None], gram[None]), 0.1, count)
        assert found.shape == (5, min(count, 5))
        np.testing.assert_allclose(cross @ found, raised @ found * mu[:count], atol=1e-10)
        np.testing.assert_allclose(found.T @ raised @ found, np.eye(min(count, 5)), atol=1e-10)


def test_scores_on_data_held_out_are_highest_for_eigenfunctions(box: lw.Trajectories) -> None:
    exact, rng = exact_values(box, 3), np.random.default_rng(2)
    mu = 1.0 - lw.solve("Box-2", dim=4).eigenvalues
    tried = {"exact": exact, "noisy": exact + 0.3 * rng.normal(size=exact.shape), "two": exact[:, :2]}
    found = {}
    for name, values in tried.items():
        sums = lagged_sums(lambda rows, values=values: with_constant(values[rows]), box, (1,), 5)
        found[name] = held_out_scores(sums, 4, 0.0)
    assert found["exact"].shape == (5,)
    assert found["exact"].mean() == pytest.approx(mu.sum(), abs=0.01)
    assert found["noisy"].mean() < found["exact"].mean() - 0.1
    assert found["two"].mean() < found["exact"].mean() - 0.5


def test_a_box_is_solved_better_than_a_rough_network(box: lw.Trajectories) -> None:
    exact, rng = exact_values(box, 3), np.random.default_rng(3)
    rough = (exact + 0.2 * rng.normal(size=exact.shape)).astype(np.float32)
    targets = smooth_targets(rough, box, 4, 5, rng)
    assert targets is not None
    rows = np.arange(box.num_states)
    values = targets.at(rows)
    assert values.shape == (box.num_states, 5)
    np.testing.assert_allclose(values.T @ values / len(values), np.eye(5), atol=0.02)
    np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=0.02)
    # Equal sides: the first two belong to one eigenvalue.
    left = np.linalg.svd(values[:, :2].T @ exact[:, :2] / len(values))[1]
    assert left.min() > 0.99
    np.testing.assert_allclose(1 - targets.mu[:3], lw.solve("Box-2", dim=4).eigenvalues[1:], rtol=0.05)
    table = table_of_rows(targets, rows[::7])
    np.testing.assert_allclose(table.at(np.arange(len(rows[::7]))), values[::7], atol=1e-6)


def test_the_network_is_kept_where_it_does_better(box: lw.Trajectories, monkeypatch: pytest.MonkeyPatch) -> None:
    # One cosine alone cannot span what the network has.
    monkeypatch.setattr(smooth_functions, "COSINES", (1,))
    monkeypatch.setattr(smooth_functions, "WAVE_SCALES", ())
    exact = exact_values(box, 3).astype(np.float32)
    assert smooth_targets(exact, box, 4, 5, np.random.default_rng(0)) is None


def test_many_inputs_and_few_states_are_left_to_cells() -> None:
    rng = np.random.default_rng(0)
    few = lw.collect("Box-2", 1000, seed=0)
    assert smooth_targets(np.zeros((few.num_states, 2), np.float32), few, 2, 2, rng) is None
    wide = lw.from_arrays([rng.normal(size=(6000, MOST_INPUTS + 1))])
    assert smooth_targets(np.zeros((6000, 2), np.float32), wide, 2, 2, rng) is None


def test_more_eigenfunctions_than_the_functions_span_are_left_to_cells(
    box: lw.Trajectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smooth_functions, "COSINES", (20,))
    monkeypatch.setattr(smooth_functions, "WAVE_SCALES", ())
    rough = np.random.default_rng(0).normal(size=(box.num_states, 3)).astype(np.float32)
    assert smooth_targets(rough, box, 4, 20, np.random.default_rng(0)) is not None
    assert smooth_targets(rough, box, 4, 21, np.random.default_rng(0)) is None


def test_a_part_without_a_step_cannot_be_held_out() -> None:
    rng = np.random.default_rng(0)
    lengths = [4000, *[1] * 2000]
    data = lw.from_arrays(rng.normal(size=(6000, 2)), lengths=lengths)
    assert smooth_targets(np.zeros((6000, 2), np.float32), data, 2, 2, rng) is None


def test_only_some_of_many_states_choose_the_functions(box: lw.Trajectories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smooth_functions, "ENOUGH_STATES", 8000)
    rng = np.random.default_rng(3)
    rough = (exact_values(box, 3) + 0.3 * rng.normal(size=(box.num_states, 3))).astype(np.float32)
    targets = smooth_targets(rough, box, 4, 4, rng)
    assert targets is not None
    assert targets.num_rows == box.num_states
