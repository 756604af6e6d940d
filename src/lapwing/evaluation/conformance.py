"""``check_loss``: whether a loss has ALLO's optimum, found out on 13 states with exact expectations."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from lapwing.environments.grid import GridWorld
from lapwing.environments.layouts import Layout
from lapwing.evaluation.ported_functions import Port
from lapwing.evaluation.similarity import paper_cosines, subspace_cosines
from lapwing.html_tables import html_table
from lapwing.objectives import Objective

Array = NDArray[np.float64]

# A room of 3 x 4 cells with one cell below its corner: the eigenvalues are distinct, the first four 0, 0.108, 0.198 and
# 0.298. The uniform policy leaves each cell by four actions, so 52 pairs of states are equally likely.
ROOM = """\
XXXXXX
X....X
X....X
X....X
X.XXXX
XXXXXX"""
ACTIONS = 4
DIM = 4
# Above 2, where the optimum is stable whatever the operator (paper, Theorem 1).
BARRIER = 2.5

# Descent: with rates of the check's own, because only the place where it ends matters.
DUAL_RATE = 0.2
MAX_STEPS = 2000
CONVERGED = 1e-7
SETTLED = 1e-5
POWER_ITERATIONS = 20

_STATUS_COLOURS = {"pass": ("#08306b", "#cfe1f2"), "fail": ("#5c1a00", "#ffd3c2")}
# No multiplier is as large, not even without the half: 4 lambda, with lambda up to 2.
FAR_DUAL = 10.0

BATCHES = 1000
BATCH_SIZE = 16
# Standard errors; an unbiased loss is off by more in one of 15,000 cases, and the batches are the same every time.
CONFIDENT = 4.0

# Relative errors and shares below this count as none.
SMALL = 1e-2
ORTHONORMAL = 1e-3
SMALLEST_COSINE = 0.9999

Status = Literal["pass", "fail", "not applicable"]

NO_DUALS = "the loss does not depend on duals"
NO_GRADIENT = "JAX cannot trace the loss, and finite differences do not see stop-gradients; give a gradient"
NO_UPDATE = "no dual update was given"
ELSEWHERE = "see the other failures"
ASCEND = "ascend: beta_jk <- beta_jk + rate * error_jk for k <= j"


@dataclass(frozen=True)
class Finding:
    """One property of a loss or its dual update.

    Attributes:
        name: of the property.
        status: ``pass``, ``fail`` or ``not applicable``.
        measured: the number that decides; None where nothing was measured.
        detail: what was measured, in a line.
        advice: what to do about a failure, in a line; empty otherwise.
    """

    name: str
    status: Status
    measured: float | None
    detail: str
    advice: str = ""


@dataclass(frozen=True)
class Conformance:
    """What :func:`check_loss` found; ``print`` shows it as a table.

    Attributes:
        findings: one for each property, in the order in which to read them.
        gradients: where they came from: ``jax.grad``, ``given`` or ``finite differences``.
    """

    findings: tuple[Finding, ...]
    gradients: str

    @property
    def conforms(self) -> bool:
        """Whether nothing failed; see ``unchecked`` for what could not."""
        return not self.failures

    @property
    def failures(self) -> list[Finding]:
        """What failed."""
        return [finding for finding in self.findings if finding.status == "fail"]

    @property
    def unchecked(self) -> list[Finding]:
        """What is not applicable."""
        return [finding for finding in self.findings if finding.status == "not applicable"]

    def __getitem__(self, name: str) -> Finding:
        """A finding by its name."""
        return next(finding for finding in self.findings if finding.name == name)

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON types."""
        findings = [asdict(finding) for finding in self.findings]
        return {"conforms": self.conforms, "gradients": self.gradients, "findings": findings}

    def rows(self) -> list[tuple[str, str, str]]:
        """Name, status and detail of each finding, for a table."""
        return [(finding.name, finding.status, finding.detail) for finding in self.findings]

    def advice(self) -> list[str]:
        """Advice about all failures, each line with the names of those that it is for."""
        names: dict[str, list[str]] = {}
        for finding in self.failures:
            names.setdefault(finding.advice, []).append(finding.name)
        return [f"{', '.join(those)}: {advice}" for advice, those in names.items()]

    def __str__(self) -> str:
        """A table, advice last."""
        widths = [max(len(row[column]) for row in self.rows()) for column in (0, 1)]
        lines = [f"{name:<{widths[0]}}  {status:<{widths[1]}}  {detail}" for name, status, detail in self.rows()]
        return "\n".join(lines + self.advice())

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        title = "Conforms" if self.conforms else "Does not conform"
        return html_table(title, (), self.rows(), self.advice(), _STATUS_COLOURS)


