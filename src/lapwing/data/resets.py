"""Are there resets hidden inside episodes? A step that jumps far across the others is suspicious."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from lapwing.data.trajectories import Trajectories

# A step is rare if it makes up less than this share of the departures from its state, and at most this often by chance.
RARE_SHARE = 0.02
MIN_DEPARTURES = 100
FAR_HOPS = 3
FAR_DISTANCE = 4.0
MAX_SOURCES = 200
MOVE_REPEATS = 3.0
RESET_TARGETS = 2.0
SAMPLE = 1 << 20


@dataclass(frozen=True)
class Suspicion:
    """How many steps look like a reset that the episode's boundary does not know, and their share of those judged."""

    steps: int
    share: float


def suspect_glued_resets(data: Trajectories) -> Suspicion | None:
    """Steps that look like a reset inside an episode; None where the data are too few to judge.

    With a table: rare steps between states that frequent steps join only over three hops or more. Without: steps
    more than four times as long as nine tenths of them.
    """
    return _by_hops(data.counts()) if data.has_table else _by_distance(data)


def _by_hops(counts: csr_array) -> Suspicion | None:
    departures = np.asarray(counts.sum(axis=1)).ravel()
    entries = counts.tocoo()
    judged = departures[entries.row] >= MIN_DEPARTURES
    if not judged.any():
        return None
    rare = judged & (entries.data < RARE_SHARE * departures[entries.row]) & (entries.row != entries.col)
    total = float(entries.data[judged].sum())
    if not rare.any():
        return Suspicion(0, 0.0)
    common = ~rare
    trodden = csr_array((np.ones(int(common.sum())), (entries.row[common], entries.col[common])), shape=counts.shape)
    sources = _sources(np.unique(entries.row[rare]))
    hops = dijkstra(trodden, directed=False, unweighted=True, indices=sources, limit=FAR_HOPS - 1)
    place = {int(source): number for number, source in enumerate(sources)}
    chosen = np.flatnonzero(rare & np.isin(entries.row, sources))
    far = np.array([np.isinf(hops[place[int(entries.row[i])], entries.col[i]]) for i in chosen])
    if not _scattered(entries.row[chosen][far], entries.data[chosen][far]):
        return Suspicion(0, 0.0)
    # Where there are more sources than were looked at, the rest are taken to be like them.
    scale = float(entries.data[rare].sum()) / float(entries.data[chosen].sum())
    steps = round(scale * float(entries.data[chosen][far].sum()))
    return Suspicion(steps, steps / total)


def _scattered(sources: NDArray[np.int32], times: NDArray[np.float64]) -> bool:
    """Whether far steps lead here and there, as resets do; a rare move of the policy leads to one place, often."""
    if not len(sources):
        return False
    targets_per_source = len(sources) / len(np.unique(sources))
    return bool(times.mean() < MOVE_REPEATS or targets_per_source >= RESET_TARGETS)


def _sources(candidates: NDArray[np.int32]) -> NDArray[np.int32]:
    if len(candidates) <= MAX_SOURCES:
        return candidates
    return candidates[np.linspace(0, len(candidates) - 1, MAX_SOURCES).astype(int)]


def _by_distance(data: Trajectories) -> Suspicion | None:
    positions = next(data.pair_positions(1, chunk=SAMPLE))
    if len(positions) < MIN_DEPARTURES:
        return None
    step = max(1, len(positions) * int(np.prod(data.observation_shape)) // (4 * SAMPLE))
    positions = positions[::step]
    before = np.asarray(data.observations[positions], dtype=np.float64).reshape(len(positions), -1)
    after = np.asarray(data.observations[positions + 1], dtype=np.float64).reshape(len(positions), -1)
    # Each coordinate in units of its own usual step, so that none drowns the others.
    typical = np.quantile(np.abs(after - before), 0.9, axis=0)
    moving = typical > 0
    if not moving.any():
        return None
    lengths = np.max(np.abs(after - before)[:, moving] / typical[moving], axis=1)
    far = lengths > FAR_DISTANCE * max(float(np.quantile(lengths, 0.9)), 1e-12)
    share = float(far.mean())
    return Suspicion(round(share * data.num_transitions), share)
