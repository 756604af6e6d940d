"""Which eigenvalues count as one, and which sign a vector has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from lapwing.operators.clusters import ABSOLUTE_TOLERANCE, canonical_signs, group_degenerate

eigenvalues = st.lists(st.floats(0.0, 2.0), max_size=30).map(sorted)
tolerances = st.sampled_from([0.0, 1e-6, 1e-2, 0.5])
matrices = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-9.0, 9.0, allow_subnormal=False)
)


@given(eigenvalues, tolerances)
def test_clusters_are_a_partition_in_order(values: list[float], tolerance: float) -> None:
    clusters = group_degenerate(values, tolerance)
    assert [i for cluster in clusters for i in cluster] == list(range(len(values)))
    assert all(len(cluster) for cluster in clusters)


@given(eigenvalues, tolerances)
def test_a_cluster_is_as_wide_as_the_tolerance_allows_and_no_wider(values: list[float], tolerance: float) -> None:
    for cluster in group_degenerate(values, tolerance):
        first, last = values[cluster.start], values[cluster.stop - 1]
        assert last - first <= tolerance * last + ABSOLUTE_TOLERANCE
        if cluster.stop < len(values):
            following = values[cluster.stop]
            assert following - first > tolerance * following + ABSOLUTE_TOLERANCE


@given(eigenvalues, tolerances, st.floats(0.0, 2.0))
def test_eigenvalues_further_up_do_not_change_the_clusters_below(
    values: list[float], tolerance: float, extra: float
) -> None:
    longer = group_degenerate([*values, 2.0 + extra], tolerance)
    assert longer[: len(group_degenerate(values, tolerance)) - 1] == group_degenerate(values, tolerance)[:-1]


def test_a_dense_spectrum_does_not_merge_link_by_link() -> None:
    values = 1.0 + 0.006 * np.arange(6)
    assert [list(cluster) for cluster in group_degenerate(values, 0.01)] == [[0, 1], [2, 3], [4, 5]]


def test_the_near_repeats_of_the_symmetric_rooms_join_at_one_percent_only() -> None:
    values = [0.4502, 0.4507, 0.4507, 0.4512, 0.4915]
    assert group_degenerate(values, 1e-2) == [range(0, 4), range(4, 5)]
    assert group_degenerate(values, 1e-6) == [range(0, 1), range(1, 3), range(3, 4), range(4, 5)]


def test_zeros_up_to_rounding_are_one_cluster() -> None:
    assert group_degenerate([-2e-16, 0.0, 3e-16, 1e-5], 1e-6) == [range(0, 3), range(3, 4)]


def test_no_eigenvalues_make_no_cluster() -> None:
    assert group_degenerate([], 1e-6) == []


@given(matrices, st.data())
def test_signs_do_not_depend_on_the_signs_given(vectors: np.ndarray, data: st.DataObject) -> None:
    signs = data.draw(arrays(np.float64, vectors.shape[1], elements=st.sampled_from([-1.0, 1.0])))
    np.testing.assert_array_equal(canonical_signs(vectors * signs), canonical_signs(vectors))


@given(matrices)
def test_the_sign_rule_only_turns_columns_and_makes_a_largest_entry_positive(vectors: np.ndarray) -> None:
    turned = canonical_signs(vectors)
    np.testing.assert_array_equal(np.abs(turned), np.abs(vectors))
    for before, after in zip(vectors.T, turned.T, strict=True):
        assert (after == before).all() or (after == -before).all()
        assert after.max() >= np.abs(after).max() * (1.0 - 1e-6)


@pytest.mark.parametrize("rounding", [0.0, 1e-12, -1e-12])
def test_entries_equal_up_to_rounding_are_equal_and_the_first_decides(rounding: float) -> None:
    antisymmetric = np.array([[-0.5], [0.1], [0.5 + rounding]])
    assert canonical_signs(antisymmetric)[0, 0] == 0.5


def test_a_zero_vector_stays_zero() -> None:
    assert (canonical_signs(np.zeros((3, 1))) == 0.0).all()
