"""Laplacian definitions: every f(P) in use shares the eigenvectors of P, so each is a map of the eigenvalue mu of P.

The one-step eigenvalue mu is the primary quantity; an eigenvalue in any definition is ``1 - f(mu)``.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_real, as_reals, as_whole, shown
from lapwing.errors import ArgumentError, UnknownNameError, did_you_mean

__all__ = ["Definition", "as_definition", "geometric", "one_step", "parse_definition", "successor", "truncated"]

# How many numbers each kind takes: none, a discount, or a discount and a horizon.
KINDS = {"one_step": 0, "successor": 1, "geometric": 1, "truncated": 2}

MAX_HORIZON = 1_000_000
"""Transitions of a truncated definition: a map of that many terms still takes about a second."""

NEGLIGIBLE = 1e-30


@dataclass(frozen=True)
class Definition:
    """One definition of the graph Laplacian, ``L = I - f(P)`` (paper, Section 2), as a map of eigenvalues.

    Make one with :func:`one_step`, :func:`successor`, :func:`geometric` or :func:`truncated`, or read one from text
    with :func:`parse_definition`.

    Args:
        kind: one of the four names above.
        discount: strictly between 0 and 1, for all kinds but ``one_step``.
        horizon: transitions of an episode, for ``truncated``.
    """

    kind: str
    discount: float | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown kind, and numbers that do not belong to it."""
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise UnknownNameError(
                f"unknown Laplacian definition {shown(self.kind)}; {did_you_mean(shown(self.kind), KINDS)}"
            )
        count = KINDS[self.kind]
        if (count > 0, count > 1) != (self.discount is not None, self.horizon is not None):
            raise ArgumentError(f"{self.kind} takes {count} number(s), e.g. successor(0.9) or truncated(0.9, 50)")
        if self.discount is not None:
            number = as_real(self.discount)
            if number is None or not 0.0 < number < 1.0:
                raise ArgumentError(f"a discount lies strictly between 0 and 1, got {shown(self.discount)}")
            object.__setattr__(self, "discount", number)
        if self.horizon is not None:
            whole = as_whole(self.horizon)
            if whole is None or not 1 <= whole <= MAX_HORIZON:
                raise ArgumentError(
                    f"the horizon of truncated lags is a whole number of transitions from 1 to {MAX_HORIZON:,}, "
                    f"got {shown(self.horizon)}; geometric lags are the same beyond it"
                )
            object.__setattr__(self, "horizon", whole)

    def from_mu(self, mu: "ArrayLike") -> NDArray[np.float64]:
        """Eigenvalues of this Laplacian from those of the one-step operator.

        Args:
            mu: eigenvalues of the one-step operator, of any shape.

        Returns:
            ``1 - f(mu)``, of the same shape.
        """
        values = _checked_values(mu)
        if self.kind == "one_step":
            return 1.0 - values
        assert self.discount is not None
        if self.kind == "successor":
            return self.discount * (1.0 - values) / (1.0 - self.discount * values)
        if self.kind == "geometric":
            return (1.0 - values) / (1.0 - self.discount * values)
        weights = self.lag_weights()
        weights = weights[: max(1, int((weights > NEGLIGIBLE).sum()))]  # they fall, and mu is at most 1
        return 1.0 - np.polynomial.polynomial.polyval(values, np.concatenate([[0.0], weights]))

    def to_mu(self, eigenvalues: "ArrayLike") -> NDArray[np.float64]:
        """Eigenvalues of the one-step operator from those of this Laplacian: the inverse of :meth:`from_mu`.

        Args:
            eigenvalues: of this Laplacian, of any shape; NaN stays NaN.

        Returns:
            mu, of the same shape.
        """
        values = _checked_values(eigenvalues)
        if self.kind == "one_step":
            return 1.0 - values
        if self.kind == "truncated":
            return np.vectorize(self._solve_for_mu, otypes=[np.float64])(values)
        assert self.discount is not None
        g = self.discount
        limit = 1.0 if self.kind == "successor" else 1.0 / g
        if (values >= limit).any():
            raise self._too_large(float(np.max(values)))
        if self.kind == "successor":
            return (g - values) / (g * (1.0 - values))
        return (1.0 - values) / (1.0 - g * values)

    def lag_weights(self) -> NDArray[np.float64]:
        """Probability of each lag k = 1, 2, ... when pairs are drawn inside episodes of ``horizon`` steps.

        The first state is uniform over those that have a successor; the lag is geometric, renormalised to what is
        left of the episode, as in the sampler of the paper's experiments.

        Returns:
            (horizon,) weights that sum to 1.
        """
        if self.discount is None or self.horizon is None:
            raise ArgumentError(f"only truncated definitions have finitely many lags, not {self}")
        left = np.arange(1, self.horizon + 1)
        geometric_weights = (1.0 - self.discount) * self.discount ** (left - 1.0)
        # A lag k is possible wherever at least k steps are left; episodes leave 1, 2, ..., horizon equally often.
        share = 1.0 / (1.0 - self.discount**left)
        return geometric_weights * np.cumsum(share[::-1])[::-1] / self.horizon

    def _solve_for_mu(self, eigenvalue: float) -> float:
        from scipy.optimize import brentq

        def excess(mu: float) -> float:
            return float(self.from_mu(mu)) - eigenvalue

        if np.isnan(eigenvalue):
            return np.nan
        if eigenvalue <= 0.0:
            # To first order, to carry rounding below zero through the map.
            weights = self.lag_weights()
            return 1.0 - eigenvalue / float(weights @ np.arange(1, len(weights) + 1))
        # The map falls in mu from 0 to 1; below 0 it may turn, so a root there is sought only if 0 is not far enough.
        low = 0.0 if excess(0.0) >= 0.0 else -1.0
        if excess(low) < 0.0:
            raise self._too_large(eigenvalue)
        return float(brentq(excess, low, 1.0, xtol=1e-15, rtol=1e-14))

    def _too_large(self, eigenvalue: float) -> ArgumentError:
        largest = float(self.from_mu(-1.0))
        return ArgumentError(
            f"{eigenvalue:.6g} is not an eigenvalue that {self} can have; the largest is {largest:.6g}"
        )

    def __str__(self) -> str:
        """The text that :func:`parse_definition` reads, e.g. ``successor(0.9)``."""
        arguments = [repr(value) for value in (self.discount, self.horizon) if value is not None]
        return f"{self.kind}({', '.join(arguments)})" if arguments else self.kind


