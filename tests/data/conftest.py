"""What several tests of experience need: ragged data, a judge of step frequencies, and a way to forget boundaries."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2

from lapwing.data.trajectories import Trajectories

MakeRagged = Callable[..., Trajectories]
StepsMatch = Callable[[csr_array, csr_array], bool]
Glue = Callable[[Trajectories], Trajectories]


@pytest.fixture(scope="session")
def make_ragged() -> MakeRagged:
    """Episodes of given numbers of states through a table of random observations."""

    def make(states: list[int], table: int = 4, seed: int = 0, tabulated: bool = True) -> Trajectories:
        rng = np.random.default_rng(seed)
        offsets = np.concatenate([[0], np.cumsum(states)]).astype(np.int64)
        ends = rng.random((2, len(states))) < 0.5
        observations = rng.normal(size=(table, 3)).astype(np.float32)
        ids = rng.integers(table, size=offsets[-1]).astype(np.int32)
        if not tabulated:
            observations, ids = observations[ids], None
        return Trajectories(observations, offsets, ends[0], ends[1], ids, {"seed": seed})

    return make


@pytest.fixture(scope="session")
def steps_match() -> StepsMatch:
    """Whether counted steps are possible under a transition matrix, and as frequent as chance allows (1 in 10^6)."""

    def match(counts: csr_array, matrix: csr_array) -> bool:
        seen, probabilities = counts.toarray(), matrix.toarray()
        if seen[probabilities == 0].any():
            return False
        expected = seen.sum(axis=1, keepdims=True) * probabilities
        possible = expected > 0
        assert expected[possible].min() > 4, "too few steps to judge"
        statistic = ((seen - expected)[possible] ** 2 / expected[possible]).sum()
        freedom = int(possible.sum()) - len(seen)
        return bool(statistic < chi2.ppf(1 - 1e-6, freedom))

    return match


@pytest.fixture(scope="session")
def glue() -> Glue:
    """The same states with every second boundary forgotten: what a careless collector would store."""

    def forget(data: Trajectories) -> Trajectories:
        kept = np.unique(np.append(data.offsets[::2], data.offsets[-1]))
        flags = np.ones(len(kept) - 1, dtype=bool)
        return replace(data, offsets=kept, terminated=~flags, truncated=flags)

    return forget
