"""Runs of the studies of options: diffusion times, cover times and diffusion options of one world each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing import LaplacianRepresentation, Learner, collect, solve
from lapwing.applications import (
    Option,
    algebraic_connectivity,
    cover_time,
    covering_options,
    diffusion_options,
    diffusion_time,
    eigenpurpose_options,
    expected_steps,
    point_options,
)
from lapwing.environments import World
from lapwing.operators import group_degenerate
from lapwing_paper.run_store import Outcome
from lapwing_paper.study_worlds import world_of_run

COMPONENTS = 16
# Draws of ties and of noise: as many as this allows at the world's number of states.
DRAWN_STATES, MOST_DRAWS, MOST_NOISE_DRAWS = 4_000, 200, 40
NOISE = 1e-3
SAME_EIGENVALUE = 1e-6
QUARTILES = (25, 50, 75)

Values = NDArray[np.float64]


def diffusion_times(specification: dict[str, Any]) -> Outcome:
    """Diffusion times with eigenoptions of one world (Machado, Bellemare & Bowling, 2017).

    Settings: ``transitions`` of data that components are learned from, 0 for exact ones; ``counts`` of options.

    Args:
        specification: of the run.

    Returns:
        For the published form of eigenvectors and for our own, by number of options: expected steps with the official
        count and in moves, and what ties, noise, the basis or learning change.
    """
    world, settings, seed = world_of_run(specification), specification["settings"], int(specification["seed"])
    count = int(world.num_states or 0)
    counts = [int(number) for number in settings["counts"] if number <= 2 * min(COMPONENTS, count - 1)]
    transitions = int(settings["transitions"])
    numbers: dict[str, Any] = {}
    if not transitions:
        mu = np.linalg.eigvalsh(np.asarray(world.transition_matrix().toarray()))[:-1]  # type: ignore[union-attr]
        by_eigenvalues = count / (count - 1) * float((1.0 / (1.0 - mu)).sum())
        numbers |= {"actions": diffusion_time(world), "by_eigenvalues": by_eigenvalues}
    for form, (walk, first) in {"published": (_without_bumps(world), 0), "own": (world, 1)}.items():
        exact = solve(walk, min(COMPONENTS + first, count))
        values = _values(form, exact, world)
        if not transitions:
            clusters = group_degenerate(1.0 - exact.mu[: exact.dim], SAME_EIGENVALUE)
            numbers[form] = {
                str(number): _exact_times(world, values, first, number, seed)
                | _times_in_other_bases(world, values, clusters, first, number, seed)
                for number in counts
            }
            continue
        data = collect(walk, transitions, seed=seed)
        found = _values(form, Learner("default", seed=seed, dim=exact.dim).fit(data), world)
        eigenvalues = 1.0 - exact.mu[: exact.dim]
        same_basis = {
            "learned": found,
            "exact": _aligned(values, found, eigenvalues),
            "counted": _aligned(_values(form, solve(data, exact.dim), world), found, eigenvalues),
        }
        numbers[form] = {str(number): _times(world, same_basis, first, number) for number in counts}
    return Outcome(numbers)


def cover_times(specification: dict[str, Any]) -> Outcome:
    """Connectivity, largest hitting times and cover times with point options (Jinnai et al., 2019).

    Settings: ``walks``; how many ``point_options`` of each kind.

    Args:
        specification: of the run.

    Returns:
        Numbers by kind of options.
    """
    world, settings, seed = world_of_run(specification), specification["settings"], int(specification["seed"])
    amount, walks = int(settings["point_options"]), int(settings["walks"])
    kinds: dict[str, list[Option]] = {
        "covering": covering_options(world, amount),
        "eigenvectors": point_options(world, _ends_of_eigenvectors(world, amount // 2)),
        "none": [],
    }
    numbers: dict[str, Any] = {}
    for kind, options in kinds.items():
        edges = cover_time(world, options, walks, seed, as_edges=True, bumps=False)
        moves = cover_time(world, options, walks, seed, bumps=False)
        numbers[kind] = {
            "connectivity": algebraic_connectivity(world, options),
            "largest_hitting": float(expected_steps(world, options, as_edges=True).max(axis=1).mean()),
            "cover": [edges.mean, edges.standard_error],
            "cover_in_moves": [moves.mean, moves.standard_error],
        }
    return Outcome(numbers)


def diffusion_option_steps(specification: dict[str, Any]) -> Outcome:
    """Diffusion options and the steps between states with them (Bar, Talmon & Meir, 2020).

    Settings: ``times`` of the lazy walk.

    Args:
        specification: of the run.

    Returns:
        Quartiles over goals of the mean over all starts, the goal among them: of a walk without bumps, alone and with
        the options of each time; and how many options there are.
    """
    world = world_of_run(specification)
    numbers: dict[str, Any] = {"walk": _quartiles(world, [])}
    for time in specification["settings"]["times"]:
        options = diffusion_options(world, int(time))
        numbers[str(time)] = {"options": len(options), "quartiles": _quartiles(world, options)}
    return Outcome(numbers)


def _without_bumps(world: World) -> World:
    """The same world under a policy that chooses uniformly among the moves that lead elsewhere."""
    return world.with_options(policy=(moving := _moving(world)) / moving.sum(axis=1, keepdims=True))


def _moving(world: World) -> Values:
    """(n, actions) one where an action leads elsewhere."""
    matrices = world.action_matrices()
    assert matrices is not None
    return np.stack([(matrix.diagonal() < 1.0).astype(np.float64) for matrix in matrices], axis=1)


def _values(form: str, model: LaplacianRepresentation, world: World) -> Values:
    """(n, d) the published eigenvectors are ``sqrt(degree) u_i``, u_i being components of the walk without bumps."""
    components = np.asarray(model.transform(np.asarray(world.table())), dtype=np.float64)
    return components * np.sqrt(_moving(world).sum(axis=1))[:, None] if form == "published" else components


def _exact_times(world: World, values: Values, first: int, count: int, seed: int) -> dict[str, float]:
    """Both conventions with the first of equally good actions, and bounds over drawn ties and over noise."""
    rng = np.random.default_rng(seed)
    some = values[:, first : first - (-count // 2)]
    options = eigenpurpose_options(world, some)[:count]
    draws = min(MOST_DRAWS, DRAWN_STATES // len(values))
    tied = [_official(world, eigenpurpose_options(world, some, seed=draw)[:count]) for draw in range(draws)]
    sizes = NOISE * np.sqrt((some**2).mean(axis=0))
    noisy = [
        _official(world, eigenpurpose_options(world, some + sizes * rng.standard_normal(some.shape))[:count])
        for _ in range(min(draws, MOST_NOISE_DRAWS))
    ]
    return {
        "official": _official(world, options),
        "moves": diffusion_time(world, options),
        "ties_low": min(tied),
        "ties_high": max(tied),
        "noise_low": min(noisy),
        "noise_high": max(noisy),
    }


def _times_in_other_bases(
    world: World, values: Values, clusters: list[range], first: int, count: int, seed: int
) -> dict[str, float]:
    """Bounds over random bases of the spaces of repeated eigenvalues; empty where none repeats."""
    last = first - (-count // 2)
    repeated = [cluster for cluster in clusters if len(cluster) > 1 and cluster.start < last]
    if not repeated:
        return {}
    rng, times = np.random.default_rng(seed), []
    for _ in range(min(MOST_NOISE_DRAWS, DRAWN_STATES // len(values))):
        turned = values.copy()
        for cluster in repeated:
            basis = np.linalg.qr(rng.standard_normal((len(cluster), len(cluster))))[0]
            turned[:, cluster.start : cluster.stop] = values[:, cluster.start : cluster.stop] @ basis
        times.append(_official(world, eigenpurpose_options(world, turned[:, first:last])[:count]))
    return {"bases_low": min(times), "bases_high": max(times)}


def _times(world: World, values: dict[str, Values], first: int, count: int) -> dict[str, float]:
    """The official count with eigenvectors from several sources."""
    last = first - (-count // 2)
    return {
        name: _official(world, eigenpurpose_options(world, vectors[:, first:last])[:count])
        for name, vectors in values.items()
    }


def _official(world: World, options: list[Option]) -> float:
    return diffusion_time(world, options, count_termination=True)


def _aligned(vectors: Values, learned: Values, eigenvalues: Values) -> Values:
    """Vectors turned, within the space of each repeated eigenvalue, to the basis nearest to the learned one."""
    turned = vectors.copy()
    for cluster in group_degenerate(eigenvalues, SAME_EIGENVALUE):
        own = vectors[:, cluster.start : cluster.stop]
        left, _, right = np.linalg.svd(own.T @ learned[:, cluster.start : cluster.stop])
        turned[:, cluster.start : cluster.stop] = own @ (left @ right)
    return turned


def _ends_of_eigenvectors(world: World, count: int) -> list[tuple[int, int]]:
    """Largest and smallest entry of each eigenvector after the constant one."""
    values = np.asarray(solve(world, count + 1).transform(np.asarray(world.table())))[:, 1:]
    return [(int(vector.argmax()), int(vector.argmin())) for vector in values.T]


def _quartiles(world: World, options: list[Option]) -> list[float]:
    steps = expected_steps(world, options, bumps=False).mean(axis=0)
    # The printed range between quartiles is that of Hazen's rule.
    return [float(value) for value in np.percentile(steps, QUARTILES, method="hazen")]