class Room(NamedTuple):
    """The world of the check.

    Attributes:
        eigenvalues: (13,) of ``I - P``, ascending.
        eigenvectors: (13, 13) columns with ``E[u^2] = 1``.
        pairs: (52, 2) states that follow each other, all equally likely.
    """

    eigenvalues: Array
    eigenvectors: Array
    pairs: NDArray[np.intp]

    @property
    def states(self) -> int:
        """How many there are."""
        return len(self.eigenvalues)

    def rows(self) -> dict[str, NDArray[np.intp]]:
        """States of each row of the four arrays, 676 each: plain means over them are expectations.

        Every combination of a state of ``first`` and one of ``second`` occurs equally often, so that products of the
        two batches have their expectation as well.
        """
        everywhere = np.arange(self.states)
        pairs = np.tile(self.pairs, (self.states, 1))
        first = np.repeat(everywhere, len(pairs) // self.states)
        return {"start": pairs[:, 0], "end": pairs[:, 1], "first": first, "second": np.resize(everywhere, len(pairs))}


@cache
def exact_room() -> Room:
    """The room with its exact eigenvectors.

    Returns:
        Made once.
    """
    operator = GridWorld(Layout.from_text(ROOM)).transition_matrix().toarray()
    eigenvalues, vectors = np.linalg.eigh(np.eye(len(operator)) - operator)
    start, end = np.nonzero(operator)
    often = np.rint(ACTIONS * operator[start, end]).astype(int)
    pairs = np.stack([np.repeat(start, often), np.repeat(end, often)], axis=1)
    return Room(eigenvalues, vectors * np.sqrt(len(operator)), pairs)


class Optimum(NamedTuple):
    """Where descent on the components and ascent on the duals end.

    Attributes:
        table: (13, d) components at all states.
        duals: (d, d) lower-triangular.
        steps: how many it took.
        settled: whether nothing moves any more.
    """

    table: Array
    duals: Array
    steps: int
    settled: bool

    @property
    def gram(self) -> Array:
        """(d, d) ``E[u u^T]``."""
        return self.table.T @ self.table / len(self.table)

    @property
    def diverged(self) -> bool:
        """Whether the components are no longer numbers."""
        return not np.isfinite(self.table).all()


@dataclass(frozen=True)
class Trial:
    """A port in the room, and what several findings need.

    Attributes:
        port: the functions under test.
        room: the world.
        dual_scale: by how much the loss grows with a dual, per unit of that dual's error; 0 where it has none.
        graph_scale: the graph term at the exact eigenvectors, relative to the sum of eigenvalues and to ``dual_scale``.
        bounds: (2, d, d) between which the update keeps the duals.
        optimum: of the loss with duals in those bounds.
    """

    port: Port
    room: Room
    dual_scale: float
    graph_scale: float
    bounds: Array
    optimum: Optimum

    @property
    def truth(self) -> Array:
        """(13, d) exact eigenvectors."""
        return self.room.eigenvectors[:, :DIM]

    @property
    def eigenvalues(self) -> Array:
        """(d,) exact eigenvalues."""
        return self.room.eigenvalues[:DIM]

    @property
    def multipliers(self) -> Array:
        """(d,) duals ``beta_ii`` of the equilibrium, by the size of the graph term: ``-2 lambda_i`` with its half."""
        return -2 * self.graph_scale * self.eigenvalues


Outcome = tuple[Status, float | None, str, str]
"""A finding without its name."""


def check_loss(
    loss: Callable[..., Any] | Objective,
    update: Callable[..., Any] | None = None,
    *,
    init: Callable[..., Any] | None = None,
    eigenvalues: Callable[..., Any] | None = None,
    gradient: Callable[..., Any] | None = None,
) -> Conformance:
    """Check another implementation of ALLO against the exact solution of a world of 13 states (docs/porting.md).

    Functions get those of these arguments that their signatures name: ``start`` and ``end``, (n, d) components at both
    ends of pairs of states; ``first`` and ``second``, (n, d) components on two independent constraint batches;
    ``duals``, (d, d) lower-triangular; ``barrier``, a number. Plain means over the rows are exact expectations.

    Args:
        loss: returns one number, by JAX, NumPy or anything else; or an :class:`Objective` of this package, alone.
        update: of the duals after a step, of the same arguments and of ``error_first`` and ``error_second``, (d, d)
            lower-triangular ``<u_j, u_k> - delta_jk``. It returns the duals, ``(duals, barrier)``, or
            ``(duals, barrier, state)`` if it has an argument ``state``, such as that of an optimiser.
        init: ``(dim)`` to what ``update`` returns, before training; duals of zero if None.
        eigenvalues: the read-out, of the same arguments as ``update``; returns (d,) numbers.
        gradient: of the arguments of ``loss``; returns a list of its derivatives by ``start``, ``end``, ``first`` and
            ``second``, those that ``loss`` has. If None, ``jax.grad`` is used; a loss that JAX cannot trace is
            differentiated by finite differences, which do not see stop-gradients.

    Returns:
        The findings; ``print`` shows them, ``conforms`` says whether none of them failed.

    Raises:
        ArgumentError: where a function has other arguments, raises, or returns the wrong shape or NaN.

    Example:
        >>> import lapwing as lw
        >>> check_loss(lw.allo()).conforms
        True
        >>> [finding.name for finding in check_loss(lw.objectives.quadratic_penalty()).failures]
        ['orthonormality']
    """
    room = exact_room()
    # Warnings of a loss that diverges say nothing that the findings do not.
    with jax.enable_x64(True), np.errstate(all="ignore"):
        port = Port(loss, update, init, eigenvalues, gradient, room.rows(), room.eigenvectors[:, :DIM], BARRIER)
        trial = _trial(port, room)
        return Conformance(tuple(Finding(name, *find(trial)) for name, find in FINDINGS.items()), port.gradients)


def _trial(port: Port, room: Room) -> Trial:
    truth = room.eigenvectors[:, :DIM]
    zeros, everything = np.zeros((DIM, DIM)), np.tril(np.ones((DIM, DIM)))
    dual_scale = float(port.slopes(1.1 * truth)[0, 0]) / (1.1**2 - 1)
    # Without the pairs' differences only the graph term is missing.
    components = port.components(truth)
    graph = port.value(components, zeros) - port.value({**components, "end": components["start"]}, zeros)
    graph_scale = graph / room.eigenvalues[:DIM].sum() / (abs(dual_scale) or 1.0)
    bounds = np.stack([-FAR_DUAL * everything, FAR_DUAL * everything])
    # Without errors an update has nothing to do but to keep the duals within its bounds.
    bounds = np.stack([port.updated(truth, bound, port.initial().state).duals for bound in bounds])
    if port.sees_stop_gradients:
        optimum = _descend(port, truth, abs(dual_scale) or 1.0, bounds)
    else:
        optimum = Optimum(truth, np.diag(-2 * graph_scale * room.eigenvalues[:DIM]), 0, settled=True)
    return Trial(port, room, dual_scale, graph_scale, bounds, optimum)


def _descend(port: Port, truth: Array, dual_scale: float, bounds: Array) -> Optimum:
    """Descend on the components and ascend on the duals."""
    rng = np.random.default_rng(0)
    # The largest curvature at the eigenvectors, by power iteration: a larger rate than its inverse may overshoot.
    change, zeros = rng.normal(size=truth.shape), np.zeros((DIM, DIM))
    for _ in range(POWER_ITERATIONS):
        step = change * (1e-3 / np.linalg.norm(change))
        change = (port.gradient(truth + step, zeros) - port.gradient(truth - step, zeros)) / 2e-3
    rate = 1 / np.linalg.norm(change)
    table, duals = 0.5 * rng.normal(size=truth.shape), np.clip(port.initial().duals, *bounds)
    steps, moved = 0, np.inf
    while steps < MAX_STEPS and moved > CONVERGED and np.isfinite(table).all():
        descent = rate * port.gradient(table, duals)
        ascended = np.clip(duals + DUAL_RATE / dual_scale * port.slopes(table), *bounds)
        moved = max(np.abs(descent).max(), np.abs(ascended - duals).max())
        table, duals, steps = table - descent, ascended, steps + 1
    return Optimum(table, duals, steps, settled=bool(moved < SETTLED))


def _gram_matrix(trial: Trial) -> Outcome:
    if not trial.dual_scale:
        return _not_applicable(NO_DUALS)
    if trial.dual_scale < 0:
        return _failed(trial.dual_scale, "the dual term has a negative sign", "add beta_jk e_jk; do not subtract it")
    # Any components that are not orthonormal, and whose means are not zero.
    table = trial.truth @ (np.eye(DIM) + np.random.default_rng(0).normal(size=(DIM, DIM)) / 2)
    seen, mean = trial.port.slopes(table) / trial.dual_scale, table.mean(axis=0)
    error = float(np.abs(seen - np.tril(table.T @ table / len(table) - np.eye(DIM))).max())
    if error < SMALL:
        return _passed(error, "the duals multiply E[u_j u_k] - delta_jk for k <= j")
    if np.abs(seen - np.tril(np.outer(mean, mean) - np.eye(DIM))).max() < SMALL:
        detail = f"the duals multiply E[u_j] E[u_k] - delta_jk, of rank one: off by up to {error:.2f}"
        return _failed(error, detail, "take both factors of a product from the same rows: first.T @ first / n")
    detail = f"the duals do not multiply E[u_j u_k] - delta_jk for k <= j: off by up to {error:.2f}"
    return _failed(error, detail, "the dual term is the sum over k <= j of beta_jk (E[u_j u_k] - delta_jk)")


def _unbiased_square(trial: Trial) -> Outcome:
    rng, zeros = np.random.default_rng(0), np.zeros((DIM, DIM))
    values = np.empty(BATCHES)
    for number in range(BATCHES):
        start, end = trial.room.pairs[rng.integers(len(trial.room.pairs), size=BATCH_SIZE)].T
        first, second = rng.integers(trial.room.states, size=(2, BATCH_SIZE))
        rows = {"start": start, "end": end, "first": first, "second": second}
        values[number] = trial.port.value({name: trial.truth[row] for name, row in rows.items()}, zeros)
    exact = trial.port.value(trial.port.components(trial.truth), zeros)
    bias, error = float(values.mean()) - exact, float(values.std(ddof=1)) / BATCHES**0.5
    detail = f"loss over {BATCHES:,} batches of {BATCH_SIZE} rows {values.mean():.3f} +- {error:.3f}, exact {exact:.3f}"
    if abs(bias) <= CONFIDENT * error:
        return _passed(bias, detail)
    advice = "multiply the errors of two independent batches: the square of one batch's error adds its variance"
    return _failed(bias, f"{detail}: {abs(bias) / error:.0f} standard errors off", advice)


def _stop_gradient(trial: Trial) -> Outcome:
    if not trial.port.sees_stop_gradients:
        return _not_applicable(NO_GRADIENT)
    # Component j has an error with component k, and their dual is not zero: with the stop-gradient only j moves.
    j, k = 2, 1
    table, duals = trial.truth.copy(), np.zeros((DIM, DIM))
    table[:, j] += 0.1 * trial.truth[:, k]
    duals[j, k] = np.sign(trial.dual_scale)
    gradient = trial.port.gradient(table, duals)
    wanted, unwanted = gradient[:, j] @ trial.truth[:, k], gradient[:, k] @ trial.truth[:, j]
    share = abs(float(unwanted)) / max(abs(float(wanted)), 1e-12)
    detail = f"an error of components {j + 1} and {k + 1} moves {k + 1} by {share:.3f} of what it moves {j + 1}"
    if share < SMALL:
        return _passed(share, detail)
    advice = "hold u_k constant in <u_j, u_k> for k <= j, in dual term and penalty: jax.lax.stop_gradient, or detach()"
    return _failed(share, detail, advice)


def _negative_duals(trial: Trial) -> Outcome:
    if not (trial.port.has_update and trial.dual_scale):
        return _not_applicable(NO_UPDATE if trial.dual_scale else NO_DUALS)
    lowest, wanted = float(np.diag(trial.bounds[0]).max()), float(trial.multipliers.min())
    if lowest < wanted:
        return _passed(lowest, f"duals can reach {wanted:.3f}, the lowest multiplier")
    advice = "multipliers are -2 lambda or, without the half, -4 lambda, with lambda up to 2: allow -8"
    return _failed(lowest, f"duals stay at {lowest:g} or above; the lowest multiplier is {wanted:.3f}", advice)


def _dual_step(trial: Trial) -> Outcome:
    if not (trial.port.has_update and trial.dual_scale):
        return _not_applicable(NO_UPDATE if trial.dual_scale else NO_DUALS)
    # From one no bound is met.
    duals, error = np.tril(np.ones((DIM, DIM))), 0.1 * np.eye(DIM) + 0.02
    steps = []
    for size in (1.0, 0.1, 0.0):
        table = trial.truth @ np.linalg.cholesky(np.eye(DIM) + size * error).T
        steps.append(np.tril(trial.port.updated(table, duals, trial.port.initial().state).duals - duals))
    length, wanted = float(np.linalg.norm(steps[0])), np.tril(error)
    if not length:
        return _failed(0.0, "duals do not move", ASCEND)
    share, drift = (float(np.linalg.norm(step)) / length for step in steps[1:])
    if drift > SMALL:
        detail = f"without an error the duals still make {drift:.2f} of the step"
        return _failed(drift, detail, "leave the duals where their errors are zero: no weight decay on them")
    if abs(share - 0.1) > SMALL:
        detail = f"a tenth of the error makes {share:.2f} of the step, which is {np.abs(steps[0]).max():.2g}"
        advice = "an optimiser divides the step by the size of errors, and any dual rate with it: ascend without one"
        return _failed(share, detail, advice)
    along = float((steps[0] * wanted).sum()) / float(np.linalg.norm(wanted))
    if along < (1 - SMALL) * length:
        return _failed(share, f"the step has a cosine of {along / length:.2f} with the errors", ASCEND)
    return _passed(share, f"proportional to the error, rate {along / np.linalg.norm(wanted):.2g}")


def _orthonormality(trial: Trial) -> Outcome:
    optimum = trial.optimum
    if not trial.port.sees_stop_gradients:
        rest = _gradient_that_remains(trial)
        if rest < ORTHONORMAL:
            return _passed(rest, "the orthonormal eigenvectors are stationary with the right duals")
        detail = f"no duals make the orthonormal eigenvectors stationary: {rest:.2f} of the gradient remains"
        return _failed(rest, detail, "the constraints are <u_j, u_k> = delta_jk, each with a dual of its own")
    if missing := _without_optimum(trial):
        return missing
    error = float(np.abs(optimum.gram - np.eye(DIM)).max())
    if error < ORTHONORMAL:
        return _passed(error, f"E[u u^T] = I at the optimum, to {error:.0e} after {optimum.steps:,} steps")
    detail = f"E[u u^T] - I is up to {error:.3f} {_where(optimum)}; E[u_i^2] = {_listed(np.diag(optimum.gram))}"
    advice = ELSEWHERE if trial.dual_scale else "a penalty alone leaves components short: add the dual term"
    return _failed(error, detail, advice)


def _order(trial: Trial) -> Outcome:
    optimum = trial.optimum
    if not trial.port.sees_stop_gradients:
        return _not_applicable(NO_GRADIENT)
    if missing := _without_optimum(trial):
        return missing
    weights = np.full(trial.room.states, 1 / trial.room.states)
    cosines = paper_cosines(optimum.table, trial.truth, weights, [range(i, i + 1) for i in range(DIM)])
    smallest = float(cosines.min())
    if smallest >= SMALLEST_COSINE:
        return _passed(smallest, f"the eigenvectors in ascending order, smallest cosine {smallest:.6f}")
    span = float(subspace_cosines(optimum.table, trial.truth, weights, [range(DIM)]).min())
    detail = f"cosines with the eigenvectors {_listed(cosines)} {_where(optimum)}"
    if span < SMALLEST_COSINE or not optimum.settled:
        return _failed(smallest, f"{detail}, with their span {span:.3f}", ELSEWHERE)
    advice = "hold the second factor of each product <u_j, u_k> constant, and sum over k <= j only"
    return _failed(smallest, f"{detail}: the span is right, a rotation remains", advice)


def _multipliers(trial: Trial) -> Outcome:
    if not trial.dual_scale:
        return _not_applicable(NO_DUALS)
    if missing := _without_optimum(trial):
        return missing
    ratios = -np.diag(trial.optimum.duals)[1:] / trial.eigenvalues[1:]
    factor = float(ratios.mean())
    halves = {2: "the graph term has its half", 4: "the graph term lacks its half"}
    for known, half in halves.items():
        if np.abs(ratios - known).max() < SMALL * known:
            assumed = "" if trial.port.sees_stop_gradients else " with stop-gradients in place"
            return _passed(factor, f"beta_ii = -{factor:.3f} lambda_i{assumed}: {half}, so read -beta_ii / {known}")
    detail = f"-beta_ii / lambda_i = {_listed(ratios)} {_where(trial.optimum)}, neither 2 nor 4"
    if any(abs(2 * trial.graph_scale - known) < SMALL * known for known in halves):
        return _failed(factor, detail, ELSEWHERE)
    return _failed(factor, detail, "the graph term is the sum over i of 1/2 E (u_i(s) - u_i(s'))^2, or twice that")


def _eigenvalues(trial: Trial) -> Outcome:
    if not trial.port.has_read_out:
        return _not_applicable("no read-out was given")
    if missing := _without_optimum(trial):
        return missing
    found = trial.port.read_out(trial.optimum.table, trial.optimum.duals)
    ratios = found[1:] / trial.eigenvalues[1:]
    factor = float(ratios.mean())
    if np.abs(ratios - 1).max() < SMALL and abs(found[0]) < SMALL * trial.eigenvalues[1]:
        return _passed(factor, f"read as {factor:.3f} times the exact ones")
    in_proportion = np.ptp(ratios) < SMALL * abs(factor)
    advice = f"divide by {factor:.3g} more: see the multipliers" if in_proportion else ELSEWHERE
    return _failed(factor, f"read as {_listed(ratios)} times the exact ones", advice)


FINDINGS: dict[str, Callable[[Trial], Outcome]] = {
    "Gram matrix": _gram_matrix,
    "unbiased square": _unbiased_square,
    "stop-gradient": _stop_gradient,
    "negative duals": _negative_duals,
    "dual step": _dual_step,
    "orthonormality": _orthonormality,
    "order": _order,
    "multipliers": _multipliers,
    "eigenvalues": _eigenvalues,
}
"""Causes first, then what they do to the optimum."""


def _without_optimum(trial: Trial) -> Outcome | None:
    """What is to be reported where no optimum was found; None where it was, or should have been."""
    if trial.optimum.diverged:
        return _failed(None, "descent diverges", ELSEWHERE)
    if trial.optimum.settled or trial.port.takes_barrier:
        return None
    # The loss may have a large barrier of its own, which makes descent slow.
    detail = f"the optimum is not reached in {MAX_STEPS:,} steps; give the loss an argument barrier, set by the check"
    return _not_applicable(detail)


def _gradient_that_remains(trial: Trial) -> float:
    """The gradient at the exact eigenvectors that no duals cancel, as a share of that without duals."""
    gradients = np.stack([trial.port.gradient(trial.truth, duals).ravel() for duals in trial.port.unit_duals()])
    effects = (gradients[1:] - gradients[0]).T
    best = np.linalg.lstsq(effects, -gradients[0])[0]
    return float(np.linalg.norm(gradients[0] + effects @ best) / np.linalg.norm(gradients[0]))


def _passed(measured: float, detail: str) -> Outcome:
    return "pass", measured, detail, ""


def _failed(measured: float | None, detail: str, advice: str) -> Outcome:
    return "fail", measured, detail, advice


def _not_applicable(detail: str) -> Outcome:
    return "not applicable", None, detail, ""


def _where(optimum: Optimum) -> str:
    return "at the optimum" if optimum.settled else f"after {optimum.steps:,} steps, still moving"


def _listed(numbers: Array) -> str:
    return " ".join(f"{number + 0.0:.3f}" for number in numbers)
