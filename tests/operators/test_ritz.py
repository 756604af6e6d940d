"""Rayleigh-Ritz on functions over an operator or over experience."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from closed_forms import random_chain, ring, ring_mu, room_eigenvalues
from lapwing.data import collect
from lapwing.data.trajectories import Trajectories
from lapwing.environments.box import BoxWorld, box_eigenfunctions
from lapwing.environments.registry import make_world
from lapwing.errors import LapwingError
from lapwing.operators import ritz
from lapwing.operators.operator import Operator, operator_from_matrix, operator_from_trajectories, operator_from_world
from lapwing.operators.ritz import quadratic_forms, rayleigh_ritz, ritz_from_forms
from lapwing.solving import solve

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def maze() -> Operator:
    return operator_from_world(make_world("GridMaze-17"))


@pytest.fixture(scope="module")
def experience() -> Trajectories:
    return collect("GridMaze-9", steps=2_000, seed=3)


@pytest.fixture(scope="module")
def box_experience() -> Trajectories:
    return collect("Box-2", steps=150_000, episode_length=5, seed=0)


def untabulated(data: Trajectories) -> Trajectories:
    """The same experience with one row per state instead of a table."""
    return replace(data, observations=data.observations[data.ids], ids=None)


def monomials(degree: int) -> Callable[[Array], Array]:
    """Legendre polynomials of both coordinates up to a total degree."""

    def functions(xy: Array) -> Array:
        rows, columns = (np.polynomial.legendre.legvander(2.0 * xy[:, axis], degree) for axis in (0, 1))
        return np.column_stack(
            [rows[:, i] * columns[:, j] for i in range(degree + 1) for j in range(degree + 1) if i + j <= degree]
        )

    return functions


def test_any_mixing_of_exact_eigenvectors_is_undone(maze: Operator) -> None:
    truth = solve(maze, 6)
    mixing = np.random.default_rng(0).standard_normal((6, 6))
    assert np.linalg.cond(mixing) < 1e3
    values = truth.transform(maze.observations)
    found = rayleigh_ritz(values @ mixing, maze)
    np.testing.assert_allclose(found.mu, truth.mu[:6], rtol=0, atol=1e-12)
    overlaps = np.abs((values @ mixing @ found.rotation).T @ (values * maze.rho[:, None]))
    np.testing.assert_allclose(overlaps, np.eye(6), rtol=0, atol=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_no_ritz_value_exceeds_the_true_one_and_the_functions_are_orthonormal(seed: int) -> None:
    operator = operator_from_matrix(random_chain(12, seed % 7))
    mu = np.linalg.eigvalsh(operator.symmetrised().toarray())[::-1]
    values = np.random.default_rng(seed).standard_normal((12, 4))
    found = rayleigh_ritz(values, operator)
    assert (found.mu <= mu[:4] + 1e-12).all()
    assert (found.mu >= mu[-4:] - 1e-12).all()
    functions = values @ found.rotation
    np.testing.assert_allclose(functions.T @ (functions * operator.rho[:, None]), np.eye(4), rtol=0, atol=1e-9)
    assert (np.diff(found.mu) <= 0).all()


def test_all_functions_give_all_eigenvalues_even_of_a_non_reversible_chain() -> None:
    found = rayleigh_ritz(np.eye(9), operator_from_matrix(ring(9, 0.7, 0.1)))
    np.testing.assert_allclose(found.mu, np.sort(ring_mu(9, 0.7, 0.1).real)[::-1], rtol=0, atol=1e-13)


def test_cosines_of_an_empty_room_are_found_among_polynomials() -> None:
    room = operator_from_world(make_world("room:12x20"))
    found = rayleigh_ritz(monomials(10), room)
    np.testing.assert_allclose(1.0 - found.mu[:6], room_eigenvalues(12, 20)[:6], rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_redundant_and_vanishing_functions_lower_the_rank_only(maze: Operator, scale: float) -> None:
    values = solve(maze, 3).transform(maze.observations)
    padded = np.column_stack([scale * values, values[:, 0] - 2.0 * values[:, 2], np.zeros(len(values))])
    found = rayleigh_ritz(padded, maze)
    assert found.rotation.shape == (5, 3)
    np.testing.assert_allclose(found.mu, solve(maze, 3).mu[:3], rtol=0, atol=1e-10)
    assert (found.rotation[4] == 0.0).all()


def test_values_and_the_function_that_gives_them_agree(maze: Operator, experience: Trajectories) -> None:
    functions = monomials(2)
    for data in (maze, experience, untabulated(experience)):
        by_function, by_values = rayleigh_ritz(functions, data), rayleigh_ritz(functions(data.observations), data)
        np.testing.assert_allclose(by_function.mu, by_values.mu, rtol=0, atol=1e-14)
        np.testing.assert_allclose(by_function.rotation, by_values.rotation, rtol=0, atol=1e-12)


def test_experience_with_and_without_a_table_agrees(experience: Trajectories, monkeypatch: pytest.MonkeyPatch) -> None:
    assert experience.has_table
    tabulated = quadratic_forms(monomials(3), experience)
    for chunk in (1 << 16, 64):
        monkeypatch.setattr(ritz, "CHUNK_PAIRS", chunk)
        for one, other in zip(tabulated, quadratic_forms(monomials(3), untabulated(experience)), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


def test_the_forms_are_means_over_both_ends_of_every_transition() -> None:
    data = Trajectories(
        observations=np.array([[1.0], [2.0], [5.0], [7.0], [4.0]]),
        offsets=np.array([0, 3, 5]),
        terminated=np.zeros(2, dtype=bool),
        truncated=np.ones(2, dtype=bool),
    )
    gram, cross = quadratic_forms(lambda rows: rows, data)
    # Transitions 1-2, 2-5 and 7-4; never 5-7, which crosses a reset.
    assert gram.item() == pytest.approx((1 + 4 + 4 + 25 + 49 + 16) / 6.0)
    assert cross.item() == pytest.approx((2 + 10 + 28) / 3.0)


def test_values_of_states_without_a_transition_are_left_out() -> None:
    data = Trajectories(
        observations=np.arange(5.0)[:, None],
        offsets=np.array([0, 3, 4, 6]),
        terminated=np.zeros(3, dtype=bool),
        truncated=np.ones(3, dtype=bool),
        ids=np.array([0, 1, 3, 4, 3, 1], dtype=np.int32),
    )
    values = np.random.default_rng(0).standard_normal((5, 2))
    expected = quadratic_forms(values[[0, 1, 3]], operator_from_trajectories(data))
    for one, other in zip(quadratic_forms(values, data), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_rayleigh_quotients_of_a_boxs_cosines_are_its_eigenvalues_within_noise(
    box_experience: Trajectories,
) -> None:
    truth = solve("Box-2", 8)
    values = truth.transform(box_experience.observations)
    positions = np.concatenate(list(box_experience.pair_positions()))
    episodes = np.searchsorted(box_experience.offsets, positions, side="right") - 1
    before, after = values[positions], values[positions + 1]
    # Per episode, half the squared step less what the eigenvalue predicts: independent, of mean zero.
    excess = (before - after) ** 2 / 2.0 - truth.eigenvalues * (before**2 + after**2) / 2.0
    per_episode = np.stack([np.bincount(episodes, weights=column) for column in excess.T], axis=1)
    error = per_episode.std(axis=0) / np.sqrt(len(per_episode))
    assert (np.abs(per_episode.mean(axis=0))[1:] < 4.0 * error[1:]).all()
    # The noise is small enough to tell the right eigenvalues from ones 10 % away.
    power = (before**2).sum(axis=0) / box_experience.num_episodes
    assert (4.0 * error[1:] < 0.1 * truth.eigenvalues[1:] * power[1:]).all()


@pytest.mark.parametrize("kind", ["polynomials", "cosines"])
def test_ritz_on_a_boxs_experience_reproduces_its_eigenvalues(box_experience: Trajectories, kind: str) -> None:
    modes = BoxWorld((1.0, 0.8), 0.1).closed_form(20).modes
    functions = monomials(6) if kind == "polynomials" else lambda xy: box_eigenfunctions(modes, xy)
    found = rayleigh_ritz(functions, box_experience)
    truth = solve("Box-2", 6)
    np.testing.assert_allclose(1.0 - found.mu[:6], truth.eigenvalues, rtol=0.03, atol=1e-4)
    values = np.asarray(functions(box_experience.observations)) @ found.rotation[:, :6]
    overlaps = np.abs((values * truth.transform(box_experience.observations)).mean(axis=0))
    assert (overlaps > 0.97).all()


@pytest.mark.parametrize(
    "wrong", [np.zeros(87), np.zeros((86, 2)), np.zeros((87, 2, 1))], ids=["flat", "short", "deep"]
)
def test_values_of_another_shape_are_refused(maze: Operator, wrong: Array) -> None:
    with pytest.raises(LapwingError, match=r"shape \(87, k\)"):
        rayleigh_ritz(wrong, maze)
    with pytest.raises(LapwingError, match=r"shape \(87, k\)"):
        rayleigh_ritz(lambda _: wrong, maze)


def test_values_must_cover_the_whole_data(experience: Trajectories) -> None:
    for data in (experience, untabulated(experience)):
        with pytest.raises(LapwingError, match="the functions must give values of shape"):
            rayleigh_ritz(np.zeros((3, 2)), data)


def test_functions_that_vanish_or_are_not_finite_are_refused(maze: Operator) -> None:
    with pytest.raises(LapwingError, match="zero on the data"):
        rayleigh_ritz(np.zeros((87, 2)), maze)
    with pytest.raises(LapwingError, match="zero on the data"):
        rayleigh_ritz(np.zeros((87, 0)), maze)
    with pytest.raises(LapwingError, match="NaN or infinite"):
        rayleigh_ritz(np.full((87, 2), np.nan), maze)


def test_forms_that_are_not_quite_symmetric_are_symmetrised() -> None:
    found = ritz_from_forms(np.eye(2), np.array([[0.5, 0.2], [0.0, 0.5]]))
    np.testing.assert_allclose(found.mu, [0.6, 0.4])
