"""A deep Q-network agent in a world given as tables, after Wu, Tucker and Nachum (2019): one compiled program."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from lapwing_paper.small_networks import Network, apply_network, new_network

Table = NDArray[np.float64]

EPISODE_LENGTH = 50
DISCOUNT = 0.98
HIDDEN, LAYERS = 256, 3
BATCH, LEARNING_RATE, EXPLORATION = 128, 1e-3, 0.2
FIRST_TRANSITIONS = 10_000
STEPS_PER_REFRESH, REFRESH_RATE = 50, 0.05
STEPS_PER_TEST = 1_000


class MazeTask(NamedTuple):
    """A world with a goal as tables.

    Attributes:
        observations: (n, k) what the agent sees in each state.
        successors: (n, actions) the state that each action leads to.
        goal: number of a state.
    """

    observations: NDArray[np.float32]
    successors: NDArray[np.int32]
    goal: int

    @property
    def sparse_rewards(self) -> Table:
        """(n, actions) -1 for each action that does not lead to the goal, 0 for one that does."""
        return np.where(self.successors == self.goal, 0.0, -1.0)


def policy_return(successors: "Array | NDArray[np.int32]", goal: "Array | int", actions: Array) -> Array:
    """Mean over all starts of the sparse reward that a policy collects in an episode.

    Args:
        successors: (n, actions) the state that each action leads to.
        goal: number of a state.
        actions: (n,) the action in each state.

    Returns:
        A scalar, at most 0.
    """
    following = jnp.take_along_axis(jnp.asarray(successors), actions[:, None], axis=1)[:, 0]

    def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        here, missed = carry
        there = following[here]
        return (there, missed + (there != goal).mean()), None

    begin = (jnp.arange(len(following)), jnp.zeros(()))
    (_, missed), _ = jax.lax.scan(step, begin, None, length=EPISODE_LENGTH)
    return -missed


def optimal_return(task: MazeTask) -> float:
    """The largest mean return over starts that any policy has, by value iteration over the episode.

    Args:
        task: the world and its goal.

    Returns:
        A number, at most 0.
    """
    values = np.zeros(len(task.successors))
    for _ in range(EPISODE_LENGTH):
        values = (task.sparse_rewards + values[task.successors]).max(axis=1)
    return float(values.mean())


def learning_curve(task: MazeTask, rewards: Table, steps: int, seed: int) -> tuple[NDArray[np.int64], Table]:
    """Train an agent on a reward and test it on the sparse one.

    One transition and one gradient step at a time, after random transitions; a target network that follows slowly;
    episodes that are cut off, not ended, by the time limit.

    Args:
        task: the world and its goal.
        rewards: (n, actions) what the agent is rewarded with.
        steps: gradient steps.
        seed: of weights, starts, actions and batches.

    Returns:
        (points,) steps and (points,) returns of the greedy policy, before training and every 1,000 steps.
    """
    tests = -(-steps // STEPS_PER_TEST)
    found = _train(
        jnp.asarray(task.observations),
        jnp.asarray(task.successors),
        jnp.asarray(rewards, dtype=jnp.float32),
        jnp.asarray(task.goal),
        jax.random.key(seed),
        tests,
    )
    return np.arange(tests + 1) * STEPS_PER_TEST, np.asarray(found, dtype=np.float64)


class _Walk(NamedTuple):
    """Where the agent is, how far in its episode, and the transitions so far, of which ``filled`` are there."""

    state: Array
    time: Array
    states: Array
    actions: Array
    filled: Array

    def step(self, successors: Array, action: Array, key: Array) -> "_Walk":
        """Record a transition and go on, from a random start where the episode is over."""
        there = successors[self.state, action]
        over = self.time + 1 == EPISODE_LENGTH
        start = jax.random.randint(key, (), 0, len(successors))
        return _Walk(
            jnp.where(over, start, there),
            jnp.where(over, 0, self.time + 1),
            self.states.at[self.filled].set(self.state),
            self.actions.at[self.filled].set(action),
            self.filled + 1,
        )


class _Agent(NamedTuple):
    """What changes from one gradient step to the next, and the (n, actions) values to regress on, which do not."""

    network: Network
    momenta: Any
    walk: _Walk
    targets: Array


def _random_walk(successors: Array, room: int, key: Array) -> _Walk:
    """The transitions before training; there is room for all that follow."""
    begin, key = jax.random.split(key)
    empty = jnp.zeros(room, dtype=jnp.int32)
    start = jax.random.randint(begin, (), 0, len(successors))
    walk = _Walk(start, jnp.zeros((), jnp.int32), empty, empty, jnp.zeros((), jnp.int32))

    def step(walk: _Walk, key: Array) -> tuple[_Walk, None]:
        choose, restart = jax.random.split(key)
        action = jax.random.randint(choose, (), 0, successors.shape[1])
        return walk.step(successors, action, restart), None

    return jax.lax.scan(step, walk, jax.random.split(key, FIRST_TRANSITIONS))[0]


@partial(jax.jit, static_argnames="tests")
def _train(observations: Array, successors: Array, rewards: Array, goal: Array, key: Array, tests: int) -> Array:
    """(tests + 1,) returns of the greedy policy."""
    first, weights, key = jax.random.split(key, 3)
    count, optimizer = successors.shape[1], optax.adam(LEARNING_RATE)
    walk = _random_walk(successors, FIRST_TRANSITIONS + tests * STEPS_PER_TEST, first)

    def loss(network: Network, seen: Array, taken: Array, wanted: Array) -> tuple[Array, Array]:
        values = apply_network(network, seen)
        chosen = jnp.take_along_axis(values[:BATCH], taken[:, None], axis=1)[:, 0]
        return jnp.mean((chosen - wanted) ** 2), values[BATCH]

    def step(carry: _Agent, key: Array) -> tuple[_Agent, None]:
        network, momenta, walk, targets = carry
        draw, explore, choose, restart = jax.random.split(key, 4)
        batch = jax.random.randint(draw, (BATCH,), 0, walk.filled)
        here, taken = walk.states[batch], walk.actions[batch]
        # The last row is where the agent is: the values there come from the same pass.
        seen = observations[jnp.append(here, walk.state)]
        gradients, values = jax.grad(loss, has_aux=True)(network, seen, taken, targets[here, taken])
        changes, momenta = optimizer.update(gradients, momenta)
        explores = jax.random.uniform(explore) < EXPLORATION
        action = jnp.where(explores, jax.random.randint(choose, (), 0, count), values.argmax())
        walk = walk.step(successors, action, restart)
        return _Agent(optax.apply_updates(network, changes), momenta, walk, targets), None

    def refresh(carry: tuple[_Agent, Network], key: Array) -> tuple[tuple[_Agent, Network], None]:
        agent, target = carry
        # The target network stands still between refreshes, so that its values are one table.
        targets = rewards + DISCOUNT * apply_network(target, observations).max(axis=1)[successors]
        keys = jax.random.split(key, STEPS_PER_REFRESH)
        agent, _ = jax.lax.scan(step, agent._replace(targets=targets), keys)
        return (agent, optax.incremental_update(agent.network, target, REFRESH_RATE)), None

    def test(carry: tuple[_Agent, Network], key: Array) -> tuple[tuple[_Agent, Network], Array]:
        carry, _ = jax.lax.scan(refresh, carry, jax.random.split(key, STEPS_PER_TEST // STEPS_PER_REFRESH))
        return carry, greedy_return(carry[0].network)

    def greedy_return(network: Network) -> Array:
        return policy_return(successors, goal, apply_network(network, observations).argmax(axis=1))

    network = new_network((observations.shape[1], *[HIDDEN] * LAYERS, count), weights)
    agent = _Agent(network, optimizer.init(network), walk, rewards)
    _, found = jax.lax.scan(test, (agent, network), jax.random.split(key, tests))
    return jnp.append(greedy_return(network), found)
