"""Similarities of eigenvectors that do not depend on signs, nor (ours) on rotations inside an eigenspace."""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

RANK_TOLERANCE = 1e-7


def paper_cosines(learned: Values, truth: Values, weights: Values, clusters: list[range]) -> Values:
    """(d,) the paper's cosine similarity of each component with its true eigenvector.

    What the paper averages in Section 5 (its Figures 1, 3, 4A, 5 and 8-10, Tables 1 and 2).

    A component whose true eigenvalue repeats exactly is compared with its projection onto the whole eigenspace, because
    there is no one true eigenvector.

    Args:
        learned: (n, d) components on n states.
        truth: (n, m) true eigenvectors, m >= d if the last cluster needs more.
        weights: (n,) rho.
        clusters: which columns of ``truth`` share an eigenvalue.

    Returns:
        (d,) cosines between 0 and 1.

    Note:
        The paper does not say what it does with repeated eigenvalues. Its GridRoom-1, where eight of eleven repeat,
        scores 0.9912 with a deviation of 0.0002 over seeds; one by one that is out of reach.
    """
    root = np.sqrt(weights)[:, None]
    cosines = np.zeros(learned.shape[1])
    for cluster in clusters:
        columns = slice(cluster.start, min(cluster.stop, learned.shape[1]))
        if columns.start >= learned.shape[1]:
            break
        # A basis of its own, because the weights need not be those in which the truth is orthonormal.
        eigenspace = _orthonormal_basis(root * truth[:, cluster.start : cluster.stop])
        cosines[columns] = np.linalg.norm(eigenspace.T @ _unit_columns(root * learned[:, columns]), axis=0)
    return np.minimum(cosines, 1.0)


def subspace_cosines(learned: Values, truth: Values, weights: Values, clusters: list[range]) -> Values:
    """(d,) cosines of the principal angles between learned and true eigenspaces, cluster by cluster.

    Invariant to signs and to rotations inside a cluster; unlike :func:`paper_cosines`, two components that learned
    the same direction count once.

    Args:
        learned: (n, d) components on n states.
        truth: (n, m) true eigenvectors.
        weights: (n,) rho.
        clusters: which columns of ``truth`` share an eigenvalue.

    Returns:
        (d,) cosines between 0 and 1, in falling order within a cluster.
    """
    root = np.sqrt(weights)[:, None]
    cosines = np.zeros(learned.shape[1])
    for cluster in clusters:
        columns = range(cluster.start, min(cluster.stop, learned.shape[1]))
        if not columns:
            break
        inside = _orthonormal_basis(root * learned[:, columns.start : columns.stop])
        outside = _orthonormal_basis(root * truth[:, cluster.start : cluster.stop])
        found = np.linalg.svd(inside.T @ outside, compute_uv=False)
        cosines[columns.start : columns.start + len(found)] = found[: len(columns)]
    return np.minimum(cosines, 1.0)


def _unit_columns(values: Values) -> Values:
    norms = np.linalg.norm(values, axis=0)
    return values / np.where(norms > 0, norms, 1.0)


def _orthonormal_basis(values: Values) -> Values:
    """An orthonormal basis of the columns' span; fewer columns come back where some add nothing."""
    basis, sizes, _ = np.linalg.svd(_unit_columns(values), full_matrices=False)
    return basis[:, sizes > RANK_TOLERANCE * max(float(sizes[0]), 1e-300)]
