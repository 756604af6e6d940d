"""Several arrays per observation as one row of bytes: what is packed comes back, and data sets of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import lapwing as lw
from lapwing.data.packing import ENTRIES, RowFormat
from lapwing.errors import ArgumentError, DamagedFileError, UnknownNameError

SHAPES = arrays_of.array_shapes(min_dims=1, max_dims=3, max_side=4)


@given(st.data())
def test_what_is_packed_comes_back(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5))
    given_arrays = {}
    for key in data.draw(st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True)):
        dtype = data.draw(st.sampled_from([np.uint8, np.float32, np.int16]))
        elements = {"allow_nan": False, "allow_infinity": False} if dtype == np.float32 else {}
        shape = (count, *data.draw(SHAPES))
        given_arrays[key] = data.draw(
            arrays_of.arrays(dtype, shape, elements=arrays_of.from_dtype(np.dtype(dtype), **elements))
        )
    layout = RowFormat.of(given_arrays)
    packed = layout.pack(given_arrays)
    assert packed.dtype == np.uint8
    assert packed.shape == (count, layout.row.itemsize)
    found = RowFormat.from_metadata(layout.as_metadata())
    assert found == layout
    for key, part in layout.unpack(packed).items():
        np.testing.assert_array_equal(part, given_arrays[key])


def test_equal_observations_have_equal_bytes() -> None:
    layout = RowFormat.of({"x": np.zeros((1, 1))})
    assert (layout.pack({"x": np.array([[0.0], [-0.0]])}) == 0).all()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"image": np.zeros((2, 3, 3))}, "no speed"),
        ({"image": np.zeros((2, 3, 3)), "speed": np.zeros((3, 2))}, "must have shape"),
        ({"image": np.zeros((2, 3, 4)), "speed": np.zeros((2, 2))}, r"observations\['image'\]"),
    ],
)
def test_wrong_arrays_are_named(arrays: dict[str, Any], message: str) -> None:
    layout = RowFormat.of({"image": np.zeros((1, 3, 3), np.uint8), "speed": np.zeros((1, 2))})
    with pytest.raises(ArgumentError, match=message):
        layout.pack(arrays)


@pytest.mark.parametrize(
    "entries",
    ["x", [], [["a", "uint8"]], [["a", "object", [2]]], [["a", "uint8", [-1]]], [["a", "uint8", [1 << 40]]], 3],
)
def test_entries_from_a_damaged_file_are_refused(entries: Any) -> None:
    with pytest.raises(DamagedFileError):
        RowFormat.from_metadata({ENTRIES: entries})


def test_packed_experience_is_tabulated_where_the_keys_together_repeat() -> None:
    rng = np.random.default_rng(0)
    place, facing = rng.integers(0, 5, (400, 1)), rng.integers(0, 4, (400, 1))
    data = lw.from_arrays({"place": place.astype(np.float32), "facing": facing.astype(np.uint8)}, lengths=[200, 200])
    packed = data.packed()
    assert packed.has_table
    assert len(packed.observations) == 20
    assert packed.packed() is packed
    positions = packed.rows(np.arange(400))
    np.testing.assert_array_equal(packed.numbers(positions), np.concatenate([place, facing], axis=1))
    one = data.select("place")
    assert not one.keys
    assert data.select(["facing", "place"]).keys == ("facing", "place")
    with pytest.raises(UnknownNameError):
        data.select(["place", "fcing"])


def test_large_experience_is_packed_in_a_temporary_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.data.trajectories.PACKED_IN_MEMORY", 100)
    rng = np.random.default_rng(0)
    arrays = {"a": rng.standard_normal((400, 3)), "b": rng.integers(0, 255, (400, 4, 4), dtype=np.uint8)}
    packed = lw.from_arrays(arrays, lengths=[400]).packed()
    assert isinstance(packed.observations, np.memmap)
    layout = RowFormat.from_metadata(packed.metadata)
    assert layout is not None
    np.testing.assert_array_equal(layout.unpack(packed.observations)["b"], arrays["b"])


def test_an_audit_of_several_keys_finds_a_rotation_in_one_of_them() -> None:
    turning = lw.collect("NoisyRotation", 20_000, seed=0)
    noise = np.random.default_rng(0).integers(0, 255, (turning.num_states, 6), dtype=np.uint8)
    both = lw.from_arrays({"noise": noise, "angle": turning.observations}, lengths=turning.lengths + 1)
    found = lw.audit(both)
    assert found.asymmetry_over_noise > 3.0
    assert any("directed" in warning for warning in found.warnings)


def test_counting_takes_the_keys_together() -> None:
    plain = lw.collect("GridRoom-1", 20_000, seed=0)
    places = plain.observations[plain.rows(np.arange(plain.num_states))]
    both = lw.from_arrays({"down": places[:, :1], "across": places[:, 1:]}, lengths=plain.lengths + 1)
    whole, joined = lw.solve(plain, dim=5), lw.solve(both, dim=5)
    np.testing.assert_allclose(joined.eigenvalues, whole.eigenvalues, atol=1e-12)
    np.testing.assert_allclose(joined.transform(both.observations), whole.transform(places), atol=1e-6)
    assert lw.operator(both).num_states == 225
