"""Worlds seen otherwise: with dimensions of noise appended, or as images. Their steps are those of the world behind."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_real, as_whole, shown
from lapwing.environments.world import FIELD_CELLS, Hidden, World
from lapwing.errors import ArgumentError, LapwingError

MAX_NOISE_DIMENSIONS = 10_000
IMAGE_SIZES = (8, 256)

_SEED = 20
_LARGEST_NOISE = 6.0  # standard deviations; observations have bounds
_BLOCK = 4096

# Grey levels, and the standard deviation of the agent's blob in pixels: wide enough that a tenth of a pixel shows.
_WALL, _FLOOR, _AGENT = 40.0, 150.0, 255.0
_BLOB = 1.2


class ObservationWrapper(World):
    """A world whose states, steps and picture are those of ``inner``; a subclass changes what is observed."""

    inner: World

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """(count, ...) start states of the world behind."""
        return self.inner.reset(count, rng)

    def step(
        self, states: NDArray[Any], actions: ArrayLike | None, rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """One step of the world behind."""
        return self.inner.step(states, actions, rng)  # type: ignore[arg-type]

    def see(self, observations: NDArray[Any]) -> NDArray[Any]:
        """What this world shows where the one behind shows ``observations``; randomness has a fixed seed."""
        raise NotImplementedError

    def hidden(self) -> Hidden:
        """The world behind, and how its observations are seen here."""
        return Hidden(self.inner, self.see, None)

    def field_points(self, cells: int = FIELD_CELLS) -> NDArray[Any] | None:
        """What is seen at the points at which the world behind is drawn."""
        points = self.inner.field_points(cells)
        return None if points is None else self.see(points)

    def field_image(self, values: NDArray[np.float64]) -> "np.ma.MaskedArray[Any, Any]":
        """The picture of the world behind."""
        return self.inner.field_image(values)

    def field_extent(self) -> tuple[float, float, float, float]:
        """That of the world behind."""
        return self.inner.field_extent()

    def field_reach(self, cells: int = FIELD_CELLS) -> tuple[float, float] | None:
        """That of the world behind."""
        return self.inner.field_reach(cells)

    def render(self, state: Any) -> NDArray[np.uint8] | None:
        """A picture of one state of the world behind."""
        return self.inner.render(state)


@dataclass(frozen=True, eq=False)
class NoisyObservations(ObservationWrapper):
    """A world whose observations have ``dimensions`` more entries: Gaussian noise, independent at each observation.

    The noise is part of the state: it is drawn anew with each step, and seeing a state twice shows the same noise.

    Args:
        inner: a world whose observations are vectors.
        dimensions: how many entries of noise follow.
        deviation: their standard deviation.
        name: for tables and files; None is made from the world's.

    Example:
        >>> from lapwing.environments.box import BoxWorld
        >>> world = NoisyObservations(BoxWorld((1.0, 0.8)), 3)
        >>> world.observe(world.reset(5, np.random.default_rng(0))).shape
        (5, 5)
    """

    inner: World
    dimensions: int = 27
    deviation: float = 0.3
    name: str = ""
    observation_shape: tuple[int, ...] = field(init=False)
    actions: int | tuple[int, ...] = field(init=False)
    observation_bounds: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse noise beside anything but vectors."""
        if not isinstance(self.inner, World) or len(self.inner.observation_shape) != 1:
            raise LapwingError(f"noise is appended to a world whose observations are vectors, got {shown(self.inner)}")
        dimensions, deviation = as_whole(self.dimensions), as_real(self.deviation)
        if dimensions is None or not 1 <= dimensions <= MAX_NOISE_DIMENSIONS:
            raise LapwingError(
                f"noise has 1 to {MAX_NOISE_DIMENSIONS:,} dimensions, got {shown(self.dimensions)} of them"
            )
        if deviation is None or not 0 < deviation < np.inf:
            raise LapwingError(f"the standard deviation of noise is positive, got {shown(self.deviation)}")
        width = self.inner.observation_shape[0] + dimensions
        object.__setattr__(self, "dimensions", dimensions)
        object.__setattr__(self, "deviation", deviation)
        object.__setattr__(self, "name", self.name or f"{self.inner.name}-{width}")
        object.__setattr__(self, "observation_shape", (width,))
        object.__setattr__(self, "actions", self.inner.actions)
        (low, high), largest = self.inner.observation_bounds, _LARGEST_NOISE * deviation
        object.__setattr__(self, "observation_bounds", (min(low, -largest), max(high, largest)))

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """(count,) records of a start state of the world behind and its noise.

        Args:
            count: how many.
            rng: source of randomness.

        Returns:
            (count,) records.
        """
        return self._with_noise(self.inner.reset(count, rng), rng)

    def step(
        self, states: NDArray[Any], actions: ArrayLike | None, rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """One step of the world behind, with new noise.

        Args:
            states: (n, ...) states.
            actions: those of the world behind; None draws them.
            rng: source of randomness.

        Returns:
            (n,) next records, and the actions that were made.
        """
        moved, made = self.inner.step(states["state"], actions, rng)  # type: ignore[arg-type]
        return self._with_noise(moved, rng), made

    def _with_noise(self, states: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        kind = [("state", states.dtype, states.shape[1:]), ("noise", np.float32, (self.dimensions,))]
        records = np.empty(len(states), dtype=kind)
        records["state"] = states
        records["noise"] = self._noise(len(states), rng)
        return records

    def _noise(self, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
        noise = rng.standard_normal((count, self.dimensions), dtype=np.float32)
        return np.float32(self.deviation) * np.clip(noise, -_LARGEST_NOISE, _LARGEST_NOISE)

    def observe(self, states: NDArray[Any]) -> NDArray[np.float32]:
        """(n, entries + dimensions) observations of the world behind, followed by the noise.

        Args:
            states: (n, ...) states.

        Returns:
            (n, entries + dimensions) observations.
        """
        states = np.atleast_1d(states)
        clean = self.inner.observe(states["state"]).astype(np.float32)
        return np.concatenate([clean, states["noise"]], axis=1)

    def see(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Observations of the world behind, followed by noise of a fixed seed.

        Args:
            observations: (n, ...) observations.

        Returns:
            (n, entries + dimensions) observations.
        """
        noise = self._noise(len(observations), np.random.default_rng(_SEED))
        return np.concatenate([np.asarray(observations, dtype=np.float32), noise], axis=1)

    def hidden(self) -> Hidden:
        """The world behind: its observations are the first entries."""
        return Hidden(self.inner, self.see, self.inner.observation_shape[0])

    def with_options(self, **options: Any) -> Self:
        """The same noise beside a world with other options."""
        return type(self)(self.inner.with_options(**options), self.dimensions, self.deviation, self.name)

    def describe(self) -> dict[str, Any]:
        """The world behind, number and size of noise dimensions, and name."""
        return {
            "kind": "noisy",
            "name": self.name,
            "world": self.inner.describe(),
            "dimensions": self.dimensions,
            "deviation": self.deviation,
        }

    def summary(self) -> dict[str, Any]:
        """What ``lapwing worlds`` lists."""
        noise = f"{self.inner.name} beside {self.dimensions} dimensions of noise, deviation {self.deviation:g}"
        return self.inner.summary() | {"states": None, "description": noise}

    def render(self, state: Any) -> NDArray[np.uint8] | None:
        """A picture of the state behind.

        Args:
            state: one state.

        Returns:
            (height, width, 3) image.
        """
        return self.inner.render(state["state"])


@dataclass(frozen=True, eq=False)
class ImageObservations(ObservationWrapper):
    """A world seen as square grey images: walls dark, the agent a bright smooth blob at its sub-pixel position.

    Args:
        inner: a world with a picture whose observations are one or two coordinates.
        size: pixels along each side.
        name: for tables and files; None is the world's with ``-Pixels``.

    Example:
        >>> from lapwing.environments.box import BoxWorld
        >>> world = ImageObservations(BoxWorld((1.0, 0.8)), 16)
        >>> world.observe(np.array([[0.5, 0.4]])).shape
        (1, 16, 16)
    """

    inner: World
    size: int = 32
    name: str = ""
    observation_shape: tuple[int, ...] = field(init=False)
    actions: int | tuple[int, ...] = field(init=False)
    observation_bounds: tuple[float, float] = field(init=False, default=(0, 255))

    def __post_init__(self) -> None:
        """Refuse a world that cannot be drawn, or whose picture does not show its state."""
        if not isinstance(self.inner, World) or self.inner.observation_shape not in ((1,), (2,)):
            raise LapwingError(f"images are drawn of a world with one or two coordinates, got {shown(self.inner)}")
        if (
            self.inner.field_points() is None
            or self.inner.picture_places(np.zeros((1, *self.inner.observation_shape))) is None
        ):
            raise LapwingError(f"{self.inner.name} has no picture, so it cannot be seen as an image")
        size = as_whole(self.size)
        if size is None or not IMAGE_SIZES[0] <= size <= IMAGE_SIZES[1]:
            raise LapwingError(
                f"an image has {IMAGE_SIZES[0]} to {IMAGE_SIZES[1]} pixels a side, got {shown(self.size)}"
            )
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "name", self.name or f"{self.inner.name}-Pixels")
        object.__setattr__(self, "observation_shape", (size, size))
        object.__setattr__(self, "actions", self.inner.actions)

    @cached_property
    def _scale(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Top left corner of the picture, that of its place in the image, and pixels per unit."""
        left, right, bottom, top = self.inner.field_extent()
        sides = np.array([bottom - top, right - left])
        per_unit = self.size / sides.max()
        return np.array([top, left]), (self.size - per_unit * sides) / 2.0, float(per_unit)

    @cached_property
    def _background(self) -> NDArray[np.float32]:
        """(size, size) the image without the agent; each pixel is the mean of 8 x 8 points inside it."""
        points = self.inner.field_points()
        assert points is not None
        walls = np.ma.getmaskarray(self.inner.field_image(np.zeros(len(points))))
        _, margin, per_unit = self._scale
        left, right, bottom, top = self.inner.field_extent()
        ticks = (np.arange(8 * self.size) + 0.5) / 8
        rows, columns = (
            np.floor((ticks - margin[axis]) / per_unit / side * walls.shape[axis]).astype(int)
            for axis, side in ((0, bottom - top), (1, right - left))
        )
        padded = np.pad(walls, 1, constant_values=True)
        is_wall = padded[np.clip(rows, -1, walls.shape[0]) + 1][:, np.clip(columns, -1, walls.shape[1]) + 1]
        fine = np.where(is_wall, _WALL, _FLOOR)
        return fine.reshape(self.size, 8, self.size, 8).mean(axis=(1, 3)).astype(np.float32)

    def observe(self, states: NDArray[Any]) -> NDArray[np.uint8]:
        """(n, size, size) images of states.

        Args:
            states: (n, ...) states.

        Returns:
            (n, size, size) images.
        """
        return self.see(self.inner.observe(states))

    def see(self, observations: NDArray[Any]) -> NDArray[np.uint8]:
        """(n, size, size) images of observations of the world behind.

        Args:
            observations: (n, ...) observations.

        Returns:
            (n, size, size) images.
        """
        places = self.inner.picture_places(np.asarray(observations))
        assert places is not None
        corner, margin, per_unit = self._scale
        pixels = (places - corner) * per_unit + margin
        centres = np.arange(self.size) + 0.5
        images = np.empty((len(pixels), self.size, self.size), dtype=np.uint8)
        for begin in range(0, len(pixels), _BLOCK):
            part = pixels[begin : begin + _BLOCK]
            down, across = (
                np.exp(-0.5 * ((centres - part[:, axis : axis + 1]) / _BLOB) ** 2).astype(np.float32) for axis in (0, 1)
            )
            blob = down[:, :, None] * across[:, None, :]
            images[begin : begin + _BLOCK] = np.rint(self._background + blob * (_AGENT - self._background))
        return images

    def field_points(self, cells: int = FIELD_CELLS) -> NDArray[Any] | None:
        """Images at the points at which the world behind is drawn, always the same: the ground truth is a table.

        Args:
            cells: not used: the points are those of the default resolution.

        Returns:
            (n, size, size) images.
        """
        return super().field_points()

    def field_reach(self, cells: int = FIELD_CELLS) -> tuple[float, float] | None:
        """That of the world behind, between the points that are drawn.

        Args:
            cells: resolution along each axis.

        Returns:
            Points down and across.
        """
        return self.inner.field_reach()

    def with_options(self, **options: Any) -> Self:
        """Images of the world with other options; ``observation`` is given already."""
        if options.get("observation", "pixels") != "pixels":
            raise ArgumentError(f"{self.name} is seen as images; pixels is its only observation")
        rest = {name: value for name, value in options.items() if name != "observation"}
        return type(self)(self.inner.with_options(**rest), self.size, self.name)

    def describe(self) -> dict[str, Any]:
        """The world behind, the size of images, and name."""
        return {"kind": "images", "name": self.name, "world": self.inner.describe(), "size": self.size}

    def summary(self) -> dict[str, Any]:
        """What ``lapwing worlds`` lists."""
        text = f"{self.inner.name} as grey images of {self.size} x {self.size} pixels"
        return self.inner.summary() | {"states": None, "description": text}
