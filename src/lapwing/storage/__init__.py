"""Atomic files, schemas, run folders and locks: the only package that knows file formats."""

from lapwing.storage.files import write_bytes, write_json
from lapwing.storage.folders import locked
from lapwing.storage.reading import read_array, read_bytes, read_manifest

__all__ = ["locked", "read_array", "read_bytes", "read_manifest", "write_bytes", "write_json"]
