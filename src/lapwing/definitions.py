"""Laplacian definitions: every f(P) in use shares the eigenvectors of P, so each is a map of the eigenvalue mu of P.

The one-step eigenvalue mu is the primary quantity; an eigenvalue in any definition is ``1 - f(mu)``.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from lapwing.checks import as_real, as_reals, as_whole, shown
from lapwing.errors import LapwingError, did_you_mean

KINDS = ("one_step", "successor", "geometric", "truncated")

MAX_HORIZON = 1_000_000
"""Transitions of a truncated definition: a map of that many terms still takes about a second."""

NEGLIGIBLE = 1e-30


@dataclass(frozen=True)
class Definition:
    """One definition of the graph Laplacian, ``L = I - f(P)`` (paper, Section 2), as a map of eigenvalues.

    Make one with :func:`one_step`, :func:`successor`, :func:`geometric` or :func:`truncated`, or read one from text
    with :func:`parse_definition`.
    """

    kind: str
    discount: float | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        """Refuse a kind that is none, and numbers that do not belong to it."""
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise LapwingError(
                f"unknown Laplacian definition {shown(self.kind)}; {did_you_mean(shown(self.kind), KINDS)}"
            )
        needed = (self.kind != "one_step", self.kind == "truncated")
        if needed != (self.discount is not None, self.horizon is not None):
            raise LapwingError(f"{self.kind} takes {sum(needed)} number(s); make it with {self.kind}(...)")
        if self.discount is not None:
            _checked_discount(self.discount)
        if self.horizon is not None:
            _checked_horizon(self.horizon)

    def from_mu(self, mu: ArrayLike) -> NDArray[np.float64]:
        """Eigenvalues of the Laplacian from eigenvalues mu of the one-step operator."""
        values = _checked_values(mu)
        if self.kind == "one_step":
            return 1.0 - values
        assert self.discount is not None
        if self.kind == "successor":
            return self.discount * (1.0 - values) / (1.0 - self.discount * values)
        if self.kind == "geometric":
            return (1.0 - values) / (1.0 - self.discount * values)
        weights = self.gap_weights()
        weights = weights[: max(1, int((weights > NEGLIGIBLE).sum()))]  # they fall, and mu is at most 1
        return 1.0 - np.polynomial.polynomial.polyval(values, np.concatenate([[0.0], weights]))

    def to_mu(self, eigenvalues: ArrayLike) -> NDArray[np.float64]:
        """Eigenvalues mu of the one-step operator from eigenvalues of this Laplacian: the inverse of from_mu."""
        values = _checked_values(eigenvalues)
        if self.kind == "one_step":
            return 1.0 - values
        if self.kind == "truncated":
            return np.vectorize(self._solve_for_mu, otypes=[np.float64])(values)
        assert self.discount is not None
        g = self.discount
        limit = 1.0 if self.kind == "successor" else 1.0 / g
        if (values >= limit).any():
            raise LapwingError(
                f"{np.max(values):.6g} is not an eigenvalue that {self} can have; the largest is "
                f"{self.from_mu(-1.0):.6g}"
            )
        if self.kind == "successor":
            return (g - values) / (g * (1.0 - values))
        return (1.0 - values) / (1.0 - g * values)

    def gap_weights(self) -> NDArray[np.float64]:
        """(horizon,) probability of each gap k = 1, 2, ... when pairs are drawn inside episodes of ``horizon`` steps.

        The first state is uniform over those that have a successor; the gap is geometric, renormalised to what is
        left of the episode, as in the sampler of the paper's experiments.
        """
        if self.kind != "truncated":
            raise LapwingError(f"only truncated definitions have finitely many gaps, not {self}")
        assert self.discount is not None
        assert self.horizon is not None
        left = np.arange(1, self.horizon + 1)
        geometric_weights = (1.0 - self.discount) * self.discount ** (left - 1.0)
        # A gap k is possible wherever at least k steps are left; episodes leave 1, 2, ..., horizon equally often.
        share = 1.0 / (1.0 - self.discount**left)
        return geometric_weights * np.cumsum(share[::-1])[::-1] / self.horizon

    def _solve_for_mu(self, eigenvalue: float) -> float:
        def excess(mu: float) -> float:
            return float(self.from_mu(mu)) - eigenvalue

        if np.isnan(eigenvalue):
            return np.nan
        if eigenvalue <= 0.0:
            return 1.0 - eigenvalue * self._slope_at_one()
        # The map falls in mu from 0 to 1; below 0 it may turn, so a root there is sought only if 0 is not far enough.
        low = 0.0 if excess(0.0) >= 0.0 else -1.0
        if excess(low) < 0.0:
            raise LapwingError(
                f"{eigenvalue} is not an eigenvalue that {self} can have; the largest is {self.from_mu(-1.0):.6g}"
            )
        return float(brentq(excess, low, 1.0, xtol=1e-15, rtol=1e-14))

    def _slope_at_one(self) -> float:
        """d mu / d eigenvalue at mu = 1, up to sign, to carry rounding below zero through the map."""
        weights = self.gap_weights()
        return 1.0 / float(weights @ np.arange(1, len(weights) + 1))

    def __str__(self) -> str:
        """The text that :func:`parse_definition` reads, e.g. ``successor(0.9)``."""
        arguments = [repr(value) for value in (self.discount, self.horizon) if value is not None]
        return f"{self.kind}({', '.join(arguments)})" if arguments else self.kind


def one_step() -> Definition:
    """``L = I - P``: eigenvalue ``1 - mu``."""
    return Definition("one_step")


def successor(discount: float) -> Definition:
    """``L = I - (1 - g)(I - gP)^-1`` (paper, Section 2; gaps k >= 0): eigenvalue ``g(1 - mu)/(1 - g mu)``.

    The "True" column of the paper's Table 3 is ``successor(0.9)``.

    Example:
        >>> float(successor(0.9).from_mu(0.5).round(4))
        0.8182
    """
    return Definition("successor", _checked_discount(discount))


def geometric(discount: float) -> Definition:
    """Geometric gaps k >= 1: ``L = I - (1 - g) P (I - gP)^-1``, eigenvalue ``(1 - mu)/(1 - g mu)``."""
    return Definition("geometric", _checked_discount(discount))


def truncated(discount: float, horizon: int) -> Definition:
    """Geometric gaps k >= 1 cut off at the end of episodes of ``horizon`` transitions: what such data really sample.

    Note:
        The paper compares estimates of this quantity with :func:`successor`; the difference is most of the error in
        its Table 3.
    """
    return Definition("truncated", _checked_discount(discount), _checked_horizon(horizon))


def parse_definition(text: str) -> Definition:
    """Read ``one_step``, ``successor(0.9)``, ``geometric(0.9)`` or ``truncated(0.9, 50)``.

    Example:
        >>> parse_definition("truncated(0.9, 50)").horizon
        50
    """
    if not isinstance(text, str):
        raise LapwingError(f"a Laplacian definition is read from text such as 'successor(0.9)', got {shown(text)}")
    match = re.fullmatch(r"([a-z_]+)(?:\s*\(([^()]*)\))?", text.strip())
    if match is None or match[1] not in KINDS:
        known = did_you_mean(text.split("(")[0].strip(), KINDS)
        raise LapwingError(f"unknown Laplacian definition {shown(text)}; {known}")
    kind = match[1]
    parts = [part.strip() for part in (match[2] or "").split(",") if part.strip()]
    wanted = {"one_step": 0, "successor": 1, "geometric": 1, "truncated": 2}[kind]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        raise LapwingError(f"{shown(text)}: the arguments of {kind} must be numbers") from None
    if len(numbers) != wanted:
        raise LapwingError(f"{shown(text)}: {kind} takes {wanted} number(s), e.g. successor(0.9) or truncated(0.9, 50)")
    if kind == "one_step":
        return one_step()
    if kind == "truncated":
        return truncated(numbers[0], numbers[1])  # type: ignore[arg-type]  # a fraction is refused inside
    return successor(numbers[0]) if kind == "successor" else geometric(numbers[0])


def as_definition(given: "Definition | str") -> Definition:
    """A definition as it is, or read from its text."""
    if isinstance(given, Definition):
        return given
    if isinstance(given, str):
        return parse_definition(given)
    raise LapwingError(f"a Laplacian definition is lw.successor(0.9) or its text 'successor(0.9)', got {shown(given)}")


def _checked_discount(discount: float) -> float:
    number = as_real(discount)
    if number is None or not 0.0 < number < 1.0:
        raise LapwingError(f"a discount lies strictly between 0 and 1, got {shown(discount)}")
    return number


def _checked_horizon(horizon: int) -> int:
    whole = as_whole(horizon)
    if whole is None or whole < 1:
        raise LapwingError(
            f"the horizon of truncated gaps is a whole number of transitions above 0, got {shown(horizon)}"
        )
    if whole > MAX_HORIZON:
        raise LapwingError(
            f"the horizon of truncated gaps is at most {MAX_HORIZON:,} transitions, got {shown(horizon)}; "
            "geometric gaps are the same beyond it"
        )
    return whole


def _checked_values(values: ArrayLike) -> NDArray[np.float64]:
    numbers = as_reals(values)
    if numbers is None:
        raise LapwingError(f"eigenvalues are real numbers, got {shown(values)}")
    return numbers
