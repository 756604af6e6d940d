"""Learns three seeds in one program, with checkpoints: ``several_seeds.py KIND FOLDER``. Called again it resumes."""

import sys
from pathlib import Path

import lapwing as lw
from lapwing.storage.files import write_csv


def main(kind: str, folder: Path) -> None:
    data = lw.collect("GridMaze-9", steps=100_000, seed=0)
    learner = lw.Learner(
        dim=5, hidden=(64, 64), batches=kind, batch_size=256, steps=4000, log_every=250, stop_when_converged=False
    )
    models = learner.fit_many(data, [0, 1, 2], checkpoints=folder / "checkpoints")
    for model in models:
        place = model.save(folder / f"seed-{model.metadata['seed']}")
        write_csv(place / "metrics.csv", model.metadata["history"])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
