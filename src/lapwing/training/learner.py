"""Learning: ``learn``, and the estimator behind it with hyper-parameters in the constructor."""

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.checks import as_path, shown
from lapwing.data import Trajectories
from lapwing.diagnostics.problems import DIVERGED, RECORD, ProblemError, diverged
from lapwing.errors import ArgumentError, ConvergenceWarning, UntrustedWarning
from lapwing.evaluation import score
from lapwing.objectives import Objective
from lapwing.operators import Operator
from lapwing.representation import LaplacianRepresentation
from lapwing.training.config import LearnConfig, make_config
from lapwing.training.loop import LearningDivergedError, Progress, train
from lapwing.training.read_out import Monitor, NetworkCollapsedError, ReadOut
from lapwing.training.refit import refit
from lapwing.training.state import TrainState, one_seed
from lapwing.training.task import prepare


class Learner:
    """Learns Laplacian representations: hyper-parameters in the constructor, data in ``fit``, as in scikit-learn.

    Args:
        preset: ``default``, ``paper`` or ``pixels``.
        objective: the name of one, with options if need be (``"allo(barrier=2.0)"``), or an objective of your own,
            e.g. ``lw.allo(barrier=2.0)``.
        encoder: the kind of one to build, with options if need be (``"fourier(scales=(3.0, 10.0))"``), or a network of
            your own (see :func:`lapwing.encoders.own_encoder`) with ``dim + oversampling`` outputs.
        start: a learned model of the same kind of observations, with whose network to begin.
        options: fields of :class:`lapwing.training.LearnConfig`; any other name is an option of the objective, then of
            the encoder, e.g. ``barrier=2.0``.

    Example:
        >>> from lapwing.solving import operator
        >>> model = Learner(dim=3, steps=400).fit(operator("GridMaze-7"))
        >>> model.eigenvalues_in("successor(0.9)").round(2)
        array([0.  , 0.18, 0.46])
    """

    def __init__(
        self,
        preset: str = "default",
        *,
        objective: "Objective | str | Mapping[str, Any] | None" = None,
        encoder: Any = None,
        start: "LaplacianRepresentation | None" = None,
        **options: Any,
    ) -> None:
        """Keep the configuration; nothing is computed yet."""
        if objective is not None and not isinstance(objective, (Objective, str, Mapping)):
            raise ArgumentError(
                f"objective must be lw.allo(...), lw.ggdo(...) and the like, or a name; got {shown(objective)}"
            )
        if encoder is not None and not isinstance(encoder, (str, Mapping)) and not callable(encoder):
            raise ArgumentError(f"encoder must be a network (a callable on batches) or a name, got {shown(encoder)}")
        self.preset = preset
        self.config: LearnConfig = make_config(preset, objective=objective, encoder=encoder, **options)
        self.objective = objective if isinstance(objective, Objective) else None
        self.encoder = None if isinstance(encoder, (str, Mapping)) else encoder
        self.start = start

    def fit(
        self,
        data: "Trajectories | Operator",
        *,
        truth: "LaplacianRepresentation | None" = None,
        callback: "Callable[[Progress], None] | None" = None,
        checkpoints: "str | Path | None" = None,
    ) -> LaplacianRepresentation:
        """Learn from experience or from exact dynamics.

        Args:
            data: :class:`Trajectories`, or an :class:`Operator` from :func:`lapwing.operator`.
            truth: the exact representation where known, so that the progress has the cosine similarity to it; it never
                influences learning.
            callback: called with the :class:`Progress` after every ``log_every`` steps.
            checkpoints: a folder of their own. An interrupted run continues when the same call is made
                again, and ends with the same bits; a finished one returns its model.

        Returns:
            The model.
        """
        return self.fit_many(data, [self.config.seed], truth=truth, callback=callback, checkpoints=checkpoints)[0]

    def fit_many(
        self,
        data: "Trajectories | Operator",
        seeds: Sequence[int],
        *,
        truth: "LaplacianRepresentation | None" = None,
        callback: "Callable[[Progress], None] | None" = None,
        checkpoints: "str | Path | None" = None,
    ) -> list[LaplacianRepresentation]:
        """Learn with several seeds in one program, spread over all devices that JAX sees.

        Args:
            data: as in :meth:`fit`.
            seeds: one model for each.
            truth: as in :meth:`fit`.
            callback: as in :meth:`fit`.
            checkpoints: as in :meth:`fit`.

        Returns:
            One model per seed.
        """
        started = time.perf_counter()
        if callback is not None and not callable(callback):
            raise ArgumentError(f"callback is a function that is called with the progress, got {shown(callback)}")
        folder = None if checkpoints is None else as_path(checkpoints, "the folder of checkpoints")
        task = prepare(self.config, data, seeds, self.objective, self.encoder, self.start)
        read_out = ReadOut(task)
        monitor = None if truth is None else _cosine_to(truth)
        state = task.initial_state()
        prepared = time.perf_counter() - started
        try:
            end = train(
                state,
                task.source,
                task.objective_steps,
                self.config.log_every,
                lambda state: read_out.inspect(state, monitor),
                None if callback is None else lambda line: callback(line._replace(steps=self.config.steps)),
                folder,
                task.identity,
            )
            if task.round_steps:
                look = None if monitor is None else lambda state, known: read_out.fitted(state, known, monitor)
                end, read_out.targets = refit(task, end, look, callback, folder)
        except LearningDivergedError as error:
            # What cannot be read, or had collapsed before it diverged, leaves no model worth keeping.
            with suppress(ProblemError):
                if error.history:
                    error.models = self._models(read_out, error.state, error.history, time.perf_counter() - started)
            for number in error.seeds if error.models else []:
                record = error.models[number].metadata[RECORD]
                others = [one for one in record["problems"] if one["name"] != DIVERGED]
                record["problems"] = [diverged(error.step).as_dict(), *others]
            raise
        models = self._models(read_out, end.state, end.history, prepared + end.seconds)
        _warn_of_problems(models)
        return models

    def _models(
        self, read_out: ReadOut, state: TrainState, history: list[Progress], seconds: float
    ) -> list[LaplacianRepresentation]:
        """One representation per seed, from the state of the last report; a collapse is raised when all are made."""
        models: list[LaplacianRepresentation] = []
        collapse: NetworkCollapsedError | None = None
        seeds = read_out.task.seeds
        for number, seed in enumerate(seeds):
            metadata = {"preset": self.preset, "seed": seed, "seconds": seconds, "steps": history[-1].step}
            metadata["history"] = [line.row(number) for line in history]
            eigenvalues = np.asarray(one_seed(history[-1].eigenvalues, number, len(seeds)))
            try:
                models.append(read_out.model(one_seed(state, number, len(seeds)), eigenvalues, metadata, number))
            except NetworkCollapsedError as error:
                models += error.models
                collapse = collapse or error
        if collapse is not None:
            collapse.models = models
            raise collapse
        return models


