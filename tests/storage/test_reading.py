"""Reading a file never runs code, and what is none of ours is refused."""

from pathlib import Path

import numpy as np
import pytest

from lapwing.errors import ArgumentError, DamagedFileError
from lapwing.storage.files import write_json
from lapwing.storage.reading import crc32, read_array, read_manifest


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"version": ' + b"9" * 5000 + b"}",
        b"[1, 2]",
        b"{}",
        b'{"format": "other", "version": 1}',
        b'{"format": "ours"}',
        b'{"format": "ours", "version": true}',
        b'{"format": "ours", "version": "1"}',
        b'{"format": "ours", "version": 0}',
        b'{"format": "ours", "version": 3}',
    ],
    ids=lambda content: repr(content[:40]),
)
def test_a_foreign_or_damaged_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"manifest\.json"):
        read_manifest(path, "ours", newest=2)


def test_a_good_manifest_reads_and_a_missing_or_huge_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "manifest.json"
    with pytest.raises(ArgumentError):
        read_manifest(path, "ours", newest=2)
    write_json(path, {"format": "ours", "version": 2, "more": [1]})
    assert read_manifest(path, "ours", newest=2)["more"] == [1]
    monkeypatch.setattr("lapwing.storage.reading.MAX_MANIFEST_BYTES", 10)
    with pytest.raises(DamagedFileError):
        read_manifest(path, "ours", newest=2)


class Exploit:
    """Unpickling this would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("mmap", [False, True])
def test_a_pickle_inside_an_array_file_is_refused_and_not_run(tmp_path: Path, mmap: bool) -> None:
    path, trace = tmp_path / "array.npy", tmp_path / "executed"
    np.save(path, np.array([Exploit(trace)], dtype=object), allow_pickle=True)
    with pytest.raises(DamagedFileError):
        read_array(path, mmap=mmap)
    assert not trace.exists()


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    "damage", ["missing", "folder", "empty", "foreign", "short", "archive", "broken archive", "huge"]
)
def test_an_array_file_that_is_none_of_ours_is_refused(tmp_path: Path, damage: str, mmap: bool) -> None:
    path = tmp_path / "array.npy"
    np.save(path, np.arange(100.0))
    content = path.read_bytes()
    if damage in ("missing", "folder"):
        path.unlink()
    if damage == "folder":
        path.mkdir()
    if damage == "empty":
        path.write_bytes(b"")
    if damage == "foreign":
        path.write_bytes(b"row,column\n1,2\n")
    if damage == "short":
        path.write_bytes(content[:-8])
    if damage == "archive":
        with path.open("wb") as stream:
            np.savez(stream, array=np.arange(3))
    if damage == "broken archive":
        path.write_bytes(b"PK\x03\x04" + bytes(100))
    if damage == "huge":
        path.write_bytes(content.replace(b"(100,), }          ", b"(10000000000000,), }"[:19]))
        assert path.read_bytes() != content
    with pytest.raises(DamagedFileError, match=r"array\.npy"):
        read_array(path, mmap=mmap)


@pytest.mark.parametrize("mask", [0x02, 0xFF])
@pytest.mark.parametrize("dtype", ["<f4", "|b1"])
def test_no_byte_of_an_array_file_can_change_unnoticed(tmp_path: Path, dtype: str, mask: int) -> None:
    path = tmp_path / "array.npy"
    array = np.random.default_rng(0).integers(0, 2, size=(3, 2)).astype(dtype)
    np.save(path, array)
    content = path.read_bytes()
    noticed = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= mask
        path.write_bytes(damaged)
        try:
            read = read_array(path, checksum=crc32(array))
        except DamagedFileError:
            noticed += 1
        else:  # blanks and the like, which mean nothing
            assert read.dtype == array.dtype
            np.testing.assert_array_equal(read, array)
    assert noticed > array.nbytes


def test_the_checksum_knows_values_types_and_shapes_but_not_memory_order() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    others = [array + 1, array.reshape(3, 2), array.astype(">i4"), array.view(np.uint32), array.view(np.float32)]
    assert len({crc32(array), *map(crc32, others)}) == 6
    assert crc32(np.asfortranarray(array)) == crc32(array)
