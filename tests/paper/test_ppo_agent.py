"""Proximal policy optimisation: its loss and advantages by hand, its walks by their frequencies, and that it learns."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing_paper import ppo_agent
from lapwing_paper.goal_task import goal_task, optimal_return, policy_return
from lapwing_paper.ppo_agent import (
    Agent,
    Rollout,
    RolloutBatch,
    action_probabilities,
    clip_range,
    collect_rollout,
    first_walk,
    generalised_advantages,
    improved,
    make_batch,
    new_agent,
    ppo_loss,
    thresholds,
)

WORLD: Any = lw.make_world("GridMaze-9")
TASK = goal_task(WORLD, goal=3)
FEATURES = jnp.asarray(TASK.observations)


def some_agent(seed: int = 0, scale: float = 50.0) -> Agent:
    """An agent whose policy is far from uniform."""
    agent = new_agent(FEATURES.shape[1], 4, jax.random.key(seed))
    actor = [*agent.networks.actor[:-1], jax.tree.map(lambda part: scale * part, agent.networks.actor[-1])]
    return agent._replace(networks=agent.networks._replace(actor=actor))


def some_rollout(agent: Agent, seed: int = 0) -> Rollout:
    walk = first_walk(TASK, jax.random.key(seed + 10))
    return collect_rollout(agent, FEATURES, thresholds(TASK), walk, jax.random.key(seed))[1]


def test_a_new_policy_is_almost_uniform() -> None:
    policy = action_probabilities(new_agent(2, 4, jax.random.key(0)), FEATURES)
    np.testing.assert_allclose(policy, 0.25, atol=0.01)


def test_advantages_are_direct_sums_of_temporal_differences() -> None:
    rng = np.random.default_rng(0)
    rewards, values, next_values = rng.normal(size=(3, 12))
    ends = np.zeros(12, dtype=bool)
    ends[[4, 9]] = True
    wanted = np.zeros(12)
    for start in range(12):
        for time in range(start, 12):
            difference = rewards[time] + 0.99 * next_values[time] - values[time]
            wanted[start] += (0.99 * 0.95) ** (time - start) * difference
            if ends[time]:
                break
    found = generalised_advantages(*map(jnp.asarray, (rewards, values, next_values, ends)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_batch_rewards_steps_from_the_goal_and_remembers_probabilities() -> None:
    agent = some_agent()
    rollout = some_rollout(agent)
    batch = make_batch(agent.networks, FEATURES, rollout, jnp.asarray(TASK.goal))
    values = np.asarray(ppo_agent.apply_network(agent.networks.critic, FEATURES)[:, 0])
    states, actions, there, ends = map(np.asarray, rollout)
    rewards = (states == TASK.goal).astype(np.float32)
    advantages = np.asarray(generalised_advantages(rewards, values[states], values[there], ends))
    np.testing.assert_allclose(batch.returns, advantages + values[states], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(batch.advantages, (advantages - advantages.mean()) / advantages.std(), atol=1e-4)
    policy = np.asarray(action_probabilities(agent, FEATURES))
    np.testing.assert_allclose(np.exp(batch.log_probabilities), policy[states, actions], rtol=1e-4)


def loss_by_hand(policy: np.ndarray, values: np.ndarray, batch: RolloutBatch, clip: float) -> float:
    total = 0.0
    for state, action, before, advantage, wanted in zip(*map(np.asarray, batch), strict=True):
        ratio = policy[state, action] / np.exp(before)
        gain = advantage * (min(ratio, 1.0 + clip) if advantage > 0 else max(ratio, 1.0 - clip))
        entropy = -float(np.sum(policy[state] * np.log(policy[state])))
        total += 0.5 * 0.5 * (wanted - values[state]) ** 2 - gain - 0.01 * entropy
    return total / len(batch.states)


def test_the_loss_is_that_of_the_paper_and_its_gradient_that_of_finite_differences() -> None:
    goal, clip, rollout = jnp.asarray(TASK.goal), 0.2, some_rollout(some_agent(0))
    loss_and_gradient = jax.jit(jax.value_and_grad(ppo_loss))
    with jax.enable_x64(True):
        features = jnp.asarray(TASK.observations, dtype=jnp.float64)
        before, after = (jax.tree.map(lambda part: np.float64(part), some_agent(seed).networks) for seed in (0, 1))
        batch = jax.jit(make_batch)(before, features, rollout, goal)
        loss, gradients = loss_and_gradient(after, features, batch, clip)
        policy = np.asarray(jax.nn.softmax(ppo_agent.apply_network(after.actor, features)))
        values = np.asarray(ppo_agent.apply_network(after.critic, features)[:, 0])
        assert float(loss) == pytest.approx(loss_by_hand(policy, values, batch, clip), rel=1e-8)
        rng = np.random.default_rng(0)
        direction = jax.tree.map(lambda part: rng.normal(size=part.shape), after)
        ends = [
            jax.tree.map(lambda part, way, size=size: part + size * way, after, direction) for size in (1e-7, -1e-7)
        ]
        high, low = (float(loss_and_gradient(end, features, batch, clip)[0]) for end in ends)
        along = sum(jax.tree.leaves(jax.tree.map(lambda one, way: float((one * way).sum()), gradients, direction)))
        assert along == pytest.approx((high - low) / 2e-7, rel=1e-4)


def test_rollouts_follow_the_policy_and_the_dynamics_and_are_cut_off_in_time() -> None:
    agent, walk, rollouts = some_agent(), first_walk(TASK, jax.random.key(0)), []
    for key in jax.random.split(jax.random.key(1), 200):
        walk, rollout = collect_rollout(agent, FEATURES, thresholds(TASK), walk, key)
        rollouts.append(rollout)
    states, actions, there, ends = (np.concatenate(parts) for parts in zip(*rollouts, strict=True))
    assert np.flatnonzero(ends).tolist() == list(range(999, 100_000, 1_000))
    goes_on = ~ends[:-1]
    np.testing.assert_array_equal(there[:-1][goes_on], states[1:][goes_on])
    assert len(set(states[1:][~goes_on])) > len(FEATURES) // 2
    made = np.zeros((len(FEATURES), 4))
    np.add.at(made, (states, actions), 1.0)
    visits = made.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(made / visits, action_probabilities(agent, FEATURES), atol=2.0 / np.sqrt(visits.min()))
    moves = np.zeros(TASK.transitions.shape)
    np.add.at(moves, (actions, states, there), 1.0)
    assert not moves[TASK.transitions == 0].any()
    often = moves.sum(axis=2) > 1_000
    shares = moves[often] / moves[often].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, TASK.transitions[often], atol=0.06)


def test_the_clip_range_is_constant_and_then_falls() -> None:
    assert [clip_range(share) for share in (0.0, 0.5, 0.75, 1.0)] == pytest.approx([0.2, 0.2, 0.105, 0.01])


@pytest.mark.slow
def test_an_agent_learns_a_corridor() -> None:
    world: Any = lw.make_world("room:1x6")
    task = goal_task(world, goal=0)
    features, rows = jnp.asarray(task.observations), thresholds(task)
    agent, walk = new_agent(2, 4, jax.random.key(0)), first_walk(task, jax.random.key(1))
    for key in jax.random.split(jax.random.key(2), 80):
        walk, rollout = collect_rollout(agent, features, rows, walk, key)
        agent = improved(agent, features, rollout, task.goal, 0.2)
    policy = np.asarray(action_probabilities(agent, features), dtype=np.float64)
    assert policy_return(task, policy) > 0.9 * optimal_return(task)
