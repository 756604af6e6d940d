"""Eigenfunctions solved in a span of smooth functions: targets for networks that see a few real numbers.

Cells know nothing of smoothness, and pay for it in noise. Smooth functions of a few inputs span slow components well,
and the Rayleigh-Ritz problem in their span (Galerkin's method) averages over all the data. Which functions, with how
much ridge, and whether at all, is decided by parts of the data held out: the sum of the Rayleigh quotients there (the
generalised matrix Rayleigh quotient of McGibbon and Pande, 2015).
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from lapwing.data.trajectories import Trajectories
from lapwing.operators.lagged import LaggedMoments, LaggedSums, lagged_sums
from lapwing.operators.ritz import ritz_from_forms
from lapwing.training.batches import rows_of
from lapwing.training.fitting import Targets, with_constant

# With more inputs than this, functions of few frequencies no longer span much.
MOST_INPUTS = 8
COSINES = (100, 400)
WAVES = 200
WAVE_SCALES = (2.0, 4.0)
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3)
# Parts of the data, each held out once; and states from which functions are chosen.
PARTS = 5
ENOUGH_STATES = 1 << 18
FEWEST_STATES = 5000
ENCODED_ROWS = 1 << 15

Functions = Callable[[NDArray[Any]], NDArray[np.float32]]
"""From (n, ...) observations to (n, k) values."""


@dataclass(frozen=True)
class SmoothTargets:
    """Eigenfunctions in a span of smooth functions of the observations.

    Attributes:
        observations: (n, ...) of the data.
        functions: k of them.
        matrix: (1 + k, m) from a constant and the functions to eigenfunctions of mean square one, not the constant one.
        mu: (m,) their one-step Rayleigh quotients.
    """

    observations: NDArray[Any]
    functions: Functions
    matrix: NDArray[np.float64]
    mu: NDArray[np.float64]

    @property
    def num_rows(self) -> int:
        """How many observations there are."""
        return len(self.observations)

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The wanted values.

        Args:
            rows: (k,) of the observations.

        Returns:
            (k, m).
        """
        parts = [rows[begin : begin + ENCODED_ROWS] for begin in range(0, len(rows), ENCODED_ROWS)]
        found = [self.functions(rows_of(self.observations, part)) @ self.matrix[1:] + self.matrix[0] for part in parts]
        return np.concatenate(found) if found else np.zeros((0, len(self.mu)))


AnyTargets = Targets | SmoothTargets
"""What a network is fitted to: contributions of cells, or smooth functions."""


def table_of_rows(targets: SmoothTargets, rows: NDArray[np.int64]) -> Targets:
    """The targets at some observations, each a cell of its own.

    Args:
        targets: smooth.
        rows: (k,) of the observations.

    Returns:
        Targets of one partition, at these observations alone.
    """
    labels = np.arange(len(rows), dtype=np.int32)
    return Targets(labels[None], targets.at(rows)[None].astype(np.float32), targets.mu)


class Candidate(NamedTuple):
    """Functions with the ridge that does best on parts held out, and the sum of Rayleigh quotients on each part."""

    functions: Functions
    ridge: float
    scores: NDArray[np.float64]


def smooth_targets(
    values: NDArray[np.float32], data: Trajectories, dim: int, count: int, rng: np.random.Generator
) -> SmoothTargets | None:
    """Eigenfunctions in the span of smooth functions, if those do better on data held out than the network does.

    Args:
        values: (states, d) the network's outputs.
        data: trajectories without a table.
        dim: how many components must be good.
        count: how many eigenfunctions, without the constant.
        rng: source of random functions.

    Returns:
        The targets; None where the network does better, observations have too many entries, states are few, or more
        eigenfunctions are wanted than the functions span.
    """
    inputs = int(np.prod(data.observations.shape[1:]))
    if inputs > MOST_INPUTS or data.num_states < FEWEST_STATES:
        return None
    some = _spread_episodes(data)
    rows = np.concatenate([np.arange(data.offsets[one], data.offsets[one + 1]) for one in some])
    chosen, outputs = data.take(some), values[rows]
    sums = lagged_sums(lambda at: with_constant(outputs[at]), chosen, (1,), PARTS)
    if not sums.pairs.all():
        return None
    network = held_out_scores(sums, dim, 0.0)
    best = max((_candidate(one, chosen, dim) for one in _bases(data, rng)), key=lambda one: one.scores.mean())
    gains = best.scores - network
    if not gains.mean() > gains.std() / np.sqrt(len(gains)):
        return None
    moments = lagged_sums(_values_at(best.functions, data), data, (1,)).moments()
    found = ridged_ritz(moments, best.ridge, 1 + count)[:, 1:]
    found[0] -= moments.grams[0][0] @ found
    turned = ritz_from_forms(*(found.T @ form[0] @ found for form in (moments.grams, moments.products)))
    if len(turned.mu) < count:
        return None
    return SmoothTargets(data.observations, best.functions, found @ turned.rotation, turned.mu)


def held_out_scores(sums: LaggedSums, dim: int, ridge: float) -> NDArray[np.float64]:
    """Sums of Rayleigh quotients on each part, of eigenfunctions solved on the others.

    Args:
        sums: of a constant and other functions, at lag 1, of each part.
        dim: how many eigenfunctions.
        ridge: as in :func:`ridged_ritz`.

    Returns:
        (parts,) scores; the larger the better, at most ``dim``.
    """
    scores = []
    for part in range(len(sums.pairs)):
        found = ridged_ritz(sums.moments(without=part), ridge, dim)
        held = sums.block(part)
        gram, cross = (found.T @ form[0] @ found for form in (held.grams, held.products))
        scores.append(np.trace(np.linalg.lstsq(gram, cross, rcond=None)[0]))
    return np.array(scores)


