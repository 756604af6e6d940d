"""Hostile layouts: refused with a message, and a name is never a way out of the folder."""

import os
from pathlib import Path
from typing import Any

import pytest

from lapwing.environments.layouts import Layout
from lapwing.errors import LapwingError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no free cell"),
        (b"\x00\x00", "unknown character"),
        (b"\xff\xfeX", "not a text file"),
        (b"XXX\nX X\nXX", "ragged"),
        (b"<script>alert(1)</script>", "unknown character"),
        (b"XXX\nX\x1bX\nXXX", r"unknown character '\\x1b'"),
        (b"\n" * 1000, "no free cell"),
        (b"X" * 1000, "no free cell"),
    ],
)
def test_a_hostile_layout_is_refused(place: Path, run: Any, content: bytes, words: str) -> None:
    path = place / "own.txt"
    path.write_bytes(content)
    with pytest.raises(LapwingError, match=words):
        Layout.from_file(path)
    result = run("solve own.txt")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "\x1b" not in result.err
    assert [entry.name for entry in place.iterdir()] == ["own.txt"]


def test_a_layout_beyond_the_limit_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.environments.layouts.MAX_TILES", 20)
    (place / "own.txt").write_text("." * 21)
    with pytest.raises(LapwingError, match="more than 20 tiles"):
        Layout.from_file(place / "own.txt")
    with pytest.raises(LapwingError, match="more than 20 tiles"):
        Layout.from_text("." * 21)


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "device"])
def test_what_is_no_file_is_refused_at_once(place: Path, kind: str) -> None:
    path = place / "own.txt"
    make = {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "loop": lambda: path.symlink_to(path)}
    make.get(kind, lambda: path.symlink_to("/dev/zero"))()
    with pytest.raises(LapwingError, match="cannot read"):
        Layout.from_file(path)


@pytest.mark.parametrize("name", ["../../../escape", "a\nb", "-rf", "$(touch escape)", "\x1b[2J"], ids=ascii)
def test_the_name_of_a_layout_stays_inside_the_folder(place: Path, run: Any, name: str) -> None:
    path = place / f"{name.replace('/', '_')}.txt"
    path.write_text("XXXX\nX..X\nXXXX")
    result = run(f"collect '{path}' --steps 5 --out 'data'")
    assert result.code == 0
    assert "\x1b" not in result.out + result.err
    assert {entry.name for entry in place.iterdir()} == {path.name, "data"}
