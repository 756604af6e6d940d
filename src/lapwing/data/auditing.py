"""``audit``: what is in a data set, and what that does to anything learned from it."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from lapwing.checks import shown
from lapwing.data.directedness import Directedness, directedness
from lapwing.data.packing import RowFormat
from lapwing.data.trajectories import Trajectories
from lapwing.definitions import MAX_HORIZON, geometric, truncated
from lapwing.errors import ArgumentError
from lapwing.html_tables import html_table

MAX_HORIZONS = 4096
LONG_HORIZON = 1 << 16

# A step is rare if it makes up less than this share of the departures from its state, and at most this often by chance.
RARE_SHARE = 0.02
MIN_DEPARTURES = 100
FAR_HOPS = 3
FAR_DISTANCE = 4.0
# Steps over which a coordinate shows how far it moves in no time to speak of: a ball that bounces turns within fewer.
SHORT_WHILE = 10
# Resets lead to where episodes begin at least this often, as a share of how often a further episode would.
KNOWN_STARTS = 0.5
MAX_SOURCES = 200
MOVE_REPEATS = 3.0
RESET_TARGETS = 2.0
SAMPLE = 1 << 20

FIRST_BLOCK = 256
LARGEST_BLOCK = 1 << 16


@dataclass(frozen=True)
class Audit:
    """Facts about a data set; ``warnings`` are messages about those that affect learning.

    Fields about states are None where observations hardly repeat, because then nothing can be counted; ``asymmetry``
    is then that of the observations' covariances (:func:`~lapwing.data.directedness.directedness`).
    """

    transitions: int
    episodes: int
    terminated: int
    truncated: int
    shortest: int
    median_length: float
    longest: int
    states: int | None
    visited: int | None
    entropy: float | None
    entropy_of_uniform: float | None
    components: int | None
    largest_component: float | None
    asymmetry: float
    asymmetry_over_noise: float
    discount: float
    mean_lag: float
    mean_lag_untruncated: float
    slow_eigenvalue_ratio: float
    suspected_resets: int | None
    suspected_share: float | None
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """All fields as JSON types."""
        return {**asdict(self), "warnings": list(self.warnings)}

    def rows(self) -> list[tuple[str, str]]:
        """The facts as (what, how much), for a table."""
        rows = [
            ("transitions", f"{self.transitions:,}"),
            ("episodes", f"{self.episodes:,} ({self.terminated:,} terminated, {self.truncated:,} truncated)"),
            ("episode length", f"{self.shortest} to {self.longest}, median {self.median_length:g}"),
        ]
        if self.states is not None:
            rows += [
                ("states visited", f"{self.visited:,} of {self.states:,}"),
                ("visit entropy", f"{self.entropy:.4f} of {self.entropy_of_uniform:.4f} (uniform)"),
                ("connected components", f"{self.components} (largest: {self.largest_component:.1%} of visits)"),
            ]
        rows.append(("asymmetry", f"{self.asymmetry:.4f} ({self.asymmetry_over_noise:.2f} x what noise explains)"))
        lags = f"mean {self.mean_lag:.2f} of {self.mean_lag_untruncated:.2f}"
        slow = f"slow eigenvalues are {self.slow_eigenvalue_ratio:.1%} of geometric({self.discount:g})"
        rows.append((f"lags at discount {self.discount:g}", f"{lags}; {slow}"))
        if self.suspected_resets is not None:
            rows.append(("steps like a reset", f"{self.suspected_resets:,} ({self.suspected_share:.2%})"))
        return rows

    def __str__(self) -> str:
        """A short table, warnings last."""
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        lines = [f"{label:<{width}}  {value}" for label, value in rows]
        return "\n".join(lines + [f"warning: {warning}" for warning in self.warnings])

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        return html_table("Audit", (), self.rows(), [f"warning: {warning}" for warning in self.warnings])


def audit(data: Trajectories, discount: float = 0.9) -> Audit:
    """Examine a data set before learning from it.

    Args:
        data: the experience.
        discount: of the geometric lags that training would draw; shows what the episodes' ends do to them.

    Returns:
        The facts; ``print`` shows them as a table.

    Example:
        >>> from lapwing.data import collect
        >>> audit(collect("GridMaze-7", steps=5000)).visited
        11
    """
    if not isinstance(data, Trajectories):
        raise ArgumentError(f"audit takes Trajectories, got {shown(data)}; read a folder with Trajectories.load")
    data = data.packed()
    facts: dict[str, Any] = {
        "transitions": data.num_transitions,
        "episodes": data.num_episodes,
        "terminated": int(data.terminated.sum()),
        "truncated": int(data.truncated.sum()),
        "shortest": int(data.lengths.min()),
        "median_length": float(np.median(data.lengths)),
        "longest": int(data.lengths.max()),
        "discount": discount,
    }
    facts |= _lag_facts(data, discount)
    facts |= _state_facts(data)
    facts["suspected_resets"], facts["suspected_share"] = suspect_glued_resets(data) or (None, None)
    return Audit(**facts, warnings=tuple(_warnings(facts) + _nothing_changes(data, facts)))


def _lag_facts(data: Trajectories, discount: float) -> dict[str, float]:
    """Mean lag of pairs inside these episodes, and a slow component's eigenvalue relative to an infinite horizon."""
    horizons, counts = np.unique(data.lengths[data.lengths > 0], return_counts=True)
    horizons, counts = _spread(horizons, MAX_HORIZONS), _spread(counts, MAX_HORIZONS)
    share = counts * horizons / (counts * horizons).sum()
    mean_lag = float(share @ np.array([_mean_lag(discount, int(horizon)) for horizon in horizons]))
    # For mu near 1, 1 - mu^k is k (1 - mu): eigenvalues scale with the mean lag.
    untruncated = float(geometric(discount).from_mu(1.0 - 1e-9)) / 1e-9
    return {"mean_lag": mean_lag, "mean_lag_untruncated": untruncated, "slow_eigenvalue_ratio": mean_lag / untruncated}


