"""How hostile files are made, in a test's own folder and nowhere else."""

import io
import json
import pickle
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save

GOLDEN = Path(__file__).parents[1] / "golden"

JSON_BOMBS: dict[str, bytes] = {
    "empty": b"",
    "half": b'{"format": "lapwing-',
    "not text": b"\xff\xfe\x00\x01",
    "a list": b"[1, 2]",
    "null": b"null",
    "deep": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep but readable": b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}",
    "a key twice": b'{"format": "a", "format": "b"}',
    "a huge number": b'{"dim": ' + b"9" * 4_000 + b"}",
    "infinity": b'{"dim": 1e999}',
    "NaN": b'{"dim": NaN}',
    "half a character": b'{"name": "\\ud800"}',
    "a pickle": pickle.dumps({"dim": 3}),
}


class Exploit:
    """Unpickling this would create a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.trace), "w")


def npy(header: str, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    """An ``.npy`` file with a header of one's own."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H" if version[0] == 1 else "<I", len(text)) + text + body


def saved(array: Any, **options: Any) -> bytes:
    """The bytes of an array file."""
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def archive(**members: bytes) -> bytes:
    """A zip archive, such as ``.npz`` files are; names may lead anywhere."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as opened:
        for name, content in members.items():
            opened.writestr(name.replace("__", "../../"), content)
    return stream.getvalue()


def array_bombs(trace: Path) -> dict[str, bytes]:
    """Array files of every hostile kind; ``trace`` is what a pickle inside would create."""
    good = np.arange(12.0).reshape(3, 4)
    return {
        "empty": b"",
        "text": b"row,column\n1,2\n",
        "truncated": saved(good)[:-1],
        "too long": saved(good) + b"\0",
        "cut in its head": saved(good)[:40],
        "a pickle": pickle.dumps(Exploit(trace)),
        "a pickle inside": saved(np.array([Exploit(trace)], dtype=object), allow_pickle=True),
        "a pickle in an archive": archive(array=saved(np.array([Exploit(trace)], dtype=object), allow_pickle=True)),
        "an archive that climbs": archive(__climbed=saved(good), array=saved(good)),
        "complex": saved(good.astype(np.complex128)),
        "text inside": saved(np.array(["a", "b"])),
        "records": saved(np.zeros(3, dtype="f8,i4")),
        "dates": saved(np.zeros(3, dtype="M8[s]")),
        "long floats": saved(good.astype(np.longdouble)),
        "huge": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", bytes(80)),
        "huger than a word": npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**30},), }}", bytes(80)),
        "overflowing": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", bytes(80)),
        "negative": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -10), }", bytes(80)),
        "many axes": npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {(1,) * 70}, }}", bytes(8)),
        "empty but wide": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9223372036854775807, 3), }"),
        "a shape of words": npy("{'descr': '<f8', 'fortran_order': False, 'shape': ('a',), }", bytes(80)),
        "code in its head": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (__import__('os').getpid(),), }"),
        "brackets": npy("(" * 9_000, bytes(8)),
        "a long head": npy("{" + " " * 60_000 + "}"),
        "unknown version": saved(good).replace(b"NUMPY\x01\x00", b"NUMPY\x09\x00"),
        "version three": npy(
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(8), version=b"\x03\x00"
        ),
    }


def tensors(header: dict[str, Any] | bytes, body: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file with a head of one's own, and its length as it is or as one claims."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def tensor_bombs() -> dict[str, bytes]:
    """Weights of every hostile kind."""
    one: dict[str, Any] = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    return {
        "empty": b"",
        "text": b"not safetensors at all",
        "a pickle": pickle.dumps({"mu": 1}),
        "a huge head": tensors(b"{}", length=1 << 62),
        "a head longer than the file": tensors(b"{}", length=1000),
        "a head that is no JSON": tensors(b"{{{{"),
        "a deep head": tensors(b'{"a":' + b"[" * 10_000),
        "overlapping": tensors({"mu": one, "other": {**one, "data_offsets": [8, 24]}}, bytes(24)),
        "a gap": tensors({"mu": {**one, "data_offsets": [8, 24]}}, bytes(24)),
        "beyond the end": tensors({"mu": {**one, "data_offsets": [0, 1 << 40]}}, bytes(16)),
        "backwards": tensors({"mu": {**one, "data_offsets": [16, 0]}}, bytes(16)),
        "a shape that lies": tensors({"mu": {**one, "shape": [1 << 40]}}, bytes(16)),
        "a shape that overflows": tensors({"mu": {**one, "shape": [1 << 63, 2]}}, bytes(16)),
        "a negative shape": tensors({"mu": {**one, "shape": [-2]}}, bytes(16)),
        "an unknown type": tensors({"mu": {**one, "dtype": "PICKLE"}}, bytes(16)),
        "half floats of another kind": tensors(
            {"mu": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]}}, bytes(16)
        ),
        "more than it says": tensors({"mu": one}, bytes(99)),
        "nothing in it": tensors(b"{}"),
    }


def edit_json(path: Path, **changes: Any) -> None:
    """Change fields of a record; ``...`` removes one."""
    content = json.loads(path.read_text())
    content.update(changes)
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not ...}))


def forge_weights(folder: Path, content: bytes) -> None:
    """Put other weights into a model, and the checksum that goes with them, as a careful forger would."""
    (folder / "model.safetensors").write_bytes(content)
    edit_json(folder / "model.json", checksum=zlib.crc32(content))


def forge_arrays(folder: Path, **changes: Any) -> None:
    """Change arrays of a model, ``__`` standing for a dot; None removes one."""
    arrays = load_file(folder / "model.safetensors") | {n.replace("__", "."): array for n, array in changes.items()}
    forge_weights(folder, save({name: array for name, array in arrays.items() if array is not None}))


def forge_npy(folder: Path, name: str, array: Any) -> None:
    """Put another array into trajectories, and the checksum that goes with it."""
    from lapwing.storage.reading import crc32

    (folder / f"{name}.npy").write_bytes(saved(array))
    manifest = json.loads((folder / "trajectories.json").read_text())
    manifest["checksums"][name] = crc32(np.asarray(array))
    (folder / "trajectories.json").write_text(json.dumps(manifest))
