"""The contents of JSON files as typed records; :func:`lapwing.storage.reading.convert` checks what was read.

A field that a record does not list is ignored, so that a later version may add one.
"""

import math
import sys
from typing import Annotated, Any, Literal, TypeGuard

from msgspec import Meta, Struct

from lapwing.errors import DamagedFileError
from lapwing.storage.reading import convert

Positive = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
NonNegative = Annotated[float, Meta(ge=0.0)]
ShortText = Annotated[str, Meta(max_length=100)]


class EncoderRecord(Struct, frozen=True):
    """An encoder without its arrays: its kind, and its options as plain data."""

    kind: ShortText
    config: dict[str, Any]


class RotatedRecord(Struct, frozen=True):
    """Configuration of a rotated encoder: the network in front of the rotation."""

    inner: EncoderRecord


class LeadingRecord(Struct, frozen=True):
    """Configuration of an encoder of the first entries of observations: how many, and the encoder behind."""

    columns: Positive
    inner: EncoderRecord


class ProductRecord(Struct, frozen=True):
    """Configuration of a product of encoders: how many entries each takes, and the factors."""

    widths: list[Positive]
    factors: list[EncoderRecord]


class NetworkRecord(Struct, frozen=True):
    """What the configuration of every network has besides its options."""

    dim: Positive
    observation_shape: list[Positive] = []


class ModelManifest(Struct, frozen=True):
    """``model.json``: everything about a representation but its arrays."""

    dim: Positive
    definition: ShortText
    exact: bool
    encoder: EncoderRecord
    checksum: int
    orthonormality_error: NonNegative | None = None
    next_mu: float | None = None
    metadata: dict[str, Any] = {}


class TrajectoriesManifest(Struct, frozen=True):
    """``trajectories.json``: the checksums of a data set's arrays, by name, and where it comes from."""

    checksums: dict[str, int]
    metadata: dict[str, Any] = {}
    keys: list[str] = []


class BoxDescription(Struct, frozen=True):
    """A box world, in the metadata of models and data sets."""

    name: str
    sides: list[float]
    step: float


class GridDescription(Struct, frozen=True):
    """A grid world, in the metadata of models and data sets."""

    name: str
    layout: str
    observation: str
    slip: float
    policy: list[list[float]] | None = None
    wind: float = 0.0
    one_way: list[tuple[int, int, str]] = []
    portals: list[tuple[int, int, str, int, int]] = []


class ContinuousDescription(Struct, frozen=True):
    """A layout as a continuous world, in the metadata of models and data sets."""

    name: str
    layout: str
    deviation: float
    steps: str


class NoisyDescription(Struct, frozen=True):
    """A world beside dimensions of noise, in the metadata of models and data sets."""

    name: str
    world: dict[str, Any]
    dimensions: int
    deviation: float


class ImagesDescription(Struct, frozen=True):
    """A world seen as images, in the metadata of models and data sets."""

    name: str
    world: dict[str, Any]
    size: int


class RotationDescription(Struct, frozen=True):
    """A noisy rotation, in the metadata of models and data sets."""

    name: str
    drift: float
    noise: float


class PotentialDescription(Struct, frozen=True):
    """A diffusion in a potential, in the metadata of models and data sets."""

    name: str
    potential: str
    time_step: float


class ProductDescription(Struct, frozen=True):
    """Worlds side by side, in the metadata of models and data sets."""

    name: str
    factors: list[dict[str, Any]]


class EpisodeLengths(Struct, frozen=True):
    """How many episodes have which ``lengths``, or lie between which ``edges``."""

    counts: list[Natural]
    lengths: list[Natural] | None = None
    edges: list[float] | None = None


class DataRecord(Struct, frozen=True):
    """What ``audit.json`` holds besides the audit itself; see ``audit_record`` in ``run_folder.py``."""

    visits_of: Literal["states", "cells", "rows"] | None = None
    visits: list[Natural] | None = None
    visits_shape: list[Positive] | None = None
    episode_lengths: EpisodeLengths | None = None


class ScoreRecord(Struct, frozen=True):
    """A :class:`lapwing.evaluation.Score` as JSON types."""

    cosine: float
    subspace_cosine: float
    mean_eigenvalue_error: float
    cosines: list[float]
    subspace_cosines: list[float]
    clusters: list[list[Natural]]
    tolerance: float
    eigenvalue_errors: list[float | None]
    definition: str


class Eigenvalues(Struct, frozen=True):
    """Eigenvalues with their definition."""

    definition: str
    values: list[float]


class ScoresRecord(Struct, frozen=True):
    """What ``scores.json`` holds: scores against the ground truth, and the eigenvalues of the counting baseline."""

    learned: ScoreRecord | None = None
    baseline: ScoreRecord | None = None
    baseline_eigenvalues: Eigenvalues | None = None


class Provenance(Struct, frozen=True):
    """What ``provenance.json`` holds (``made.json`` in runs of version 0.1)."""

    command: list[str] | None = None
    date: str | None = None
    versions: dict[str, Any] | None = None


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value from a file is a finite number; true and false are not.

    Args:
        value: of any JSON type.

    Returns:
        True for int and float within the range of floats.
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def world_name(metadata: dict[str, Any], otherwise: str) -> str:
    """The name of the world in the metadata of a model or a data set.

    Args:
        metadata: as saved.
        otherwise: what to return where there is no name.

    Returns:
        The name.
    """
    world = metadata.get("world")
    name = world.get("name") if isinstance(world, dict) else None
    return otherwise if name is None or name == "" else str(name)


def learning_history(metadata: dict[str, Any]) -> list[dict[str, float]]:
    """Rows of the learning curves in the metadata of a model.

    Args:
        metadata: as saved.

    Returns:
        Rows with the same columns, NaN where a number is missing; empty where there is no history.
    """
    rows = convert(metadata.get("history") or [], list[dict[str, float | None]], "the learning history")
    if any(row.get("step") is None for row in rows):
        raise DamagedFileError("the learning history has a row without its step; the file is damaged")
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name) for name in names] for row in rows]
    return [dict(zip(names, (math.nan if one is None else one for one in row), strict=True)) for row in cells]