def _mean_lag(discount: float, horizon: int) -> float:
    """Mean lag inside episodes of so many transitions, with as many numbers as a float can tell apart."""
    definition = truncated(discount, min(horizon, MAX_HORIZON))
    settled = min(max(LONG_HORIZON, int(np.ceil(np.log(1e-18) / np.log(discount)))), MAX_HORIZON)
    if horizon > settled:
        # With more steps left than that, the end of the episode makes no difference.
        return (settled * _mean_lag(discount, settled) + (horizon - settled) / (1.0 - discount)) / horizon
    weights = definition.lag_weights()
    return float(weights @ np.arange(1, len(weights) + 1))


def _state_facts(data: Trajectories) -> dict[str, Any]:
    names = ["states", "visited", "entropy", "entropy_of_uniform", "components", "largest_component"]
    names += ["asymmetry", "asymmetry_over_noise"]
    if not data.has_table:
        found = directedness(data)
        return {**dict.fromkeys(names), "asymmetry": found.share, "asymmetry_over_noise": found.errors}
    visits = data.visits()
    seen = visits > 0
    share = visits[seen] / visits.sum()
    counts = data.counts()
    labels = connected_components(counts, directed=False)[1][seen]
    mass = np.bincount(labels, weights=share)
    mass = mass[mass > 0]
    values = (
        len(visits),
        int(seen.sum()),
        # Rounding may leave -0.0 or a hair above the logarithm for one state or uniform visits.
        max(0.0, float(-(share * np.log(share)).sum())),
        float(np.log(len(visits))),
        len(mass),
        float(mass.max()),
        *count_asymmetry(counts),
    )
    return dict(zip(names, values, strict=True))


