"""What a run of the study of online policies does: train an agent and follow its policy's eigenvectors meanwhile."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from lapwing import GridWorld, LaplacianRepresentation, OnlineLearner, Operator, learn, score, solve
from lapwing.errors import DataError
from lapwing_paper.goal_task import Table, goal_task, optimal_return, policy_operator, policy_return
from lapwing_paper.ppo_agent import (
    ROLLOUT,
    action_probabilities,
    clip_range,
    collect_rollout,
    first_walk,
    improved,
    new_agent,
    thresholds,
)
from lapwing_paper.run_store import Outcome
from lapwing_paper.study_worlds import world_of_run

DIM = 11
# Steps before anything is updated, between updates of the representation, and between scores.
FIRST_STEPS = 10_000
STEPS_PER_REFRESH = 1_000
STEPS_PER_SCORE = 10_000
# A window is short, so that single scores scatter: the last ones are averaged.
LAST_SCORES = 5


def follow_policy(specification: dict[str, Any]) -> Outcome:
    """Train an agent, learn a representation of its last states, and compare it with that of its present policy.

    Settings: ``steps`` of the agent; ``window``, how many states the learner holds; ``options`` of
    :class:`lapwing.OnlineLearner`; ``updates`` of it in 1,000 steps, or 0 for a representation that is learned once,
    from the first 10,000 states; ``seen``, whether the agent sees the components beside its coordinates.

    Args:
        specification: of the run.

    Returns:
        The optimal return, means over the last five scores, and the mean return over training; as the history every
        10,000 steps the return as a share of the optimal one, the cosines of the representation, and those of counting
        on the states that the learner holds.
    """
    settings, seed = specification["settings"], int(specification["seed"])
    world = world_of_run(specification)
    if not isinstance(world, GridWorld):
        raise DataError("agents are trained in grid worlds")
    task = goal_task(world, int(np.random.default_rng(seed).integers(world.num_states)))
    steps, optimum, next_states = int(settings["steps"]), optimal_return(task), thresholds(task)
    learner = OnlineLearner(DIM, capacity=int(settings["window"]), seed=seed, **settings["options"])
    model: LaplacianRepresentation | None = None
    components = np.zeros((world.num_states, DIM if settings["seen"] else 0))
    features = _joined(task.observations, components)
    weights, start, key = jax.random.split(jax.random.key(seed), 3)
    agent, walk = new_agent(features.shape[1], len(task.transitions), weights), first_walk(task, start)
    history: list[dict[str, float]] = []
    for step in range(STEPS_PER_REFRESH, steps + 1, STEPS_PER_REFRESH):
        for one in jax.random.split(jax.random.fold_in(key, step), STEPS_PER_REFRESH // ROLLOUT):
            walk, rollout = collect_rollout(agent, features, next_states, walk, one)
            learner.add(task.observations[np.asarray(rollout.states)], np.asarray(rollout.ends))
            if step > FIRST_STEPS:
                agent = improved(agent, features, rollout, task.goal, clip_range(step / steps))
        if step < FIRST_STEPS:
            continue
        if settings["updates"]:
            learner.update(int(settings["updates"]))
        scored = step % STEPS_PER_SCORE == 0
        if not (scored or settings["seen"]):
            continue
        if settings["updates"]:
            model = learner.model()
        elif model is None:
            model = learn(learner.data(), dim=DIM, seed=seed)
        if scored:
            policy = np.asarray(action_probabilities(agent, features), dtype=np.float64)
            scores = _scores(policy_operator(task, policy), model, solve(learner.data(), DIM))
            history.append({"step": step, "return_share": policy_return(task, policy) / optimum, **scores})
        if settings["seen"]:
            components = turned(model.transform(task.observations), components)
            features = _joined(task.observations, components)
    return Outcome({"states": world.num_states, "optimum": optimum, **_summary(history)}, history)


def turned(components: NDArray[np.floating[Any]], before: Table) -> Table:
    """Components in the orthonormal basis of their span that is nearest to what was seen before (Procrustes).

    Signs of components, and rotations among those whose eigenvalues are close, change by chance. An agent that has
    learned from components would lose what it knows with each such change.

    Args:
        components: (n, d) on all states.
        before: (n, d) what was seen of them.

    Returns:
        (n, d) values.
    """
    left, _, right = np.linalg.svd(components.T @ before)
    return np.asarray(components @ (left @ right))


def _scores(operator: Operator, model: LaplacianRepresentation, counted: LaplacianRepresentation) -> dict[str, float]:
    truth = solve(operator, DIM)
    learned, baseline = score(model, truth), score(counted, truth)
    return {
        "cosine": learned.cosine,
        "subspace_cosine": learned.subspace_cosine,
        "counting_cosine": baseline.cosine,
        "counting_subspace_cosine": baseline.subspace_cosine,
    }


def _summary(history: list[dict[str, float]]) -> dict[str, float]:
    """The means; nothing where the run was too short for a score."""
    if not history:
        return {}
    means = {name: float(np.mean([row[name] for row in history[-LAST_SCORES:]])) for name in history[0]}
    del means["step"]
    return {**means, "mean_return_share": float(np.mean([row["return_share"] for row in history]))}


def _joined(observations: NDArray[np.float32], components: Table) -> Array:
    """(n, inputs) what the agent sees of each state."""
    return jnp.asarray(np.concatenate([observations, components], axis=1), dtype=jnp.float32)
