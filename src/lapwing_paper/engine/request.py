"""What was asked of a study, kept beside its page, so that its name alone is enough to go on with it."""

import hashlib
import shlex
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from lapwing.errors import LapwingError
from lapwing.storage.files import write_json
from lapwing.storage.reading import read_manifest
from lapwing_paper.engine.runs import Run

FORMAT = "lapwing-study"
VERSION = 1
FILE = "study.json"


@dataclass(frozen=True)
class Request:
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
        """The words that ask for this; the layouts folder is somewhere else on every machine."""
        words = ["lapwing", "reproduce", name, *(_word(one.name, getattr(self, one.name)) for one in fields(self))]
        return " ".join(word for word in words if word)

    def completed_by(self, kept: "Request") -> "Request":
        """This request with what it leaves open taken from a kept one; an error where it asks for something else."""
        for one in fields(self):
            now, then = getattr(self, one.name), getattr(kept, one.name)
            # The same layouts may be elsewhere by now; that they are the same is seen by the runs.
            if now is not None and now != then and one.name != "layouts":
                said = _word(one.name, then) or f"no --{one.name}"
                raise LapwingError(
                    f"this study was begun with {said}, not {_word(one.name, now)}: leave that out to go on with it, "
                    "or leave --resume out to ask for another size"
                )
        given = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) is not None}
        return replace(kept, **given)


def keep_request(path: Path, name: str, request: Request, runs: list[Run]) -> None:
    """Write down what was asked of a study, and which runs that meant."""
    layouts = None if request.layouts is None else str(Path(request.layouts).resolve())
    asked = asdict(replace(request, full=bool(request.full), layouts=layouts))
    write_json(path, {"format": FORMAT, "version": VERSION, "study": name, "request": asked, "runs": digest(runs)})


def read_request(path: Path, name: str) -> Request:
    """What was asked of a study."""
    return _request(_read(path, name), path)


def check_runs(path: Path, name: str, runs: list[Run]) -> None:
    """An error if the runs are not those that were meant when the study was begun."""
    if _read(path, name).get("runs") != digest(runs):
        raise LapwingError(
            f"the runs of {name} are not those that it was begun with: its layouts are others now, or lapwing is. Give "
            "--layouts DIR as before, or leave --resume out to make the study as it is now"
        )


def digest(runs: list[Run]) -> str:
    """The same for the same runs, in whatever order."""
    return hashlib.sha256("\n".join(sorted({run.key for run in runs})).encode()).hexdigest()


def _read(path: Path, name: str) -> dict[str, Any]:
    if not path.is_file():
        raise LapwingError(
            f"no study of {name} was begun in {path.parent.parent}; leave --resume out to begin it, or name the "
            "folder with --out"
        )
    content = read_manifest(path, FORMAT, VERSION)
    if content.get("study") != name:
        raise LapwingError(f"{path} is of another study, {content.get('study')!r}; leave --resume out")
    return content


def _request(content: dict[str, Any], path: Path) -> Request:
    asked = content.get("request")
    known = {one.name for one in fields(Request)}
    if not isinstance(asked, dict) or set(asked) != known or not all(map(_is_sound, asked, asked.values())):
        raise LapwingError(f"{path} is damaged: it does not say what was asked; leave --resume out and ask again")
    worlds = asked["worlds"]
    return Request(**{**asked, "worlds": None if worlds is None else tuple(worlds)})


def _is_sound(name: str, value: Any) -> bool:
    if value is None:
        return True
    if name == "worlds":
        return isinstance(value, list) and all(isinstance(world, str) for world in value)
    return type(value) is {"full": bool, "seeds": int, "steps": int, "layouts": str}[name]


def _word(name: str, value: Any) -> str:
    """A field as it is said on the command line."""
    if name == "full":
        return "--full" if value else "--quick"
    if value is None:
        return ""
    words = [shlex.quote(world) for world in value] if name == "worlds" else [str(value)]
    return " ".join([f"--{name}", *(words if name != "layouts" else ["DIR"])])
