"""Learning: ``learn``, and the estimator behind it with hyper-parameters in the constructor."""

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.checks import as_path, shown
from lapwing.diagnostics.problems import DIVERGED, RECORD, ProblemError
from lapwing.errors import LapwingError, UntrustedWarning
from lapwing.evaluation.score import score
from lapwing.objectives.base import Objective
from lapwing.representation import LaplacianRepresentation
from lapwing.training.config import LearnConfig, make_config
from lapwing.training.engine import LearningDivergedError, NetworkCollapsedError, Report, history_rows, one_seed_of
from lapwing.training.health import diverged
from lapwing.training.job import Data, Job
from lapwing.training.keeping import train
from lapwing.training.reader import Reader, Watch
from lapwing.training.step import Program, TrainState


class Learner:
    """Learns Laplacian representations; scikit-learn's manners.

    Args:
        preset: ``default``, ``paper`` or ``pixels``.
        objective: an objective of your own, e.g. ``lw.allo(barrier=2.0)``, or the name of one, which the options
            describe.
        encoder: a network of your own (see :func:`lapwing.encoders.own_encoder`) with ``dim + spare`` outputs, or
            the kind of one to build, e.g. ``table``.
        options: see :class:`lapwing.training.config.LearnConfig`.

    Example:
        >>> from lapwing.solving import operator
        >>> model = Learner(dim=3, steps=400).fit(operator("GridMaze-7"))
        >>> model.eigenvalues_in("successor(0.9)").round(2)
        array([0.  , 0.18, 0.46])
    """

    def __init__(
        self, preset: str = "default", *, objective: Objective | str | None = None, encoder: Any = None, **options: Any
    ) -> None:
        """Keep the configuration; nothing is computed yet."""
        if objective is not None and not isinstance(objective, (Objective, str)):
            raise LapwingError(
                f"objective must be lw.allo(...), lw.ggdo(...) and the like, or a name; got {shown(objective)}"
            )
        if encoder is not None and not isinstance(encoder, str) and not callable(encoder):
            raise LapwingError(f"encoder must be a network (a callable on batches) or a name, got {shown(encoder)}")
        named = {"objective": objective, "encoder": encoder}
        named = {option: value for option, value in named.items() if isinstance(value, str)}
        self.preset = preset
        self.config: LearnConfig = make_config(preset, **named, **options)
        self.objective = None if isinstance(objective, str) else objective
        self.encoder = None if isinstance(encoder, str) else encoder

    def fit(
        self,
        data: Data,
        *,
        truth: LaplacianRepresentation | None = None,
        report: Callable[[Report], None] | None = None,
        checkpoints: str | Path | None = None,
    ) -> LaplacianRepresentation:
        """Learn from experience or from exact dynamics.

        Args:
            data: :class:`Trajectories`, or an :class:`Operator` from :func:`lapwing.operator`.
            truth: where known, so that reports carry the cosine similarity; it never influences learning.
            report: called after every ``log_every`` steps.
            checkpoints: a folder of their own. What was interrupted, however it was, goes on when the same call is made
                again, and ends with the same bits; what has ended gives its model again.
        """
        return self.fit_many(data, [self.config.seed], truth=truth, report=report, checkpoints=checkpoints)[0]

    def fit_many(
        self,
        data: Data,
        seeds: Sequence[int],
        *,
        truth: LaplacianRepresentation | None = None,
        report: Callable[[Report], None] | None = None,
        checkpoints: str | Path | None = None,
    ) -> list[LaplacianRepresentation]:
        """Learn with several seeds in one program, spread over all devices that JAX sees; one model per seed.

        The arguments are those of :meth:`fit`.
        """
        started = time.perf_counter()
        if report is not None and not callable(report):
            raise LapwingError(f"report is a function that is called with each report, got {shown(report)}")
        folder = None if checkpoints is None else as_path(checkpoints, "the folder of checkpoints")
        job = Job(self.config, data, seeds, self.objective, self.encoder)
        program, state = job.program()
        reader = Reader(job)
        inspect = reader.inspector(program, None if truth is None else _cosine_to(truth))
        prepared = time.perf_counter() - started
        try:
            end = train(job, program, state, inspect, report, folder)
        except LearningDivergedError as error:
            # What cannot be read, or had collapsed before it diverged, leaves no model worth keeping.
            with suppress(ProblemError):
                if error.history:
                    error.models = self._models(
                        reader, program, error.state, error.history, time.perf_counter() - started
                    )
            for number in error.seeds if error.models else []:
                record = error.models[number].metadata[RECORD]
                others = [one for one in record["problems"] if one["name"] != DIVERGED]
                record["problems"] = [diverged(error.step).as_dict(), *others]
            raise
        models = self._models(reader, program, end.state, end.history, prepared + end.seconds)
        _warn_if_untrusted(models)
        return models

    def _models(
        self, reader: Reader, program: Program, state: TrainState, history: list[Report], seconds: float
    ) -> list[LaplacianRepresentation]:
        """One representation per seed, from the state of the last report; a collapse is raised when all are made."""
        models: list[LaplacianRepresentation] = []
        collapse: NetworkCollapsedError | None = None
        for number, seed in enumerate(reader.job.seeds):
            own = reader.job.one_seed(state, number)
            metadata = {"preset": self.preset, "seed": seed, "seconds": seconds, "steps": history[-1].step}
            metadata["history"] = history_rows(history, number)
            multipliers = np.asarray(one_seed_of(history[-1].metrics, number).eigenvalues)
            try:
                models.append(reader.model(program.encoder(own), own, metadata, multipliers))
            except NetworkCollapsedError as error:
                models += error.models
                collapse = collapse or error
        if collapse is not None:
            collapse.models = models
            raise collapse
        return models


