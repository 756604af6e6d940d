"""What a run of the study of online policies does: train an agent and follow its policy's eigenvectors meanwhile."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lapwing import GridWorld, LaplacianRepresentation, OnlineLearner, Operator, learn, score, solve
from lapwing.errors import DataError
from lapwing_paper.goal_task import GoalTask, goal_task, optimal_return, policy_operator, policy_return
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
# Steps before the first update of agent and representation, between refreshes of what the agent sees, between scores.
FIRST_STEPS = 10_000
STEPS_PER_REFRESH = 1_000
STEPS_PER_SCORE = 10_000
# The window holds 10,000 states of a random walk: single scores scatter, and so the last ones are averaged.
LAST_SCORES = 5


def follow_policy(specification: dict[str, Any]) -> Outcome:
    """Train an agent, learn a representation of its last states, and compare it with that of its present policy.

    Settings: ``steps`` of the agent; ``window``, how many states the learner holds; ``options`` of
    :class:`lapwing.OnlineLearner`; ``updates`` of it per rollout of 500 steps, or 0 for a representation that is
    learned once, from the first 10,000 states; ``seen``, whether the agent sees the components beside coordinates.

    Args:
        specification: of the run.

    Returns:
        The optimal return, and means over the last five scores; as the history every 10,000 steps the return as a
        share of it, the cosines of the representation, and those of counting on the states that the learner holds.
    """
    settings, seed = specification["settings"], int(specification["seed"])
    world = world_of_run(specification)
    if not isinstance(world, GridWorld):
        raise DataError("agents are trained in grid worlds")
    task = goal_task(world, int(np.random.default_rng(seed).integers(world.num_states)))
    learner = OnlineLearner(DIM, capacity=int(settings["window"]), seed=seed, **settings["options"])
    model: LaplacianRepresentation | None = None
    features = _features(task, model, settings["seen"])
    weights, start, key = jax.random.split(jax.random.key(seed), 3)
    agent, walk = new_agent(features.shape[1], len(task.transitions), weights), first_walk(task, start)
    next_states, steps = thresholds(task), int(settings["steps"])
    optimum, history = optimal_return(task), list[dict[str, float]]()
    for step in range(ROLLOUT, steps + 1, ROLLOUT):
        walk, rollout = collect_rollout(agent, features, next_states, walk, jax.random.fold_in(key, step))
        learner.add(task.observations[np.asarray(rollout.states)], np.asarray(rollout.ends))
        if step < FIRST_STEPS:
            continue
        if settings["updates"]:
            learner.update(int(settings["updates"]))
            if step % STEPS_PER_REFRESH == 0:
                model = learner.model()
        elif model is None:
            model = learn(learner.data(), dim=DIM, seed=seed)
        if step % STEPS_PER_SCORE == 0:
            policy = np.asarray(action_probabilities(agent, features), dtype=np.float64)
            scores = _scores(policy_operator(task, policy), model, solve(learner.data(), DIM))
            history.append({"step": step, "return_share": policy_return(task, policy) / optimum, **scores})
        agent = improved(agent, features, rollout, task.goal, clip_range(step / steps))
        features = _features(task, model, settings["seen"])
    last = history[-LAST_SCORES:]
    means = {name: float(np.mean([row[name] for row in last])) for name in (last[0] if last else ()) if name != "step"}
    return Outcome({"states": world.num_states, "optimum": optimum, **means}, history)


def _scores(operator: Operator, model: LaplacianRepresentation, counted: LaplacianRepresentation) -> dict[str, float]:
    truth = solve(operator, DIM)
    learned, baseline = score(model, truth), score(counted, truth)
    return {
        "cosine": learned.cosine,
        "subspace_cosine": learned.subspace_cosine,
        "counting_cosine": baseline.cosine,
        "counting_subspace_cosine": baseline.subspace_cosine,
    }


def _features(task: GoalTask, model: LaplacianRepresentation | None, seen: bool) -> Array:
    """(n, inputs) what the agent sees of each state: coordinates and components, which are 0 before there are any."""
    parts = [task.observations]
    if seen:
        parts.append(np.zeros((len(parts[0]), DIM)) if model is None else model.transform(parts[0]))
    return jnp.asarray(np.concatenate(parts, axis=1), dtype=jnp.float32)
