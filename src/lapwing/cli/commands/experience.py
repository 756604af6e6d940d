"""Worlds and experience: ``lapwing worlds``, ``collect`` and ``audit``."""

import re
from pathlib import Path
from typing import Any

from lapwing.cli import terminal
from lapwing.cli.commands.words import collection_source, file_name, plain
from lapwing.cli.words.experience import Audit, Collect, Worlds
from lapwing.data.audit import audit
from lapwing.data.collect import collect
from lapwing.data.trajectories import Trajectories
from lapwing.data.vectorised import EpisodeLength
from lapwing.environments import World, layout_files, make_world, world_names
from lapwing.errors import LapwingError
from lapwing.storage.reading import read_array


def run_worlds(words: Worlds) -> None:
    """List the worlds."""
    files = layout_files(words.layouts)
    worlds = [make_world(name, layouts=words.layouts) for name in world_names(words.layouts)]
    rows = [_world_row(world, "layouts folder" if world.name in files else "shipped") for world in worlds]
    if words.out is not None:
        from lapwing.plots import save_figure, worlds_figure

        save_figure(worlds_figure(worlds), words.out)
    if words.json:
        keys = ("name", "source", "canvas", "states", "parts", "description")
        terminal.print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    if words.pictures:
        pictures = [terminal.small_picture(world) for world in worlds]
        rows = [[row[0], row[3], picture] for row, picture in zip(rows, pictures, strict=True)]
        terminal.print_table("Worlds", ["world", "states", "picture"], rows)
    else:
        terminal.print_table("Worlds", ["world", "source", "canvas", "states", "parts", "what it is"], rows)
    if words.out is not None:
        print(f"pictures: {words.out}")
    else:
        print(
            "Any size by rule: room:20x30, rooms:4x4x5:SEED, maze:10x15:SEED. Your own: a .txt file, or --layouts DIR."
        )


def run_collect(words: Collect) -> None:
    """Collect experience and write it to a folder."""
    source, label = collection_source(words.world)
    out = words.out or Path("runs") / f"collect-{file_name(label)}"
    options: dict[str, Any] = {"observation": words.observation, "slip": words.slip, "layouts": words.layouts}
    with terminal.progress_bar(f"collecting from {label}") as progress:
        data = collect(
            source,
            words.steps,
            episode_length=_episode_length(words.episode_length),
            policy=None if words.policy is None else read_array(words.policy),
            seed=words.seed,
            out=out,
            progress=progress,
            **options,
        )
    facts = {
        "transitions": data.num_transitions,
        "episodes": data.num_episodes,
        "observation_shape": list(data.observation_shape),
        "distinct_observations": len(data.observations) if data.has_table else None,
        "folder": str(out),
    }
    if words.json:
        terminal.print_json(facts)
        return
    terminal.print_facts(f"Collected from {label}", [(k.replace("_", " "), plain(v)) for k, v in facts.items()])
    print(f"Look it over: lapwing audit {out}")


def run_audit(words: Audit) -> None:
    """Print what is in a data set and what should worry its owner."""
    result = audit(Trajectories.load(words.data, mmap=True), words.discount)
    if words.json:
        terminal.print_json(result.as_dict())
        return
    terminal.print_facts(f"Audit of {words.data}", result.rows())
    for warning in result.warnings:
        terminal.note(warning)


def _world_row(world: World, source: str) -> list[str]:
    facts = world.summary()
    states = "-" if facts["states"] is None else f"{facts['states']:,}"
    return [world.name, source, facts["size"], states, str(facts["parts"]), facts["description"]]


def _episode_length(text: str | None) -> EpisodeLength | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None:
        raise LapwingError(f"--episode-length is a number such as 50 or a range such as 20-80, got {text!r}")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))