def ridged_ritz(moments: LaggedMoments, ridge: float, count: int) -> NDArray[np.float64]:
    """Rayleigh-Ritz with the squares of all functions but the first, the constant, raised by a share.

    Args:
        moments: at lag 1.
        ridge: the share.
        count: how many eigenfunctions.

    Returns:
        (k, count) matrix to the eigenfunctions, largest eigenvalues first; fewer columns where k are fewer, or where
        without a ridge the functions span less.
    """
    gram, cross = moments.grams[0], moments.products[0]
    if not ridge:
        return ritz_from_forms(gram, cross, cut=1e-9).rotation[:, :count]
    squares = np.diag(gram)
    raised = ridge * np.where(squares > 0, squares, 1.0)
    raised[0] = 0.0
    # A ridge makes the form definite: one factorisation and a few eigenvectors, a quarter of the time of all of them.
    last = len(gram) - 1
    wanted = (max(0, last + 1 - count), last)
    return eigh((cross + cross.T) / 2.0, gram + np.diag(raised), subset_by_index=wanted)[1][:, ::-1]


def cosine_products(low: NDArray[np.float64], high: NDArray[np.float64], count: int) -> Functions:
    """Products of cosines along each input, those of the lowest frequencies: the eigenfunctions of a box.

    Args:
        low: (inputs,) corner of the box.
        high: (inputs,) the opposite one.
        count: how many functions.

    Returns:
        The functions.

    Example:
        >>> functions = cosine_products(np.zeros(1), np.ones(1), 2)
        >>> functions(np.array([[0.0], [0.5], [1.0]])).round(3).tolist()
        [[1.0, 1.0], [0.0, -1.0], [-1.0, 1.0]]
    """
    waves = lowest_frequencies(len(low), count)
    scale = np.pi / np.where(high > low, high - low, 1.0)

    def functions(rows: NDArray[Any]) -> NDArray[np.float32]:
        phases = (np.asarray(rows, dtype=np.float64).reshape(len(rows), -1) - low) * scale
        values = np.ones((len(phases), len(waves)), dtype=np.float32)
        for number, wave in enumerate(waves.T):
            values *= np.cos(np.outer(phases[:, number], np.arange(wave.max() + 1))).astype(np.float32)[:, wave]
        return values

    return functions


def lowest_frequencies(inputs: int, count: int) -> NDArray[np.int64]:
    """Half-waves along each input, by the sum of their squares, without the constant.

    Args:
        inputs: how many numbers an observation has.
        count: how many.

    Returns:
        (count, inputs) whole numbers.

    Example:
        >>> lowest_frequencies(2, 4).tolist()
        [[0, 1], [1, 0], [1, 1], [0, 2]]
    """
    radius, inside = 0, np.zeros((0, inputs), dtype=np.int64)
    while len(inside) < count:
        radius += 1
        waves = np.array(list(itertools.product(range(radius + 1), repeat=inputs)), dtype=np.int64)
        squares = (waves**2).sum(axis=1)
        inside = waves[(squares > 0) & (squares <= radius**2)]
    return inside[np.argsort((inside**2).sum(axis=1), kind="stable")][:count]


def random_waves(
    centre: NDArray[np.float64], spread: NDArray[np.float64], scale: float, rng: np.random.Generator
) -> Functions:
    """Sines and cosines of random directions and frequencies (Rahimi and Recht, 2007).

    Args:
        centre: (inputs,) mean of the observations.
        spread: (inputs,) their standard deviation.
        scale: standard deviation of the frequencies, in radians per standard deviation of an input.
        rng: source of randomness.

    Returns:
        Twice :data:`WAVES` functions.
    """
    frequencies = scale * rng.standard_normal((len(centre), WAVES)) / np.maximum(spread, 1e-12)[:, None]

    def functions(rows: NDArray[Any]) -> NDArray[np.float32]:
        phases = (np.asarray(rows, dtype=np.float64).reshape(len(rows), -1) - centre) @ frequencies
        return np.concatenate([np.sin(phases), np.cos(phases)], axis=1).astype(np.float32)

    return functions


def _bases(data: Trajectories, rng: np.random.Generator) -> list[Functions]:
    """The functions to choose among."""
    points = np.asarray(data.observations[:: max(1, data.num_states // ENOUGH_STATES)], dtype=np.float64)
    points = points.reshape(len(points), -1)
    low, high, centre, spread = points.min(axis=0), points.max(axis=0), points.mean(axis=0), points.std(axis=0)
    found = [cosine_products(low, high, count) for count in COSINES]
    return found + [random_waves(centre, spread, scale, rng) for scale in WAVE_SCALES]


def _candidate(functions: Functions, data: Trajectories, dim: int) -> Candidate:
    sums = lagged_sums(_values_at(functions, data), data, (1,), PARTS)
    tried = [Candidate(functions, ridge, held_out_scores(sums, dim, ridge)) for ridge in RIDGES]
    return max(tried, key=lambda one: one.scores.mean())


def _values_at(functions: Functions, data: Trajectories) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    return lambda rows: with_constant(functions(rows_of(data.observations, rows)))


def _spread_episodes(data: Trajectories) -> NDArray[np.int64]:
    """Numbers of episodes with about :data:`ENOUGH_STATES` states, from all over the data."""
    return np.arange(0, data.num_episodes, max(1, data.num_states // ENOUGH_STATES))
