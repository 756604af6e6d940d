"""Proximal policy optimisation (Schulman et al., 2017) in a world given as tables: rollouts and updates, compiled."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lapwing_paper.goal_task import EPISODE_LENGTH, GoalTask
from lapwing_paper.small_networks import Network, apply_network, new_network

ROLLOUT = 500
UPDATES = 10
HIDDEN, LAYERS = 64, 2
DISCOUNT, TRACE = 0.99, 0.95
LEARNING_RATE, LARGEST_GRADIENT = 3e-4, 0.5
ENTROPY_WEIGHT, VALUE_WEIGHT = 0.01, 0.5
FIRST_CLIP, LAST_CLIP = 0.2, 0.01
# Small last weights: the first policy is almost uniform.
FIRST_LOGITS = 0.01

_OPTIMIZER = optax.chain(optax.clip_by_global_norm(LARGEST_GRADIENT), optax.adam(LEARNING_RATE))


class Networks(NamedTuple):
    """The networks of the policy's logits and of the values of states."""

    actor: Network
    critic: Network


class Agent(NamedTuple):
    """What changes from one update to the next."""

    networks: Networks
    momenta: Any


class Walk(NamedTuple):
    """Where the agent is, and how many steps ago its episode began."""

    state: Array
    time: Array


class Rollout(NamedTuple):
    """Consecutive steps.

    Attributes:
        states: (t,) numbers of states.
        actions: (t,) the actions made there.
        next_states: (t,) where they led, which is not the next of ``states`` where an episode was cut off.
        ends: (t,) whether the episode was cut off after that step.
    """

    states: Array
    actions: Array
    next_states: Array
    ends: Array


class RolloutBatch(NamedTuple):
    """What the loss of a rollout is made of: (t,) numbers each."""

    states: Array
    actions: Array
    log_probabilities: Array
    advantages: Array
    returns: Array


def new_agent(inputs: int, actions: int, key: Array) -> Agent:
    """An agent whose policy is almost uniform.

    Args:
        inputs: how many numbers it sees of a state.
        actions: how many actions there are.
        key: of its weights.

    Returns:
        The agent.
    """
    first, second = jax.random.split(key)
    actor = new_network((inputs, *[HIDDEN] * LAYERS, actions), first)
    actor[-1] = jax.tree.map(lambda part: FIRST_LOGITS * part, actor[-1])
    networks = Networks(actor, new_network((inputs, *[HIDDEN] * LAYERS, 1), second))
    return Agent(networks, _OPTIMIZER.init(networks))


@jax.jit
def action_probabilities(agent: Agent, features: Array) -> Array:
    """The policy as a table.

    Args:
        agent: the agent.
        features: (n, inputs) what it sees of each state.

    Returns:
        (n, actions) probabilities.
    """
    return jax.nn.softmax(apply_network(agent.networks.actor, features))


def first_walk(task: GoalTask, key: Array) -> Walk:
    """The beginning of the first episode.

    Args:
        task: the world and its goal.
        key: of the start.

    Returns:
        The walk.
    """
    return Walk(jax.random.randint(key, (), 0, len(task.observations)), jnp.zeros((), jnp.int32))


def thresholds(task: GoalTask) -> Array:
    """Cumulative probabilities of next states, from which :func:`collect_rollout` draws.

    Args:
        task: the world and its goal.

    Returns:
        (actions, n, n) numbers up to 1, which every row reaches exactly.
    """
    sums = np.cumsum(task.transitions, axis=2)
    return jnp.asarray(sums / sums[:, :, -1:], dtype=jnp.float32)


@jax.jit
def collect_rollout(agent: Agent, features: Array, next_states: Array, walk: Walk, key: Array) -> tuple[Walk, Rollout]:
    """Make the steps of a rollout.

    Args:
        agent: whose policy is followed.
        features: (n, inputs) what it sees of each state.
        next_states: the :func:`thresholds` of the task.
        walk: where the last rollout ended.
        key: of actions, next states and restarts.

    Returns:
        Where this rollout ended, and its steps.
    """
    logits = apply_network(agent.networks.actor, features)

    def step(walk: Walk, key: Array) -> tuple[Walk, Rollout]:
        choose, move, restart = jax.random.split(key, 3)
        action = jax.random.categorical(choose, logits[walk.state])
        there = jnp.sum(next_states[action, walk.state] <= jax.random.uniform(move))
        end = walk.time + 1 == EPISODE_LENGTH
        start = jax.random.randint(restart, (), 0, len(logits))
        after = Walk(jnp.where(end, start, there), jnp.where(end, 0, walk.time + 1))
        return after, Rollout(walk.state, action, there, end)

    return jax.lax.scan(step, walk, jax.random.split(key, ROLLOUT))


