"""Functions from observations to components: tables, closed forms and networks.

The public names are imported on first use, so that tables and closed forms do without JAX.
"""

from typing import Any

__all__ = [
    "ENCODERS",
    "Constant",
    "EncoderKind",
    "NetworkEncoder",
    "RotatedEncoder",
    "Standardise",
    "Statistics",
    "build_encoder",
    "default_kind",
    "encoder_options",
    "encoder_statistics",
    "own_encoder",
    "trainable_filter",
    "unpack_entries",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'lapwing.encoders' has no attribute {name!r}")
    from lapwing.encoders import layers, networks, several

    return next(getattr(module, name) for module in (networks, layers, several) if hasattr(module, name))
