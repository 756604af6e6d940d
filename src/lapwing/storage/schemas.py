"""The contents of every JSON file as typed records; :func:`lapwing.storage.reading.convert` checks what was read.

A field that a record does not list is ignored, so that a later version may add one.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

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
