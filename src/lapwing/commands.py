"""What each command of the command line does; called with words already parsed."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np

from lapwing import terminal
from lapwing.cli import Audit, Collect, Score, Solve, Worlds
from lapwing.definitions import parse_definition, successor
from lapwing.environments.box import BoxWorld
from lapwing.environments.descriptions import world_from_description
from lapwing.environments.registry import World, layout_files, make_world, world_names
from lapwing.errors import LapwingError
from lapwing.evaluation.score import counting_score, score
from lapwing.exact import solve
from lapwing.files import read_array, read_manifest, replaced_file
from lapwing.representation import FORMAT as MODEL_FORMAT
from lapwing.representation import MANIFEST as MODEL_MANIFEST
from lapwing.representation import VERSION as MODEL_VERSION
from lapwing.representation import LaplacianRepresentation, load
from lapwing.trajectories.audit import audit
from lapwing.trajectories.collect import Source, collect
from lapwing.trajectories.container import MANIFEST as DATA_MANIFEST
from lapwing.trajectories.container import Trajectories
from lapwing.trajectories.vectorised import EpisodeLength

GYMNASIUM_PREFIX = "gym:"


def run_worlds(words: Worlds) -> None:
    """List the worlds."""
    files = layout_files(words.layouts)
    worlds = [make_world(name, layouts=words.layouts) for name in world_names(words.layouts)]
    rows = [_world_row(world, "layouts folder" if world.name in files else "shipped") for world in worlds]
    if words.out is not None:
        from lapwing.plots.figures import save_figure, worlds_figure

        save_figure(worlds_figure(worlds), words.out)
    if words.json:
        keys = ("name", "source", "canvas", "states", "parts", "description")
        terminal.print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    if words.pictures:
        pictures = ["" if isinstance(world, BoxWorld) else terminal.small_picture(world.layout) for world in worlds]
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
    source, label = _collection_source(words)
    out = words.out or Path("runs") / f"collect-{_file_name(label)}"
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
    terminal.print_facts(f"Collected from {label}", [(k.replace("_", " "), _plain(v)) for k, v in facts.items()])
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


def run_solve(words: Solve) -> None:
    """Solve exactly (or by counting) and write model, spectrum and pictures."""
    definition = parse_definition(words.definition)
    source, label = _solvable(words)
    out = words.out or Path("runs") / f"solve-{_file_name(label)}"
    _refuse_foreign(out)
    with terminal.spinner(f"solving {label}") as say:
        model = solve(
            source,
            words.dim,
            definition=definition,
            observation=words.observation,
            slip=words.slip,
            policy=None if words.policy is None else read_array(words.policy),
            rho=words.rho,
            layouts=words.layouts,
            say=say,
        )
        written = _write_solution(model, out)
    certificate = model.certificate()
    table = _spectrum_rows(model)
    if words.json:
        terminal.print_json({"world": label, "folder": str(out), "spectrum": table, "files": [p.name for p in written]})
        return
    columns = list(table[0])
    rows = [[_plain(row[column]) for column in columns] for row in table]
    terminal.print_table(f"{label}: smallest eigenvalues", columns, rows)
    print(f"orthonormality error {certificate.orthonormality_error:.1e}")
    for path in written:
        print(f"wrote {path}")


def run_score(words: Score) -> None:
    """Score a saved representation against a truth, with the counting estimate beside it if data are given."""
    model = load(words.model)
    truth = _truth_for(model, words)
    scores = {"model": score(model, truth, definition=words.definition, tolerance=words.tolerance)}
    if words.data is not None:
        data = Trajectories.load(words.data)
        scores["counting estimate"] = counting_score(
            data, truth, definition=words.definition, tolerance=words.tolerance
        )
    if words.json:
        terminal.print_json({name.split()[0]: found.as_dict() for name, found in scores.items()})
        return
    tolerance = scores["model"].tolerance
    columns = ["", "cosine (the paper's)", "subspace cosine", f"mean eigenvalue error, {words.definition}"]
    rows = [
        [name, f"{found.cosine:.4f}", f"{found.subspace_cosine:.4f}", f"{found.mean_eigenvalue_error:.2%}"]
        for name, found in scores.items()
    ]
    terminal.print_table(f"Score of {words.model} (clusters within {tolerance:g})", columns, rows)


def _world_row(world: World, source: str) -> list[str]:
    if isinstance(world, BoxWorld):
        sides = " x ".join(f"{side:g}" for side in world.sides)
        return [world.name, source, sides, "-", "1", "continuous box, reflecting walk, closed form"]
    rows, columns = world.layout.shape
    parts = str(world.layout.num_components)
    return [world.name, source, f"{rows} x {columns}", f"{world.num_states:,}", parts, world.layout.description]


def _collection_source(words: Collect) -> tuple[Source, str]:
    if not words.world.startswith(GYMNASIUM_PREFIX):
        return words.world, words.world
    import gymnasium

    name = words.world.removeprefix(GYMNASIUM_PREFIX)
    try:
        return gymnasium.make(name), name
    except (gymnasium.error.Error, ImportError) as error:
        raise LapwingError(f"Gymnasium cannot make {name!r}: {error}") from error


def _solvable(words: Solve) -> tuple[Any, str]:
    path = Path(words.source)
    if (path / DATA_MANIFEST).is_file():
        return Trajectories.load(path), path.resolve().name
    if path.suffix == ".npy":
        return read_array(path), path.stem
    return words.source, words.source


def _refuse_foreign(out: Path) -> None:
    """An error, before any work is done, if ``out`` is a file or a folder of something else."""
    if out.exists() and not out.is_dir():
        raise LapwingError(f"{out} is a file; choose a folder")
    if out.is_dir() and any(out.iterdir()):
        if not (out / MODEL_MANIFEST).exists():
            raise LapwingError(f"{out} holds other files and no {MODEL_MANIFEST}; choose an empty or new folder")
        read_manifest(out / MODEL_MANIFEST, MODEL_FORMAT, MODEL_VERSION)


def _write_solution(model: LaplacianRepresentation, out: Path) -> list[Path]:
    model.save(out)
    spectrum = out / "spectrum.csv"
    table = _spectrum_rows(model)
    with replaced_file(spectrum) as temporary, temporary.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    from lapwing.plots.figures import eigenvector_figure, save_figure, spectrum_figure

    written = [out / MODEL_MANIFEST, spectrum, save_figure(spectrum_figure(model), out / "spectrum.png")]
    if world_from_description(model.metadata.get("world")) is not None:
        written.append(save_figure(eigenvector_figure(model), out / "eigenvectors.png"))
    return written


def _spectrum_rows(model: LaplacianRepresentation) -> list[dict[str, Any]]:
    certificate = model.certificate()
    definitions = dict.fromkeys([model.definition, parse_definition("one_step"), successor(0.9)])
    values = {str(definition): model.eigenvalues_in(definition) for definition in definitions}
    return [
        {
            "component": number + 1,
            **{name: float(column[number]) for name, column in values.items()},
            "residual": float(certificate.residuals[number]),
            "verdict": certificate.verdicts[number],
        }
        for number in range(model.dim)
    ]


def _truth_for(model: LaplacianRepresentation, words: Score) -> LaplacianRepresentation:
    if words.truth is not None and (Path(words.truth) / MODEL_MANIFEST).is_file():
        return load(words.truth)
    if words.truth is not None:
        description = model.metadata.get("world") or {}
        observation = description.get("observation") if description.get("kind") == "grid" else None
        return solve(words.truth, model.dim, observation=observation, layouts=words.layouts)
    world = world_from_description(model.metadata.get("world"))
    if world is None:
        raise LapwingError("the model does not say which world it belongs to; name one with --truth")
    return solve(world, model.dim)


def _episode_length(text: str | None) -> EpisodeLength | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None:
        raise LapwingError(f"--episode-length is a number such as 50 or a range such as 20-80, got {text!r}")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


def _file_name(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", Path(label).stem if label.endswith(".txt") else label).strip("_.")


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.2e}"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return "-" if value is None else str(value)
