"""The interface of every world: what collecting, solving, learning and drawing may ask of it."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import ArgumentError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FIELD_CELLS = 96
AGENT_COLOUR = (214, 64, 48)
WALL_COLOUR = (40, 44, 52)
FLOOR_COLOUR = (236, 236, 230)


class ClosedForm(NamedTuple):
    """Eigenpairs in closed form, the eigenfunctions being products of cosines over a box.

    Attributes:
        modes: (d, axes) mode number of each cosine; see :func:`lapwing.environments.box.box_eigenfunctions`.
        mu: (d,) one-step eigenvalues, largest first.
    """

    modes: NDArray[np.int64]
    mu: NDArray[np.float64]


class CircleClosedForm(ClosedForm):
    """Eigenpairs of the symmetrised operator of a directed walk on a circle, the eigenfunctions being its waves.

    Its modes are those of :func:`lapwing.environments.rotation.circle_eigenfunctions`.
    """

    __slots__ = ()


class Discretisation(NamedTuple):
    """A world whose states cannot be listed, reduced to a fine regular grid of one or two axes.

    Attributes:
        observations: (n, axes) the grid points, as observed.
        matrix: (n, n) row-stochastic one-step transition matrix between them.
        weights: (n,) their stationary weights; None where they are to be computed from the matrix.
        numbers: grid of the numbers of its points, -1 where there is none (a wall).
        origin: (axes,) the observation at the first place of ``numbers``.
        spacing: (axes,) the distance between neighbours, in units of observations.
    """

    observations: NDArray[Any]
    matrix: "csr_array"
    weights: NDArray[np.float64] | None
    numbers: NDArray[np.int64]
    origin: NDArray[np.float64]
    spacing: NDArray[np.float64]


class Hidden(NamedTuple):
    """The world behind one that shows the same states in another way.

    Attributes:
        world: it makes the steps, and its ground truth is that of the world that shows it otherwise.
        see: from (n, ...) observations of it to what is seen there, always the same.
        columns: how many leading entries of what is seen are its observation; None where it cannot be read off.
    """

    world: "World"
    see: Callable[[NDArray[Any]], NDArray[Any]]
    columns: int | None


@runtime_checkable
class World(Protocol):
    """An environment whose states can be reset, stepped and observed many at a time.

    Subclass it and write the five abstract methods; the others have defaults for what is not known: no table of
    states, no matrix, no closed form, no picture. ``docs/extending.md`` has a skeleton to copy.

    Attributes:
        name: a short name for tables and file names.
        observation_shape: shape of one observation.
        observation_bounds: smallest and largest value of an observation's entries.
        actions: how many actions there are, or the shape of an action with entries in [-1, 1].
    """

    name: str
    observation_shape: tuple[int, ...]
    actions: int | tuple[int, ...]
    observation_bounds: tuple[float, float] = (-np.inf, np.inf)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The world as JSON types, with ``kind`` and ``name``; equal descriptions mean equal worlds."""

    @abstractmethod
    def reset(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw start states.

        Args:
            count: how many.
            rng: source of randomness.

        Returns:
            (count, ...) states: row numbers of :meth:`table` where there is one, else any array.
        """

    @abstractmethod
    def step(
        self, states: NDArray[Any], actions: NDArray[Any] | None, rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Make one step from each state.

        Args:
            states: (n, ...) states.
            actions: (n,) whole numbers or (n, ...) real ones; None draws them from the world's own policy.
            rng: source of randomness.

        Returns:
            (n, ...) next states, and the (n, ...) actions that were made.
        """

    @abstractmethod
    def observe(self, states: NDArray[Any]) -> NDArray[Any]:
        """(n, ...) observations of (n, ...) states.

        Args:
            states: (n, ...) states as :meth:`reset` and :meth:`step` return them.

        Returns:
            (n, ...) observations of shape ``observation_shape`` each.
        """

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What ``lapwing worlds`` lists: ``size`` (text), ``states``, ``parts`` (number or None), ``description``."""

    def with_options(self, **options: Any) -> Self:
        """The same world with other options, such as ``observation``, ``slip`` or ``policy``; here none is known."""
        if options:
            raise ArgumentError(f"{self.name} takes no {', '.join(sorted(options))}")
        return self

    @property
    def num_states(self) -> int | None:
        """How many states there are; None where they cannot be listed."""
        table = self.table()
        return None if table is None else len(table)

    def table(self) -> NDArray[Any] | None:
        """(states, ...) the observation of every state, in order of their numbers; None where they cannot be listed."""
        return None

    def transition_matrix(self) -> "csr_array | None":
        """(states, states) row-stochastic matrix of the world's own policy; None where it is not known."""
        return None

    def action_matrices(self) -> "tuple[csr_array, ...] | None":
        """(states, states) row-stochastic matrix of each action, in order of their numbers; None where not known."""
        return None

    def walked_cells(self) -> NDArray[np.bool_] | None:
        """(rows, columns) the cells of a uniform walk on a grid; None for any other world.

        Its states are the cells that are True, numbered row by row; each of the four moves has probability 1/4, and a
        blocked one stays. Such a world can be solved without its transition matrix.
        """
        return None

    def closed_form(self, count: int) -> ClosedForm | None:
        """The ``count`` eigenpairs with the largest one-step eigenvalues; None where no closed form is known.

        Args:
            count: how many, at least 1.

        Returns:
            The eigenpairs, or None.
        """
        return None

    def discretisation(self) -> Discretisation | None:
        """The world on a fine grid, from which ``solve`` has its ground truth; None where no such grid is known.

        The matrix must be that of the steps which :meth:`step` makes, up to the error of the grid.
        """
        return None

    def hidden(self) -> Hidden | None:
        """The world behind, where this one only shows it otherwise; else None."""
        return None

    def product_of(self) -> "tuple[World, ...] | None":
        """The worlds side by side, each of which makes a step of its own at each step; None where it is one world."""
        return None

    def field_points(self, cells: int = FIELD_CELLS) -> NDArray[Any] | None:
        """(n, ...) observations at which a function is drawn; None where there is no picture.

        Args:
            cells: resolution along each axis, where states are not listed.

        Returns:
            (n, ...) observations, or None.
        """
        return None

    def field_image(self, values: NDArray[np.float64]) -> "np.ma.MaskedArray[Any, Any]":
        """Values at :meth:`field_points` as a picture.

        Args:
            values: (n,) one per point; NaN where it is not known.

        Returns:
            (rows, columns) values, masked where there is no state (a wall).
        """
        raise ArgumentError(f"{self.name} has no picture")

    def field_extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the picture, in the world's own units."""
        raise ArgumentError(f"{self.name} has no picture")

    def picture_places(self, observations: NDArray[Any]) -> NDArray[np.float64] | None:
        """Where observations lie in the picture.

        Args:
            observations: (n, ...) observations.

        Returns:
            (n, 2) places, down and across, in the units of :meth:`field_extent`; None where there is no picture.
        """
        return None

    def field_reach(self, cells: int = FIELD_CELLS) -> tuple[float, float] | None:
        """The longest step down and across the picture, in cells; None where steps are listed in the matrix.

        Args:
            cells: resolution along each axis, as given to :meth:`field_points`.

        Returns:
            Cells down and cells across, or None.
        """
        return None

    def render(self, state: Any) -> NDArray[np.uint8] | None:
        """(height, width, 3) a picture of one state; None where there is none.

        Args:
            state: one state.

        Returns:
            (height, width, 3) red, green and blue in 0 to 255, or None.
        """
        return None
