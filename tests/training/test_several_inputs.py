"""Learning from several keys of an observation at once: a network with an input for each."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing.encoders import NetworkEncoder, build_encoder, unpack_entries
from lapwing.encoders.networks import kinds_of_entries, packed_statistics
from lapwing.errors import ArgumentError, UntrustedWarning


def half_seen(steps: int = 20_000) -> lw.Trajectories:
    """A point in a box whose height is seen as an image and whose place across as a number."""
    data = lw.collect("Box-2", steps, seed=0)
    down, across = data.observations.T
    ticks = np.linspace(down.min(), down.max(), 12)
    bars = np.rint(255 * np.exp(-0.5 * ((ticks - down[:, None]) / 0.08) ** 2)).astype(np.uint8)
    images = np.repeat(bars[:, :, None], 5, axis=2)
    return lw.from_arrays({"camera": images, "across": 100.0 * across[:, None]}, lengths=data.lengths + 1)


def test_each_entry_has_a_trunk_of_its_own_and_all_of_them_matter() -> None:
    packed = half_seen(500).packed()
    layout = lw.data.packing.RowFormat.from_metadata(packed.metadata)
    assert layout is not None
    kinds = kinds_of_entries(layout)
    assert kinds == ["conv", "fourier"]
    statistics = packed_statistics(packed.observations, None, layout)
    assert statistics.centre.shape == statistics.scale.shape == (61,)
    encoder = build_encoder(
        "several", (64,), 3, jax.random.key(0), **layout.as_metadata(), kinds=kinds, statistics=statistics, hidden=(8,)
    )
    values = encoder.encode(packed.observations)
    for first, last in ((0, 60), (60, 64)):
        changed = packed.observations.copy()
        changed[:, first:last] = np.roll(changed[:, first:last], 100, axis=0)
        assert np.abs(encoder.encode(changed) - values).max() > 1e-3
    again = NetworkEncoder.from_parts("several", encoder.config(), encoder.arrays())
    np.testing.assert_array_equal(again.encode(packed.observations), values)


@pytest.mark.slow
def test_two_views_together_give_what_neither_gives_alone(tmp_path: Path) -> None:
    data, truth = half_seen(50_000), lw.solve("Box-2", dim=3)
    places = lw.collect("Box-2", 50_000, seed=0).observations
    model = lw.learn(data, dim=3, steps=500, batch_size=256, seed=0)
    values, exact = model.transform(data.observations), truth.transform(places)
    cosines = np.abs((values * exact).mean(axis=0)) / np.sqrt((values**2).mean(axis=0) * (exact**2).mean(axis=0))
    assert cosines.min() > 0.97
    assert model.metadata["encoder"] == "several"
    model.save(tmp_path / "model")
    again = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(data.observations), values)
    with pytest.raises(ArgumentError, match="no across"):
        again.transform({"camera": data.observations["camera"]})  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="several"):
        lw.learn(data, dim=3, encoder="mlp")


def test_a_dictionary_needs_a_model_of_several_keys() -> None:
    with pytest.raises(ArgumentError, match="one array"):
        lw.solve("GridMaze-7", dim=3).transform({"xy": np.zeros((1, 2))})


def test_a_network_of_your_own_unpacks_the_rows() -> None:
    data = half_seen(2_000)

    class Network(eqx.Module):
        layer: eqx.nn.Linear
        entries: tuple[tuple[str, str, tuple[int, ...]], ...] = eqx.field(static=True)

        def __call__(self, batch: jax.Array) -> jax.Array:
            parts = unpack_entries(batch, self.entries)
            return jax.vmap(self.layer)(
                jnp.concatenate([parts["camera"][:, :, 0] / 255, parts["across"] / 100], axis=1)
            )

    packed = data.packed()
    entries = tuple((key, dtype, tuple(shape)) for key, dtype, shape in packed.metadata["entries"])
    network = Network(eqx.nn.Linear(13, 5, key=jax.random.key(0)), entries)
    with pytest.raises(ArgumentError, match="unpack_entries"):
        lw.learn(data, dim=3, encoder=network)
    with pytest.warns(UntrustedWarning, match="too few data"):
        model = lw.learn(packed, dim=3, oversampling=2, encoder=network, steps=20, refit=0)
    assert model.transform(data.observations).shape == (data.num_states, 3)
    assert np.isfinite(model.transform(data.observations)).all()
