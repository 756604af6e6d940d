"""``run.json``: what a run was started with, as data, and whether it has ended; so that it can be resumed."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from lapwing.errors import ArgumentError, DamagedFileError
from lapwing.storage.files import write_json
from lapwing.storage.reading import convert, read_manifest

FORMAT = "lapwing-run"
VERSION = 2
RUN_FILE = "run.json"
CHECKPOINTS = "checkpoints"
EXPERIENCE = "experience"
# Files that a run keeps in these folders until it has ended.
OWN_FILES = {
    CHECKPOINTS: ("step-*", "damaged-step-*", ".step-*", ".lock"),
    EXPERIENCE: ("*.npy", "trajectories.json", ".*.npy.*", ".lock"),
}
UNFINISHED, FINISHED = "unfinished", "finished"


class RunConfiguration(msgspec.Struct, frozen=True):
    """What a run was started with.

    Attributes:
        command: name of the command, ``learn``.
        arguments: of the command, by name, as JSON types; paths are absolute.
        options: learning options from a configuration file, as JSON types.
        typed: the command line as typed, to be shown and never parsed.
        status: ``unfinished`` or ``finished``.
    """

    command: str
    arguments: dict[str, Any]
    options: dict[str, Any]
    typed: list[str]
    status: str = UNFINISHED


def write_configuration(folder: Path, configuration: RunConfiguration) -> None:
    """Write ``run.json`` atomically.

    Args:
        folder: the run folder.
        configuration: what to keep.
    """
    write_json(folder / RUN_FILE, {"format": FORMAT, "version": VERSION, **msgspec.structs.asdict(configuration)})


def read_configuration(folder: Path) -> RunConfiguration | None:
    """Read ``run.json``.

    Args:
        folder: a run folder.

    Returns:
        What the run was started with; None if the folder has no such file.

    Raises:
        DamagedFileError: where a field is missing or has the wrong type.
    """
    path = folder / RUN_FILE
    if not path.exists():
        return None
    found = convert(read_manifest(path, FORMAT, VERSION), RunConfiguration, path)
    if found.status not in (UNFINISHED, FINISHED):
        raise DamagedFileError(f"{path} is damaged: its status is neither {UNFINISHED} nor {FINISHED}")
    return found


def has_progress(folder: Path) -> bool:
    """Whether a run left something behind that it can be resumed from.

    Args:
        folder: a run folder.

    Returns:
        True if there are checkpoints or collected experience.
    """
    return any((folder / name).is_dir() and any((folder / name).glob("[!.]*")) for name in OWN_FILES)


def refuse_unfinished(folder: Path) -> None:
    """Raise an error if the folder holds an unfinished run, which would be lost.

    Args:
        folder: where another run is to be written.
    """
    found = read_configuration(folder)
    if found is not None and found.status == UNFINISHED and has_progress(folder):
        raise ArgumentError(
            f"{folder} holds a run that was interrupted ({' '.join(found.typed)}); resume it with "
            f"`lapwing learn --resume {folder}`, replace it with --overwrite, or choose another folder"
        )


def remove_configuration(folder: Path) -> None:
    """Remove ``run.json``, checkpoints and experience of a run; other files, and folders without ``run.json``, stay.

    Args:
        folder: a run folder.
    """
    if not (folder / RUN_FILE).exists():
        return
    (folder / RUN_FILE).unlink()
    for name, patterns in OWN_FILES.items():
        place = folder / name
        if place.is_dir() and not place.is_symlink():
            for path in [path for pattern in patterns for path in place.glob(pattern) if path.is_file()]:
                path.unlink()
            with suppress(OSError):  # there is more in it
                place.rmdir()
