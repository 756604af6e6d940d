"""Several worlds side by side, all moved by each step: exact spectra at any size, without listing the states."""

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import shown
from lapwing.environments.world import FIELD_CELLS, World
from lapwing.errors import ArgumentError, LapwingError

MAX_FACTORS = 8


@dataclass(frozen=True, eq=False)
class ProductWorld(World):
    """Worlds that do not know of each other; one step is one step of each of them.

    The transition operator is the tensor product of theirs: eigenfunctions are products of the factors' eigenfunctions,
    and one-step eigenvalues mu multiply. Observations are the factors' observations end to end.

    Args:
        factors: two to eight worlds whose observations are vectors, all with numbered actions or all with real ones.
            Numbered actions are combined into one number, that of the last factor running fastest.
        name: for tables and files; None is made from the factors' names.

    Example:
        >>> from lapwing.environments.grid import GridWorld
        >>> from lapwing.environments.layouts import room
        >>> world = ProductWorld((GridWorld(room(2, 2)), GridWorld(room(3, 3))))
        >>> world.observation_shape, world.actions, world.summary()["states"]
        ((4,), 16, 36)
    """

    factors: tuple[World, ...]
    name: str = ""
    observation_shape: tuple[int, ...] = field(init=False)
    actions: int | tuple[int, ...] = field(init=False)
    observation_bounds: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse what cannot stand side by side."""
        factors = tuple(self.factors) if isinstance(self.factors, (tuple, list)) else ()
        if not 2 <= len(factors) <= MAX_FACTORS or not all(isinstance(factor, World) for factor in factors):
            raise LapwingError(f"a product has 2 to {MAX_FACTORS} worlds as factors, got {shown(self.factors)}")
        for factor in factors:
            if len(factor.observation_shape) != 1:
                raise LapwingError(f"{factor.name} is not observed as a vector, so it cannot be a factor")
            if factor.hidden() is not None or factor.product_of() is not None:
                raise LapwingError(f"{factor.name} stands for other worlds; multiply those, and wrap their product")
        counts = [factor.actions for factor in factors]
        if all(isinstance(count, int) for count in counts):
            actions: int | tuple[int, ...] = math.prod(count for count in counts if isinstance(count, int))
        elif all(isinstance(count, tuple) and len(count) == 1 for count in counts):
            actions = (sum(count[0] for count in counts if isinstance(count, tuple)),)
        else:
            raise LapwingError("the factors of a product have all numbered actions or all vectors of real ones")
        bounds = [factor.observation_bounds for factor in factors]
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "name", self.name or "product:" + "*".join(factor.name for factor in factors))
        object.__setattr__(self, "actions", actions)
        object.__setattr__(self, "observation_shape", (sum(factor.observation_shape[0] for factor in factors),))
        object.__setattr__(self, "observation_bounds", (min(low for low, _ in bounds), max(high for _, high in bounds)))

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """(count,) records with a start state of each factor.

        Args:
            count: how many.
            rng: source of randomness.

        Returns:
            (count,) records.
        """
        return self._joined([factor.reset(count, rng) for factor in self.factors])

    def step(
        self, states: NDArray[Any], actions: "ArrayLike | None", rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """One step of every factor.

        Args:
            states: (n, ...) states.
            actions: (n,) whole numbers or (n, entries) real ones; None lets each factor draw its own.
            rng: source of randomness.

        Returns:
            (n,) next records, and the actions that were made.
        """
        given = self._split_actions(actions, len(states))
        moved = [
            factor.step(states[str(number)], action, rng)
            for number, (factor, action) in enumerate(zip(self.factors, given, strict=True))
        ]
        made: NDArray[Any]
        if isinstance(self.actions, int):
            made = np.zeros(len(states), dtype=np.int64)
            for factor, (_, action) in zip(self.factors, moved, strict=True):
                assert isinstance(factor.actions, int)
                made = made * factor.actions + action
        else:
            made = np.concatenate([action for _, action in moved], axis=1)
        return self._joined([state for state, _ in moved]), made

    def _split_actions(self, actions: "ArrayLike | None", count: int) -> list[Any]:
        """What each factor is given."""
        if actions is None:
            return [None] * len(self.factors)
        wanted = (count,) if isinstance(self.actions, int) else (count, *self.actions)
        made = np.asarray(actions)
        if made.shape != wanted or made.dtype.kind not in ("iu" if isinstance(self.actions, int) else "iuf"):
            raise ArgumentError(f"the policy must give actions of shape {wanted}, got {made.dtype} {made.shape}")
        if not isinstance(self.actions, int):
            ends = np.cumsum([factor.actions[0] for factor in self.factors])[:-1]  # type: ignore[index]
            return list(np.split(made, ends, axis=1))
        if ((made < 0) | (made >= self.actions)).any():
            raise ArgumentError(f"the policy gave an action outside 0 to {self.actions - 1}")
        parts = []
        for factor in reversed(self.factors):
            parts.append(made % factor.actions)
            made = made // factor.actions
        return parts[::-1]

    def _joined(self, states: list[NDArray[Any]]) -> NDArray[Any]:
        kind = [(str(number), part.dtype, part.shape[1:]) for number, part in enumerate(states)]
        joined = np.empty(len(states[0]), dtype=kind)
        for number, part in enumerate(states):
            joined[str(number)] = part
        return joined

    def observe(self, states: NDArray[Any]) -> NDArray[np.float32]:
        """(n, entries) observations of the factors, end to end.

        Args:
            states: (n, ...) states.

        Returns:
            (n, entries) observations.
        """
        parts = [factor.observe(states[str(number)]) for number, factor in enumerate(self.factors)]
        return np.concatenate(parts, axis=1).astype(np.float32)

    def product_of(self) -> tuple[World, ...]:
        """The factors."""
        return self.factors

    def with_options(self, **options: Any) -> Self:
        """Itself: options belong to the factors."""
        if options:
            raise ArgumentError(f"{self.name} is a product: give options to its factors, not to it")
        return self

    def describe(self) -> dict[str, Any]:
        """The factors and the name, as JSON types."""
        return {"kind": "product", "name": self.name, "factors": [factor.describe() for factor in self.factors]}

    def summary(self) -> dict[str, Any]:
        """What ``lapwing worlds`` lists."""
        parts = [factor.summary() for factor in self.factors]
        counts = [part["states"] for part in parts]
        return {
            "size": " * ".join(part["size"] for part in parts),
            "states": None if None in counts else math.prod(counts),
            "parts": None,
            "description": "side by side: " + ", ".join(factor.name for factor in self.factors),
        }

    def field_points(self, cells: int = FIELD_CELLS) -> NDArray[Any] | None:
        """The points of the first factor, the others held at their first point.

        Args:
            cells: resolution along each axis.

        Returns:
            (n, ...) observations; None where there is no picture.
        """
        points = [factor.field_points(cells) for factor in self.factors]
        if any(part is None for part in points):
            return None
        first, *others = (np.asarray(part) for part in points)
        fixed = np.concatenate([part[0] for part in others])
        return np.concatenate([first, np.tile(fixed, (len(first), 1))], axis=1).astype(np.float32)

    def field_image(self, values: NDArray[np.float64]) -> "np.ma.MaskedArray[Any, Any]":
        """The picture of the first factor.

        Args:
            values: (n,) one per point; NaN where it is not known.

        Returns:
            (rows, columns) values, masked at walls.
        """
        return self.factors[0].field_image(values)

    def field_extent(self) -> tuple[float, float, float, float]:
        """That of the first factor."""
        return self.factors[0].field_extent()

    def field_reach(self, cells: int = FIELD_CELLS) -> tuple[float, float] | None:
        """That of the first factor.

        Args:
            cells: resolution along each axis.

        Returns:
            Points down and across.
        """
        return self.factors[0].field_reach(cells)

    def render(self, state: Any) -> NDArray[np.uint8] | None:
        """The first factor's picture.

        Args:
            state: one state.

        Returns:
            (height, width, 3) image.
        """
        return self.factors[0].render(state["0"])
