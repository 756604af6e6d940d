"""What is in a data set, and what that does to anything learned from it."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from lapwing.checks import shown
from lapwing.data.distinct import distinct_rows
from lapwing.data.resets import suspect_glued_resets
from lapwing.data.trajectories import Trajectories
from lapwing.definitions import MAX_HORIZON, geometric, truncated
from lapwing.errors import LapwingError

MAX_HORIZONS = 4096
LONG_HORIZON = 1 << 16


@dataclass(frozen=True)
class Audit:
    """Facts about a data set; ``warnings`` says in words which of them should worry you.

    Fields about states are None where observations hardly repeat, for then nothing can be counted.
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
    asymmetry: float | None
    asymmetry_over_noise: float | None
    discount: float
    mean_gap: float
    mean_gap_untruncated: float
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
                ("asymmetry", f"{self.asymmetry:.4f} ({self.asymmetry_over_noise:.2f} x what noise explains)"),
            ]
        rows.append(
            (
                f"gaps at discount {self.discount:g}",
                f"mean {self.mean_gap:.2f} of {self.mean_gap_untruncated:.2f}; "
                f"slow eigenvalues read {self.slow_eigenvalue_ratio:.1%} of geometric({self.discount:g})",
            )
        )
        if self.suspected_resets is not None:
            rows.append(("steps like a reset", f"{self.suspected_resets:,} ({self.suspected_share:.2%})"))
        return rows

    def __str__(self) -> str:
        """A short table, warnings last."""
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        lines = [f"{label:<{width}}  {value}" for label, value in rows]
        return "\n".join(lines + [f"warning: {warning}" for warning in self.warnings])


def audit(data: Trajectories, discount: float = 0.9) -> Audit:
    """Look a data set over before learning from it.

    Args:
        data: the experience.
        discount: of the geometric gaps that training would draw; shows what the episodes' ends do to them.

    Example:
        >>> from lapwing.data.collect import collect
        >>> audit(collect("GridMaze-7", steps=5000)).visited
        11
    """
    if not isinstance(data, Trajectories):
        raise LapwingError(f"audit looks at Trajectories, got {shown(data)}; read a folder with Trajectories.load")
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
    facts |= _gap_facts(data, discount)
    facts |= _state_facts(data)
    suspicion = suspect_glued_resets(data)
    facts |= {
        "suspected_resets": None if suspicion is None else suspicion.steps,
        "suspected_share": None if suspicion is None else suspicion.share,
    }
    return Audit(**facts, warnings=tuple(_warnings(facts) + _nothing_changes(data, facts)))


def _gap_facts(data: Trajectories, discount: float) -> dict[str, float]:
    """Mean gap of pairs inside these episodes, and a slow component's eigenvalue relative to endless ones."""
    horizons, counts = np.unique(data.lengths[data.lengths > 0], return_counts=True)
    if len(horizons) > MAX_HORIZONS:
        chosen = np.linspace(0, len(horizons) - 1, MAX_HORIZONS).astype(int)
        horizons, counts = horizons[chosen], counts[chosen]
    share = counts * horizons / (counts * horizons).sum()
    mean_gap = float(share @ np.array([_mean_gap(discount, int(horizon)) for horizon in horizons]))
    # For mu near 1, 1 - mu^k is k (1 - mu): eigenvalues scale with the mean gap.
    slow = geometric(discount)
    endless = float(slow.from_mu(1.0 - 1e-9)) / 1e-9
    return {"mean_gap": mean_gap, "mean_gap_untruncated": endless, "slow_eigenvalue_ratio": mean_gap / endless}


def _mean_gap(discount: float, horizon: int) -> float:
    """Mean gap inside episodes of so many transitions, with as many numbers as a float can tell apart."""
    definition = truncated(discount, min(horizon, MAX_HORIZON))
    settled = min(max(LONG_HORIZON, int(np.ceil(np.log(1e-18) / np.log(discount)))), MAX_HORIZON)
    if horizon > settled:
        # With more steps left than that, the end of the episode is never felt.
        return (settled * _mean_gap(discount, settled) + (horizon - settled) / (1.0 - discount)) / horizon
    weights = definition.lag_weights()
    return float(weights @ np.arange(1, len(weights) + 1))


def _state_facts(data: Trajectories) -> dict[str, Any]:
    names = ("states", "visited", "entropy", "entropy_of_uniform", "components", "largest_component")
    if not data.has_table:
        return dict.fromkeys((*names, "asymmetry", "asymmetry_over_noise"))
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
    )
    asymmetry, over_noise = count_asymmetry(counts)
    return {**dict(zip(names, values, strict=True)), "asymmetry": asymmetry, "asymmetry_over_noise": over_noise}


def count_asymmetry(counts: csr_array) -> tuple[float, float]:
    """Share of transitions not matched by their reverse, and its square relative to independent noise.

    The second number is the mean of (n_ij - n_ji)^2 / (n_ij + n_ji) over pairs seen: about 1 or below for a
    reversible chain, growing with the data for a directed one.
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
    return ["all observations are the same, as if there were only one state: there is nothing to tell apart"]


def _warnings(facts: dict[str, Any]) -> list[str]:
    found = []
    if facts["states"] is not None:
        missing = facts["states"] - facts["visited"]
        if missing:
            found.append(f"{missing:,} state(s) were never visited: nothing is known about them; collect more steps")
        if facts["visited"] == 1:
            found.append("only one state was visited: there is nothing to tell apart")
        if facts["components"] > 1:
            found.append(
                f"what was visited falls into {facts['components']} unconnected parts: eigenvalue 0 appears as often"
            )
        if facts["asymmetry_over_noise"] > 3.0:
            found.append(
                "steps are not matched by their reverse beyond noise: the dynamics are directed, "
                "and only their symmetrised part is represented"
            )
    if facts["slow_eigenvalue_ratio"] < 0.95:
        found.append(
            f"episodes end before gaps at discount {facts['discount']:g} do: read eigenvalues through the truncated map"
        )
    if facts["suspected_share"]:
        found.append(
            f"{facts['suspected_share']:.2%} of the steps jump like a reset: episodes may have been glued together; "
            "check where they end"
        )
    return found
