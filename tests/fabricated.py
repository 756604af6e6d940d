"""Made-up results, and an executor that returns them at once, for tests of studies."""

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from lapwing_paper.executors import Reply
from lapwing_paper.run_store import Outcome, StudyRun, record_checksum


def fabricate(run: StudyRun) -> Outcome:
    """A result that a study can be written from, always the same for a run."""
    if run.task == "theory":
        claim = {"name": "lemma", "paper": "Lemma 2", "statement": "it holds", "held": True, "deviation": 1e-12}
        return Outcome({"claims": [{**claim, "note": ""}]})
    rng = np.random.default_rng(int(run.key[-12:], 16))
    some = rng.uniform(0.1, 0.9, 11).tolist()
    numbers: dict[str, Any] = dict.fromkeys(("cosine", "subspace_cosine", "eigenvalue_error", "seconds"), some[0])
    by_component = ("cosines", "eigenvalues", "true_eigenvalues", "mu", "true_mu", "dual", "squared_norms")
    numbers |= dict.fromkeys(by_component, some)
    numbers["config"] = {"objective_options": {"barrier": 1.0, "dual_rate": 5e-5}}
    numbers |= {f"counting_{name}": numbers[name] for name in ("cosine", "subspace_cosine", "eigenvalues")}
    history = [{"step": float(step), "paper_cosine": float(rng.random()), "barrier": 2.0} for step in (10, 20)]
    return Outcome(numbers, history, rng.normal(size=(11, 11)).astype(np.float32))


def forge(path: Path, **changes: Any) -> None:
    """Change fields of a run's record, ``...`` removes one, and make its checksum agree, as an attacker can."""
    record = {**json.loads(path.read_text()), **changes}
    record = {name: value for name, value in record.items() if value is not ... and name != "checksum"}
    path.write_text(json.dumps({**record, "checksum": record_checksum(record)}))


class Fake:
    """In place of every executor: carries out runs at once; those of a method in ``errors`` fail."""

    def __init__(self) -> None:
        self.workers = 1
        self.asked: list[tuple[str, int | None]] = []
        self.made: list[StudyRun] = []
        self.errors: dict[str, Exception] = {}
        self.stop_at: int | None = None
        self.closed = 0

    def __call__(self, on: str, workers: int | None) -> "Fake":
        self.asked.append((on, workers))
        return self

    def submit(self, run: StudyRun) -> "Future[Reply]":
        if self.stop_at == len(self.made):
            raise KeyboardInterrupt
        self.made.append(run)
        future: Future[Reply] = Future()
        if run.method in self.errors:
            future.set_exception(self.errors[run.method])
        else:
            future.set_result(Reply(self.outcome(run), "", 60.0))
        return future

    def outcome(self, run: StudyRun) -> Outcome:
        return fabricate(run)

    def close(self) -> None:
        self.closed += 1