def learn(
    data: Data,
    dim: int = 11,
    *,
    objective: Objective | str | None = None,
    seed: int = 0,
    preset: str = "default",
    encoder: Any = None,
    truth: LaplacianRepresentation | None = None,
    report: Callable[[Report], None] | None = None,
    checkpoints: str | Path | None = None,
    **options: Any,
) -> LaplacianRepresentation:
    """Learn a Laplacian representation: the short form of ``Learner(...).fit(data)``.

    Args:
        data: :class:`Trajectories` from :func:`lapwing.collect`, or :func:`lapwing.operator` for exact dynamics.
        dim: how many components.
        objective: ``lw.allo()``, ``lw.ggdo()``, ..., or a name such as ``ggdo``; the preset's unless given.
        seed: the same seed gives the same bits.
        preset: ``default``, ``paper`` or ``pixels``.
        encoder: a network of your own, or the kind of one to build: ``table``, ``mlp``, ``fourier``, ``conv``.
        truth: where known, for the reports.
        report: called after every ``log_every`` steps.
        checkpoints: a folder of their own, so that the same call goes on after whatever interrupted it.
        options: any other of :class:`lapwing.training.config.LearnConfig`.
    """
    learner = Learner(preset, objective=objective, encoder=encoder, dim=dim, seed=seed, **options)
    return learner.fit(data, truth=truth, report=report, checkpoints=checkpoints)


def _warn_if_untrusted(models: Sequence[LaplacianRepresentation]) -> None:
    found = dict.fromkeys(one.name for model in models for one in model.problems() if one.untrusted)
    if found:
        warnings.warn(
            f"this result must not be trusted ({', '.join(found)}); model.problems() says why and what to do",
            UntrustedWarning,
            stacklevel=4,
        )


def _cosine_to(truth: LaplacianRepresentation) -> Watch:
    def watch(model: LaplacianRepresentation) -> dict[str, float]:
        found = score(model, truth)
        return {"cosine": found.subspace_cosine, "paper_cosine": found.cosine}

    return watch