def one_step() -> Definition:
    """``L = I - P``: eigenvalue ``1 - mu``.

    Returns:
        The definition.
    """
    return Definition("one_step")


def successor(discount: float) -> Definition:
    """``L = I - (1 - g)(I - gP)^-1`` (paper, Section 2; lags k >= 0): eigenvalue ``g(1 - mu)/(1 - g mu)``.

    The "True" column of the paper's Table 3 is ``successor(0.9)``.

    Args:
        discount: g, strictly between 0 and 1.

    Returns:
        The definition.

    Example:
        >>> float(successor(0.9).from_mu(0.5).round(4))
        0.8182
    """
    return Definition("successor", discount)


def geometric(discount: float) -> Definition:
    """Geometric lags k >= 1: ``L = I - (1 - g) P (I - gP)^-1``, eigenvalue ``(1 - mu)/(1 - g mu)``.

    Args:
        discount: g, strictly between 0 and 1.

    Returns:
        The definition.
    """
    return Definition("geometric", discount)


def truncated(discount: float, horizon: int) -> Definition:
    """Geometric lags k >= 1 cut off at the end of episodes of ``horizon`` transitions: what such data really sample.

    Args:
        discount: g, strictly between 0 and 1.
        horizon: transitions of an episode.

    Returns:
        The definition.

    Note:
        The paper compares estimates of this quantity with :func:`successor`; the difference is most of the error in
        its Table 3.
    """
    return Definition("truncated", discount, horizon)


def parse_definition(text: str) -> Definition:
    """Read ``one_step``, ``successor(0.9)``, ``geometric(0.9)`` or ``truncated(0.9, 50)``.

    Args:
        text: as :class:`Definition` prints itself.

    Returns:
        The definition.

    Example:
        >>> parse_definition("truncated(0.9, 50)").horizon
        50
    """
    if not isinstance(text, str):
        raise ArgumentError(f"a Laplacian definition is read from text such as 'successor(0.9)', got {shown(text)}")
    match = re.fullmatch(r"([a-z_]+)(?:\s*\(([^()]*)\))?", text.strip())
    if match is None or match[1] not in KINDS:
        known = did_you_mean(text.split("(")[0].strip(), KINDS)
        raise UnknownNameError(f"unknown Laplacian definition {shown(text)}; {known}")
    parts = [part.strip() for part in (match[2] or "").split(",") if part.strip()]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        raise ArgumentError(f"{shown(text)}: the arguments of {match[1]} must be numbers") from None
    if len(numbers) != KINDS[match[1]]:
        raise ArgumentError(f"{shown(text)}: {match[1]} takes {KINDS[match[1]]} number(s), e.g. truncated(0.9, 50)")
    return Definition(match[1], *numbers)  # type: ignore[arg-type]  # a horizon that is a fraction is refused inside


def as_definition(given: "Definition | str") -> Definition:
    """A definition as it is, or read from its text.

    Args:
        given: ``lw.successor(0.9)`` or ``"successor(0.9)"``.

    Returns:
        The definition.
    """
    return given if isinstance(given, Definition) else parse_definition(given)


def _checked_values(values: ArrayLike) -> NDArray[np.float64]:
    numbers = as_reals(values)
    if numbers is None:
        raise ArgumentError(f"eigenvalues are real numbers, got {shown(values)}")
    return numbers
