"""The size that a study was started with, stored beside its page, so that its name alone is enough to resume it."""

import hashlib
import shlex
from pathlib import Path
from typing import Any

import msgspec

from lapwing.errors import ArgumentError, DamagedFileError
from lapwing.storage import read_manifest, write_json
from lapwing_paper.run_store import StudyRun

FORMAT = "lapwing-study"
VERSION = 1
FILE = "study.json"


class StudyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The size of a study and its worlds; None is the study's own.

    Attributes:
        full: the paper's size instead of the quick one.
        seeds: how many seeds.
        steps: gradient steps.
        worlds: which worlds.
        layouts: folder of the authors' layouts.
    """

    full: bool | None = None
    seeds: int | None = None
    steps: int | None = None
    worlds: tuple[str, ...] | None = None
    layouts: str | None = None

    def command(self, name: str) -> str:
        """The command line that requests this; the layouts folder is elsewhere on every machine."""
        options = [_option(field, getattr(self, field)) for field in self.__struct_fields__]
        return " ".join(["lapwing", "reproduce", name, *filter(None, options)])

    def completed_by(self, stored: "StudyRequest") -> "StudyRequest":
        """This request with what it leaves open taken from a stored one; an error where the two disagree."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        for name, now in given.items():
            then = getattr(stored, name)
            # The same layouts may be elsewhere by now; that they are the same is seen by the runs.
            if now != then and name != "layouts":
                raise ArgumentError(
                    f"this study was started with {_option(name, then) or f'no --{name}'}, not {_option(name, now)}: "
                    "leave that out to resume it, or leave --resume out to start another size"
                )
        return msgspec.structs.replace(stored, **given)


def write_request(path: Path, name: str, request: StudyRequest, runs: list[StudyRun]) -> None:
    """Store the request of a study, and a digest of its runs.

    Args:
        path: of ``study.json``.
        name: of the study.
        request: its size.
        runs: all its runs.
    """
    layouts = None if request.layouts is None else str(Path(request.layouts).resolve())
    stored = msgspec.structs.replace(request, full=bool(request.full), layouts=layouts)
    content = {"study": name, "request": msgspec.to_builtins(stored), "runs": digest(runs)}
    write_json(path, {"format": FORMAT, "version": VERSION, **content})


def read_request(path: Path, name: str) -> tuple[StudyRequest, str]:
    """The stored request of a study, and the digest of its runs.

    Args:
        path: of ``study.json``.
        name: of the study.

    Returns:
        The request, and the digest of the runs that it meant then.
    """
    if not path.is_file():
        raise ArgumentError(
            f"no study of {name} was started in {path.parent.parent}; leave --resume out to start it, or give its "
            "folder with --out"
        )
    content = read_manifest(path, FORMAT, VERSION)
    if content.get("study") != name:
        raise DamagedFileError(f"{path} is of another study, {content.get('study')!r}; leave --resume out")
    try:
        return msgspec.convert(content["request"], StudyRequest), str(content["runs"])
    except (KeyError, msgspec.ValidationError) as error:
        raise DamagedFileError(f"{path} is damaged ({error}); leave --resume out and start again") from error


def digest(runs: list[StudyRun]) -> str:
    """The same for the same runs, in whatever order.

    Args:
        runs: of a study.

    Returns:
        64 hexadecimal digits.
    """
    return hashlib.sha256("\n".join(sorted({run.key for run in runs})).encode()).hexdigest()


def _option(name: str, value: Any) -> str:
    """A field as an option of the command line."""
    if name == "full":
        return "--full" if value else "--quick"
    if value is None:
        return ""
    values = {"worlds": lambda: [shlex.quote(world) for world in value], "layouts": lambda: ["DIR"]}
    return " ".join([f"--{name}", *values.get(name, lambda: [str(value)])()])
