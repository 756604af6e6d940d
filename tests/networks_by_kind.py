"""Small networks of every kind that has plain layers, with scaled inputs."""

from typing import Any

import jax
import numpy as np

from lapwing.encoders import Statistics, build_encoder

NETWORKS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("mlp", (3,), {"hidden": (8,)}),
    ("mlp", (3, 4), {"hidden": (8, 8), "activation": "silu", "outputs": "symlog"}),
    ("fourier", (2,), {"hidden": (8,)}),
    ("conv", (9, 7), {"hidden": (8,)}),
    ("conv", (13, 11, 3), {"hidden": (8,), "activation": "silu"}),
    ("conv", (4, 20, 21), {"hidden": (8,), "patch": 5}),
    ("conv", (2, 10, 12, 3), {"hidden": (8,), "channels": (4,)}),
]


def scaled_network(kind: str, shape: tuple[int, ...], options: dict[str, Any]) -> Any:
    rng = np.random.default_rng(0)
    statistics = Statistics(rng.normal(size=shape).astype(np.float32), np.array(2.0, np.float32))
    return build_encoder(kind, shape, 5, jax.random.key(0), statistics=statistics, **options)


def some_observations(shape: tuple[int, ...], count: int = 4) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(count, *shape)).astype(np.float32)
