"""Make the golden files: one small folder per format, and ``expected.json`` with the numbers they must give for ever.

Usage: ``python tests/golden/make.py FOLDER``. Files that are in the repository are never made again: a new version of a
format gets a new folder beside them.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import lapwing as lw
from lapwing.report.run_folder import write_run
from lapwing.storage.folders import LOCK
from lapwing.storage.run_configuration import CHECKPOINTS
from lapwing.training import Progress, loop

INTERRUPTED: dict[str, Any] = {
    "dim": 2,
    "hidden": (4,),
    "steps": 30,
    "log_every": 10,
    "oversampling": 0,
    "encoder": "mlp",
}
SMALL: dict[str, Any] = {"dim": 3, "hidden": (8,), "steps": 40, "log_every": 20, "oversampling": 2}


def named_arrays() -> lw.Trajectories:
    """Two keys, actions, rewards and two further next states per transition: every array that version 2 has."""
    states = [np.arange(n, dtype=np.float32)[:, None] + 10 * n for n in (3, 5)]
    return lw.from_arrays(
        {"place": states, "image": [np.repeat(rows, 4, axis=1).astype(np.uint8).reshape(-1, 2, 2) for rows in states]},
        actions=[np.arange(len(rows) - 1) for rows in states],
        rewards=[np.arange(len(rows) - 1) / 2 for rows in states],
        next_observations={
            "place": [np.stack([rows[1:], rows[1:] + 1], axis=1) for rows in states],
            "image": [np.zeros((len(rows) - 1, 2, 2, 2), dtype=np.uint8) for rows in states],
        },
        terminated=[True, False],
    )


def make(out: Path) -> None:
    """Write every folder, and what is in it as plain numbers."""
    walls = lw.make_world("GridMaze-7").table()  # type: ignore[union-attr]
    inside = np.array([[-0.4, 0.3], [0.0, 0.1], [0.25, -0.5]], dtype=np.float32)
    data = lw.collect("GridMaze-7", steps=400, seed=0, episode_length=20)
    truth = lw.solve("GridMaze-7", 3)
    learned = lw.learn(data, encoder="mlp", **SMALL)
    counted = lw.learn(data, encoder="fourier", truth=truth, **SMALL)
    models = {
        "model-lookup": (lw.solve("GridMaze-7", 3, definition="successor(0.9)"), walls),
        "model-learned": (learned, walls),
        "model-box": (lw.solve("Box-2", 4), inside),
        "run": (counted, walls),
    }
    expected: dict[str, Any] = {}
    for name, (model, points) in models.items():
        model.save(out / name)
        expected[name] = {
            "points": points.tolist(),
            "components": np.asarray(model.transform(points), dtype=np.float64).tolist(),
            "eigenvalues": model.eigenvalues.tolist(),
            "verdicts": list(model.certificate().verdicts),
        }
    scores = {"learned": lw.score(counted, truth), "baseline": lw.counting_score(data, truth)}
    write_run(counted, out / "run", data=data, scores=scores, command=["lapwing", "learn", "GridMaze-7"])
    expected["run"]["subspace_cosine"] = scores["learned"].subspace_cosine
    for picture in (out / "run").glob("*.png"):
        picture.unlink()

    lw.collect("GridMaze-7", steps=100, seed=0, episode_length=10, out=out / "trajectories-table")
    lw.collect("Box-2", steps=270, seed=0, episode_length=30, out=out / "trajectories-rows")
    named_arrays().save(out / "trajectories-named")
    for name in ("trajectories-table", "trajectories-rows"):
        kept = lw.Trajectories.load(out / name)
        expected[name] = {"lengths": kept.lengths.tolist(), "last": kept.episode(kept.num_episodes - 1).tolist()}

    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def make_interrupted(out: Path) -> None:
    """A run that was stopped after its first checkpoint, and the eigenvalues that it ends with."""

    class EnoughError(Exception):
        pass

    def stop(line: Progress) -> None:
        if line.step == 20:
            raise EnoughError

    data, folder = interrupted_data(), out / "run-interrupted"
    loop.SECONDS_BETWEEN = 0.0
    with suppress(EnoughError):
        lw.learn(data, callback=stop, checkpoints=folder / CHECKPOINTS, **INTERRUPTED)
    (folder / CHECKPOINTS / LOCK).unlink()
    whole = lw.learn(data, **INTERRUPTED)
    expected = {"eigenvalues": whole.eigenvalues.tolist(), "loss": whole.metadata["history"][0]["loss"]}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def interrupted_data() -> lw.Trajectories:
    """What the interrupted run learns from."""
    return lw.collect("GridMaze-7", steps=100, seed=0, episode_length=10)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
    make_interrupted(Path(sys.argv[1]))