def count_asymmetry(counts: csr_array) -> tuple[float, float]:
    """Share of transitions not matched by their reverse, and its square relative to independent noise.

    The second number is the mean of (n_ij - n_ji)^2 / (n_ij + n_ji) over pairs seen: about 1 or below for a
    reversible chain, growing with the data for a directed one.

    Args:
        counts: (n, n) transitions between states, sparse.

    Returns:
        The share, between 0 and 1, and the mean square; both 0 where no two different states are joined.
    """
    difference = np.abs((counts - counts.T).tocsr())
    both = (counts + counts.T).tocsr()
    both.setdiag(0.0)
    both.eliminate_zeros()
    total = float(counts.sum())
    if both.nnz == 0:
        return 0.0, 0.0
    squares = difference.multiply(difference).tocsr().multiply(both.power(-1.0))
    return float(difference.sum()) / (2.0 * total), float(squares.sum()) / both.nnz


def _nothing_changes(data: Trajectories, facts: dict[str, Any]) -> list[str]:
    """Also where nothing is counted, or several rows of the table are one observation."""
    if facts["visited"] == 1 or distinct_rows(data.observations, enough=2) > 1:
        return []
    return ["all observations are the same, as if there were only one state: there is nothing to distinguish"]


def _warnings(facts: dict[str, Any]) -> list[str]:
    found = []
    if facts["states"] is not None:
        missing = facts["states"] - facts["visited"]
        if missing:
            found.append(f"{missing:,} state(s) were never visited: nothing is known about them; collect more steps")
        if facts["visited"] == 1:
            found.append("only one state was visited: there is nothing to distinguish")
        if facts["components"] > 1:
            found.append(
                f"what was visited falls into {facts['components']} unconnected parts: eigenvalue 0 appears as often"
            )
    counted = facts["states"] is not None
    asymmetry = facts["asymmetry"], facts["asymmetry_over_noise"]
    if asymmetry[1] > 3.0 if counted else Directedness(*asymmetry).is_directed:
        found.append(
            "steps are not matched by their reverse beyond noise: the dynamics are directed, "
            "and only their symmetrised part is represented" + ("" if counted else "; learn with discounts=(0.1,)")
        )
    if facts["slow_eigenvalue_ratio"] < 0.95:
        found.append(
            f"lags at discount {facts['discount']:g} are cut off by the ends of episodes: "
            "convert eigenvalues by the truncated map"
        )
    if facts["suspected_share"]:
        found.append(
            f"{facts['suspected_share']:.2%} of the steps jump like a reset: episodes may have been glued together; "
            "check where they end"
        )
    return found


class Suspicion(NamedTuple):
    """How many steps look like a reset that the episode's boundary does not know, and their share of those examined."""

    steps: int
    share: float


def suspect_glued_resets(data: Trajectories) -> Suspicion | None:
    """Steps that look like a reset inside an episode; None where that cannot be told: from few data, or from images.

    With a table: rare steps between states that frequent steps join only over three hops or more, if they lead to
    states where episodes begin. Without: steps that change at least a third of the coordinates by more than four times
    as much as nine tenths of the steps do, and as ten steps usually do.

    Args:
        data: with or without a table.

    Returns:
        The number of such steps and their share of those examined, or None.
    """
    if data.has_table:
        return _by_hops(data.counts(), np.asarray(data.rows(np.asarray(data.offsets[:-1]))))
    # Two images differ as much when something moved a little further than its own size as when it moved far.
    layout = RowFormat.from_metadata(data.metadata)
    shapes = [data.observation_shape] if layout is None else [entry.shape for entry in layout.entries]
    return _by_distance(data) if all(len(shape) < 2 for shape in shapes) else None


def _by_hops(counts: csr_array, starts: NDArray[np.int64]) -> Suspicion | None:
    departures = np.asarray(counts.sum(axis=1)).ravel()
    entries = counts.tocoo()
    examined = departures[entries.row] >= MIN_DEPARTURES
    if not examined.any():
        return None
    rare = examined & (entries.data < RARE_SHARE * departures[entries.row]) & (entries.row != entries.col)
    if not rare.any():
        return Suspicion(0, 0.0)
    common = ~rare
    trodden = csr_array((np.ones(int(common.sum())), (entries.row[common], entries.col[common])), shape=counts.shape)
    sources = _spread(np.unique(entries.row[rare]), MAX_SOURCES)
    hops = dijkstra(trodden, directed=False, unweighted=True, indices=sources, limit=FAR_HOPS - 1)
    chosen = np.flatnonzero(rare & np.isin(entries.row, sources))
    far = np.isinf(hops[np.searchsorted(sources, entries.row[chosen]), entries.col[chosen]])
    sources_of_far, targets, times = entries.row[chosen][far], entries.col[chosen][far], entries.data[chosen][far]
    if not (_scattered(sources_of_far, times) and _lead_to_starts(targets, times, starts)):
        return Suspicion(0, 0.0)
    # Where there are more sources than were looked at, the rest are taken to be like them.
    scale = float(entries.data[rare].sum()) / float(entries.data[chosen].sum())
    steps = round(scale * float(entries.data[chosen][far].sum()))
    return Suspicion(steps, steps / float(entries.data[examined].sum()))


