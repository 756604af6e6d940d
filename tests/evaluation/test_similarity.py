"""Similarities: invariant where they should be, and not where they should not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lapwing.evaluation.similarity import paper_cosines, subspace_cosines

Array = NDArray[np.float64]

CLUSTERS = [range(0, 1), range(1, 3), range(3, 6), range(6, 7)]
seeds = st.integers(0, 2**32 - 1)
both = pytest.mark.parametrize("similarity", [paper_cosines, subspace_cosines])


def orthogonal(size: int, rng: np.random.Generator) -> Array:
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def truth_and_weights(rng: np.random.Generator, states: int = 12, dim: int = 7) -> tuple[Array, Array]:
    """Functions that are orthonormal under weights of their own."""
    weights = rng.dirichlet(np.ones(states)) * 0.9 + 0.1 / states
    basis = np.linalg.qr(rng.standard_normal((states, dim)))[0]
    return basis / np.sqrt(weights)[:, None], weights


def within_clusters(rng: np.random.Generator) -> Array:
    rotation = np.zeros((7, 7))
    for cluster in CLUSTERS:
        rotation[cluster.start : cluster.stop, cluster.start : cluster.stop] = orthogonal(len(cluster), rng)
    return rotation


@both
@given(seed=seeds)
def test_the_truth_itself_scores_one_whatever_its_signs_and_lengths(similarity, seed: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    truth, weights = truth_and_weights(rng)
    scaled = truth * rng.choice([-1.0, 1.0], size=7) * rng.uniform(0.1, 10.0, size=7)
    np.testing.assert_allclose(similarity(scaled, truth, weights, CLUSTERS), 1.0, rtol=0, atol=1e-12)


@both
@given(seed=seeds)
def test_signs_of_any_guess_do_not_matter(similarity, seed: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    truth, weights = truth_and_weights(rng)
    guess = rng.standard_normal((12, 7))
    expected = similarity(guess, truth, weights, CLUSTERS)
    signs, other_signs = rng.choice([-1.0, 1.0], size=(2, 7))
    np.testing.assert_allclose(similarity(guess * signs, truth * other_signs, weights, CLUSTERS), expected, atol=1e-12)
    assert (expected >= 0).all()
    assert (expected <= 1).all()


@given(seeds)
def test_ours_does_not_depend_on_rotations_inside_a_cluster_of_guess_or_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, weights = truth_and_weights(rng)
    guess = truth + 0.3 * rng.standard_normal((12, 7))
    # Principal angles belong to spans; a rotation of columns of unequal length would change their lengths too.
    expected = subspace_cosines(guess, truth, weights, CLUSTERS)
    found = subspace_cosines(guess @ within_clusters(rng), truth @ within_clusters(rng), weights, CLUSTERS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@given(seeds)
def test_a_truth_rotated_inside_its_clusters_scores_one_by_both(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, weights = truth_and_weights(rng)
    turned = truth @ within_clusters(rng)
    for similarity in (paper_cosines, subspace_cosines):
        np.testing.assert_allclose(similarity(turned, truth, weights, CLUSTERS), 1.0, rtol=0, atol=1e-12)


@settings(max_examples=25)
@given(seeds, st.floats(0.2, 1.3))
def test_a_rotation_across_clusters_is_penalised_by_its_cosine(seed: int, angle: float) -> None:
    rng = np.random.default_rng(seed)
    truth, weights = truth_and_weights(rng)
    turned = truth.copy()
    turned[:, 0] = np.cos(angle) * truth[:, 0] + np.sin(angle) * truth[:, 6]
    turned[:, 6] = np.cos(angle) * truth[:, 6] - np.sin(angle) * truth[:, 0]
    for similarity in (paper_cosines, subspace_cosines):
        found = similarity(turned, truth, weights, CLUSTERS)
        np.testing.assert_allclose(found[[0, 6]], np.cos(angle), rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[1:6], 1.0, rtol=0, atol=1e-12)


def test_the_same_direction_learned_twice_counts_once_by_ours_and_twice_by_the_papers() -> None:
    truth, weights = truth_and_weights(np.random.default_rng(0))
    doubled = truth.copy()
    doubled[:, 2] = -2.0 * doubled[:, 1]
    np.testing.assert_allclose(paper_cosines(doubled, truth, weights, CLUSTERS), 1.0)
    np.testing.assert_allclose(subspace_cosines(doubled, truth, weights, CLUSTERS), [1, 1, 0, 1, 1, 1, 1], atol=1e-7)


@both
def test_a_vanishing_component_scores_zero_and_spoils_no_other(similarity) -> None:  # type: ignore[no-untyped-def]
    truth, weights = truth_and_weights(np.random.default_rng(0))
    silent = truth.copy()
    silent[:, [0, 5]] = 0.0
    np.testing.assert_allclose(similarity(silent, truth, weights, CLUSTERS), [0, 1, 1, 1, 1, 0, 1], atol=1e-12)
    np.testing.assert_array_equal(similarity(np.zeros((12, 7)), truth, weights, CLUSTERS), 0.0)


@both
def test_a_small_example_by_hand(similarity) -> None:  # type: ignore[no-untyped-def]
    weights = np.array([0.5, 0.25, 0.25])
    truth = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, np.sqrt(2.0)], [1.0, -1.0, -np.sqrt(2.0)]])
    guess = np.array([[1.0, 2.0], [1.0, 0.0], [1.0, 0.0]])
    # The second guess has E[g^2] = 2, <g, 1> = 1 and <g, u_2> = 1: its cosine with u_2 is 1 / sqrt(2).
    found = similarity(guess, truth, weights, [range(0, 1), range(1, 2), range(2, 3)])
    np.testing.assert_allclose(found, [1.0, np.sqrt(0.5)], rtol=0, atol=1e-12)


def test_principal_angles_of_two_planes_by_hand() -> None:
    angle = 0.4
    truth = 2.0 * np.eye(4)[:, :2]
    guess = np.array([[1.0, 0.0], [0.0, np.cos(angle)], [0.0, np.sin(angle)], [0.0, 0.0]])
    turned = guess @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    found = subspace_cosines(turned, truth, np.full(4, 0.25), [range(0, 2)])
    np.testing.assert_allclose(found, [1.0, np.cos(angle)], rtol=0, atol=1e-12)
    projections = [np.hypot(0.6, 0.8 * np.cos(angle)), np.hypot(0.8, 0.6 * np.cos(angle))]
    np.testing.assert_allclose(paper_cosines(turned, truth, np.full(4, 0.25), [range(0, 2)]), projections, atol=1e-12)


@both
@given(seed=seeds)
def test_part_of_a_cluster_is_compared_with_the_whole_of_it(similarity, seed: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    truth, weights = truth_and_weights(rng)
    turned = (truth @ within_clusters(rng))[:, :5]
    found = similarity(turned, truth, weights, CLUSTERS)
    assert found.shape == (5,)
    np.testing.assert_allclose(found, 1.0, rtol=0, atol=1e-12)


@both
def test_weights_need_not_be_those_in_which_the_truth_is_orthonormal(similarity) -> None:  # type: ignore[no-untyped-def]
    truth, _ = truth_and_weights(np.random.default_rng(0))
    other = np.random.default_rng(1).dirichlet(np.ones(12))
    np.testing.assert_allclose(similarity(truth, truth, other, CLUSTERS), 1.0, rtol=0, atol=1e-12)
    single = [range(i, i + 1) for i in range(7)]
    guess = np.random.default_rng(2).standard_normal((12, 7))
    norms = np.sqrt((other @ guess**2) * (other @ truth**2))
    expected = np.abs(other @ (guess * truth)) / norms
    np.testing.assert_allclose(similarity(guess, truth, other, single), expected, rtol=0, atol=1e-12)


@both
def test_states_of_no_weight_do_not_count(similarity) -> None:  # type: ignore[no-untyped-def]
    truth, weights = truth_and_weights(np.random.default_rng(0))
    guess = np.concatenate([truth, np.full((2, 7), 9.0)])
    padded = np.concatenate([truth, np.zeros((2, 7))])
    found = similarity(guess, padded, np.concatenate([weights, np.zeros(2)]), CLUSTERS)
    np.testing.assert_allclose(found, 1.0, rtol=0, atol=1e-12)
