"""A test of reversibility that needs no table: do steps look the same when time runs backwards?"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from lapwing.data.trajectories import Trajectories
from lapwing.storage.reading import forget_pages

BLOCKS = 32
MOST_STATES = 1 << 20
# Numbers of a block that are looked at together.
MOST_NUMBERS = 1 << 23
MOST_FUNCTIONS = 64
# Asymmetry of a reversible process stays below so many times what noise gives; smaller shares do not matter.
DIRECTED_ERRORS = 3.0
DIRECTED_SHARE = 0.02


class Directedness(NamedTuple):
    """How far dynamics are from reversible, as far as the observations show it.

    Attributes:
        share: in the plane that turns most, the antisymmetric part of the whitened ``E[x(s) x(s')^T]`` beside
            ``I`` less the symmetric part: 0 for reversible dynamics, 1 where drift and diffusion are alike.
        errors: the antisymmetric part in units of the largest that noise alone gives.
    """

    share: float
    errors: float

    @property
    def is_directed(self) -> bool:
        """Whether the asymmetry is beyond noise, and large enough to matter."""
        return self.errors > DIRECTED_ERRORS and self.share > DIRECTED_SHARE


def directedness(data: Trajectories) -> Directedness:
    """Compare one-step covariances of the observations forwards and backwards: for a reversible process they agree.

    Args:
        data: trajectories of one key; at most a million states are looked at. Of more than 64 numbers per observation,
            64 random sums are compared.

    Returns:
        The asymmetry, and how far it is beyond the noise between blocks of the data.

    Example:
        >>> from lapwing.data import collect
        >>> directedness(collect("NoisyRotation", 5_000)).is_directed, directedness(collect("Box-2", 5_000)).is_directed
        (True, False)
    """
    size = data.numbers(slice(1)).shape[1]
    mixing = np.random.default_rng(0).choice([-1.0, 1.0], (size, MOST_FUNCTIONS)) if size > MOST_FUNCTIONS else None
    states = min(data.num_states, MOST_STATES, BLOCKS * max(MOST_NUMBERS // size, 1))
    bounds = np.linspace(0, states - 1, BLOCKS + 1).astype(np.int64)
    products, grams, means = [], [], []
    for begin, end in itertools.pairwise(bounds.tolist()):
        rows = data.numbers(data.rows(np.arange(begin, end + 1)))
        values = rows if mixing is None else rows @ mixing
        forget_pages(data.observations)
        here = np.flatnonzero(data.steps_left(begin, end) >= 1)
        if len(here):
            before, after = values[here], values[here + 1]
            products.append(before.T @ after / len(here))
            grams.append((before.T @ before + after.T @ after) / (2 * len(here)))
            means.append((before + after).mean(axis=0) / 2.0)
    if len(products) < 2:
        return Directedness(0.0, 0.0)
    mean = np.mean(means, axis=0)
    centred = np.mean(grams, axis=0) - np.outer(mean, mean)
    # Entries that do not change beyond rounding are left out.
    squares = np.mean(grams, axis=0).diagonal()
    scale = np.where(np.diag(centred) > 1e-10 * squares, np.sqrt(np.abs(np.diag(centred))), np.inf)
    sizes, directions = np.linalg.eigh(centred / np.outer(scale, scale))
    keep = sizes > 1e-4
    if not keep.any():
        # Nothing changes.
        return Directedness(0.0, 0.0)
    whitening = directions[:, keep] / np.sqrt(sizes[keep]) / scale[:, None]
    whitened = whitening.T @ np.array(products) @ whitening
    antisymmetric = (whitened - whitened.transpose(0, 2, 1)) / 2.0
    average = whitened.mean(axis=0) - whitening.T @ np.outer(mean, mean) @ whitening
    # The plane that turns most, so that one rotation among many numbers is not lost in the noise of all of them.
    planes, strengths, _ = np.linalg.svd(antisymmetric.mean(axis=0))
    plane = planes[:, :2]
    # The spectral norm of a random matrix of this size.
    deviation = float(np.sqrt((antisymmetric.var(axis=0, ddof=1) / len(products)).mean()))
    noise = deviation * max(1.0, 2.0 * math.sqrt(len(average)) - 1.0)
    distance = float(np.linalg.norm(plane.T @ (np.eye(len(average)) - (average + average.T) / 2.0) @ plane, 2))
    return Directedness(float(strengths[0]) / max(distance, 1e-12), float(strengths[0]) / max(noise, 1e-12))