@jax.jit
def improved(agent: Agent, features: Array, rollout: Rollout, goal: Array, clip: Array) -> Agent:
    """The agent after some gradient steps, each on the whole rollout.

    Args:
        agent: whose policy made the rollout.
        features: (n, inputs) what it sees of each state.
        rollout: its steps.
        goal: number of the state whose steps are rewarded with 1.
        clip: range of the ratio of probabilities around 1.

    Returns:
        The agent.
    """
    batch = make_batch(agent.networks, features, rollout, goal)

    def step(agent: Agent, _: None) -> tuple[Agent, None]:
        gradients = jax.grad(ppo_loss)(agent.networks, features, batch, clip)
        changes, momenta = _OPTIMIZER.update(gradients, agent.momenta)
        return Agent(optax.apply_updates(agent.networks, changes), momenta), None

    return jax.lax.scan(step, agent, None, length=UPDATES)[0]


def make_batch(networks: Networks, features: Array, rollout: Rollout, goal: Array) -> RolloutBatch:
    """Advantages, normalised, and the probabilities before the update.

    Args:
        networks: those that made the rollout.
        features: (n, inputs) what they see of each state.
        rollout: its steps.
        goal: number of the state whose steps are rewarded with 1.

    Returns:
        The batch.
    """
    # A world has fewer states than a rollout has steps: networks are applied to the table of states.
    values = apply_network(networks.critic, features)[:, 0]
    log_policy = jax.nn.log_softmax(apply_network(networks.actor, features))
    here = values[rollout.states]
    rewards = (rollout.states == goal).astype(values.dtype)
    advantages = generalised_advantages(rewards, here, values[rollout.next_states], rollout.ends)
    return RolloutBatch(
        rollout.states,
        rollout.actions,
        log_policy[rollout.states, rollout.actions],
        (advantages - advantages.mean()) / (advantages.std() + 1e-8),
        advantages + here,
    )


def generalised_advantages(rewards: Array, values: Array, next_values: Array, ends: Array) -> Array:
    """Generalised advantage estimates (Schulman et al., 2016).

    An episode that was cut off goes on with the value of the state it had reached, and so does the rollout's last.

    Args:
        rewards: (t,) of each step.
        values: (t,) of the states before.
        next_values: (t,) of the states after.
        ends: (t,) whether the next step belongs to another episode.

    Returns:
        (t,) advantages: sums of temporal differences to the end of the episode, discounted.
    """
    differences = rewards + DISCOUNT * next_values - values

    def step(later: Array, one: tuple[Array, Array]) -> tuple[Array, Array]:
        difference, end = one
        found = difference + DISCOUNT * TRACE * jnp.where(end, 0.0, later)
        return found, found

    return jax.lax.scan(step, jnp.zeros(()), (differences, ends), reverse=True)[1]


def ppo_loss(networks: Networks, features: Array, batch: RolloutBatch, clip: Array) -> Array:
    """The clipped objective (Schulman et al., 2017), to be minimised.

    Args:
        networks: the present ones.
        features: (n, inputs) what they see of each state.
        batch: of a rollout.
        clip: range of the ratio of probabilities around 1.

    Returns:
        A scalar.
    """
    log_policy = jax.nn.log_softmax(apply_network(networks.actor, features))
    ratios = jnp.exp(log_policy[batch.states, batch.actions] - batch.log_probabilities)
    clipped = jnp.clip(ratios, 1.0 - clip, 1.0 + clip)
    gain = jnp.minimum(ratios * batch.advantages, clipped * batch.advantages).mean()
    entropy = -(jnp.exp(log_policy) * log_policy).sum(axis=1)[batch.states].mean()
    values = apply_network(networks.critic, features)[batch.states, 0]
    error = 0.5 * jnp.mean((batch.returns - values) ** 2)
    return VALUE_WEIGHT * error - gain - ENTROPY_WEIGHT * entropy


def clip_range(share: float) -> float:
    """The clip range of an update: constant in the first half of training, then linear to its last value.

    Args:
        share: of training that is over, from 0 to 1.

    Returns:
        The range.
    """
    return FIRST_CLIP + (LAST_CLIP - FIRST_CLIP) * max(0.0, 2.0 * share - 1.0)