def _scattered(sources: NDArray[np.int32], times: NDArray[np.float64]) -> bool:
    """Whether far steps lead here and there, as resets do; a rare move of the policy leads to one place, often."""
    if not len(sources):
        return False
    targets_per_source = len(sources) / len(np.unique(sources))
    return bool(times.mean() < MOVE_REPEATS or targets_per_source >= RESET_TARGETS)


def _lead_to_starts(targets: NDArray[np.int32], times: NDArray[np.float64], starts: NDArray[np.int64]) -> bool:
    """Whether far steps lead to states where episodes begin, as far as the known beginnings tell."""
    known, visits = np.unique(starts, return_counts=True)
    # The share of beginnings seen once estimates how often the next one is new (Good and Turing).
    expected = 1.0 - float((visits == 1).sum()) / len(starts)
    return float(times[np.isin(targets, known)].sum()) >= KNOWN_STARTS * expected * float(times.sum())


def _spread(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """At most so many of the rows, spread evenly."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]


def _by_distance(data: Trajectories) -> Suspicion | None:
    positions = next(data.pair_positions(1, chunk=SAMPLE))
    if len(positions) < MIN_DEPARTURES:
        return None
    step = max(1, len(positions) * data.numbers(slice(1)).shape[1] // (4 * SAMPLE))
    positions = positions[::step]
    before, after = data.numbers(positions), data.numbers(positions + 1)
    # Each coordinate in units of its own usual changes, so that none drowns the others.
    typical = np.quantile(np.abs(after - before), 0.9, axis=0)
    ends = np.asarray(data.offsets)[np.searchsorted(data.offsets, positions, side="right")]
    later = positions[positions + SHORT_WHILE < ends]
    if len(later):
        changes = data.numbers(later + SHORT_WHILE)
        changes -= data.numbers(later)
        typical = np.maximum(typical, np.median(np.abs(changes), axis=0))
    extent = np.ptp(np.concatenate([before, after]), axis=0)
    free = (typical > 0) & (extent > FAR_DISTANCE * typical)
    if not free.any():
        return Suspicion(0, 0.0) if (typical > 0).any() else None
    # A reset draws the whole state anew; where one coordinate alone jumps, something was hit.
    jumps = np.abs(after - before)[:, free] > FAR_DISTANCE * typical[free]
    share = float((3 * jumps.sum(axis=1) >= jumps.shape[1]).mean())
    return Suspicion(round(share * data.num_transitions), share)


def distinct_rows(observations: NDArray[Any], enough: int) -> int:
    """The number of different rows, or ``enough`` as soon as so many have been seen.

    Almost always the first rows suffice; only data that hardly change are read to their end.

    Args:
        observations: (n, ...) rows.
        enough: at which number to stop.

    Returns:
        At most ``enough``.

    Example:
        >>> distinct_rows(np.array([[1.0], [2.0], [1.0]]), enough=10)
        2
    """
    seen: set[bytes] = set()
    begin, size = 0, FIRST_BLOCK
    while begin < len(observations) and len(seen) < enough:
        # Adding nothing makes one of the two zeros.
        block = np.asarray(observations[begin : begin + size]) + 0
        seen.update(row.tobytes() for row in np.unique(block.reshape(len(block), -1), axis=0))
        begin, size = begin + size, min(2 * size, LARGEST_BLOCK)
    return min(len(seen), enough)
