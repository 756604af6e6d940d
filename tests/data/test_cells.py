"""Cells against brute force, and points that are fewer than cells or all the same."""

import numpy as np
from scipy.spatial.distance import cdist

from lapwing.data import cells
from lapwing.data.cells import k_means_centres, nearest_cells


def test_the_nearest_centre_is_that_of_all_distances(monkeypatch) -> None:
    monkeypatch.setattr(cells, "CHUNK_NUMBERS", 1000)
    rng = np.random.default_rng(0)
    points, centres = rng.standard_normal((500, 3)), rng.standard_normal((40, 3)).astype(np.float32)
    np.testing.assert_array_equal(nearest_cells(points, centres), cdist(points, centres).argmin(axis=1))


def test_separate_clusters_get_cells_of_their_own() -> None:
    rng = np.random.default_rng(1)
    middles = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    points = np.concatenate([middle + 0.1 * rng.standard_normal((300, 2)) for middle in middles])
    labels = nearest_cells(points, k_means_centres(points, 12, rng))
    by_cluster = [set(labels[300 * number : 300 * number + 300]) for number in range(3)]
    assert not by_cluster[0] & by_cluster[1]
    assert not by_cluster[1] & by_cluster[2]
    assert not by_cluster[0] & by_cluster[2]


def test_cells_follow_the_density() -> None:
    rng = np.random.default_rng(2)
    points = rng.random((5000, 1)) ** 2
    assert (k_means_centres(points, 50, rng) < 0.25).mean() > 0.4


def test_fewer_points_than_cells_and_points_that_are_all_the_same() -> None:
    rng = np.random.default_rng(3)
    assert len(k_means_centres(np.arange(5.0)[:, None], 100, rng)) == 5
    assert k_means_centres(np.full((50, 2), 7.0), 10, rng).tolist() == [[7.0, 7.0]]
