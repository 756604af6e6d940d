"""What a run folder was asked for, kept from before the first step until the end, so that it can go on."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lapwing.errors import LapwingError
from lapwing.storage.files import write_json
from lapwing.storage.reading import read_manifest

FORMAT = "lapwing-order"
VERSION = 1
ORDER = "order.json"
CHECKPOINTS = "checkpoints"
EXPERIENCE = "experience"
# What a run keeps in these folders until it has ended.
OURS = {
    CHECKPOINTS: ("step-*", "damaged-step-*", ".step-*", ".lock"),
    EXPERIENCE: ("*.npy", "trajectories.json", ".*.npy.*", ".lock"),
}
UNDER_WAY, FINISHED = "under way", "finished"


class Order(NamedTuple):
    """The words of a run: as they were typed, with paths that hold everywhere, and whether it has ended."""

    typed: list[str]
    words: list[str]
    status: str = UNDER_WAY


def write_order(folder: Path, order: Order) -> None:
    """Keep an order, or what has become of it."""
    write_json(folder / ORDER, {"format": FORMAT, "version": VERSION, **order._asdict()})


def read_order(folder: Path) -> Order | None:
    """The order of a run folder; None if it has none."""
    if not (folder / ORDER).exists():
        return None
    content = read_manifest(folder / ORDER, FORMAT, VERSION)
    typed, words, status = (content.get(name) for name in Order._fields)
    if not (_is_words(typed) and _is_words(words) and status in (UNDER_WAY, FINISHED)):
        raise LapwingError(f"{folder / ORDER} lacks or garbles a field; the file is damaged or not one of ours")
    return Order(typed, words, status)  # type: ignore[arg-type]


def has_progress(folder: Path) -> bool:
    """Whether something was learned or collected that a killed run left behind."""
    return any((folder / name).is_dir() and any((folder / name).glob("[!.]*")) for name in (CHECKPOINTS, EXPERIENCE))


def refuse_unfinished(folder: Path) -> None:
    """An error if the folder holds the beginning of a run, which would be lost."""
    order = read_order(folder)
    if order is not None and order.status == UNDER_WAY and has_progress(folder):
        raise LapwingError(
            f"{folder} holds a run that was interrupted ({' '.join(order.typed)}); go on with "
            f"`lapwing learn --resume {folder}`, give --again to begin anew, or choose another folder"
        )


def forget_order(folder: Path) -> None:
    """Remove the order and what only it needed; where there is none, or somebody else's files, they stay."""
    if not (folder / ORDER).exists():
        return
    (folder / ORDER).unlink()
    for name, ours in OURS.items():
        place = folder / name
        if place.is_dir() and not place.is_symlink():
            for path in [path for pattern in ours for path in place.glob(pattern) if path.is_file()]:
                path.unlink()
            with suppress(OSError):  # there is more in it
                place.rmdir()


def _is_words(value: object) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(word, str) for word in value)