def learn(
    data: "Trajectories | Operator",
    dim: int = 11,
    *,
    objective: "Objective | str | Mapping[str, Any] | None" = None,
    seed: int = 0,
    preset: str = "default",
    encoder: Any = None,
    start: "LaplacianRepresentation | None" = None,
    truth: "LaplacianRepresentation | None" = None,
    callback: "Callable[[Progress], None] | None" = None,
    checkpoints: "str | Path | None" = None,
    **options: Any,
) -> LaplacianRepresentation:
    """Learn a Laplacian representation: the short form of ``Learner(...).fit(data)``.

    Args:
        data: :class:`Trajectories` from :func:`lapwing.collect`, or :func:`lapwing.operator` for exact dynamics.
        dim: how many components.
        objective: ``lw.allo()``, ``lw.ggdo()``, ..., or a name such as ``"ggdo"`` or ``"allo(barrier=2.0)"``; the
            preset's unless given.
        seed: the same seed gives the same bits.
        preset: ``default``, ``paper`` or ``pixels``.
        encoder: a network of your own, or the kind of one to build: ``table``, ``mlp``, ``fourier``, ``conv``.
        start: a learned model of the same kind of observations, with whose network to begin.
        truth: the exact representation where known, for the progress.
        callback: called with the :class:`Progress` after every ``log_every`` steps.
        checkpoints: a folder of their own; the same call continues an interrupted run.
        options: any other of :class:`lapwing.training.LearnConfig`, of the objective, or of the encoder.

    Returns:
        The model.
    """
    learner = Learner(preset, objective=objective, encoder=encoder, start=start, dim=dim, seed=seed, **options)
    return learner.fit(data, truth=truth, callback=callback, checkpoints=checkpoints)


def _warn_of_problems(models: Sequence[LaplacianRepresentation]) -> None:
    problems = [one for model in models for one in model.problems()]
    untrusted = dict.fromkeys(one.name for one in problems if one.untrusted)
    if untrusted:
        warnings.warn(
            f"this result must not be trusted ({', '.join(untrusted)}); model.problems() says why and what to do",
            UntrustedWarning,
            stacklevel=_stack_level(),
        )
    elif problems:
        warnings.warn(f"{problems[0]} (model.problems())", ConvergenceWarning, stacklevel=_stack_level())


def _stack_level() -> int:
    """The level at which a warning of the function that calls this one names the user's line and not one of ours."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("lapwing."):
        level, frame = level + 1, frame.f_back
    return level - 1


def _cosine_to(truth: LaplacianRepresentation) -> Monitor:
    def monitor(model: LaplacianRepresentation) -> dict[str, float]:
        found = score(model, truth)
        return {"cosine": found.subspace_cosine, "paper_cosine": found.cosine}

    return monitor
