"""What every objective of the registry must do, whatever it computes."""

import dataclasses
import doctest
import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lapwing.objectives import OBJECTIVES, Objective, Values, allo, ggdo, nested_lora, neural_ef, omm, permuted

DIM = 3

VARIANTS: dict[str, Objective] = {
    **{name: factory() for name, factory in OBJECTIVES.items()},
    "ggdo_growing": ggdo(barrier_rate=0.1, coefficients=[5.0, 2.0, 1.0]),
    "allo_without_duals": allo(duals=False),
    "allo_without_stop_gradient": allo(stop_gradient=False),
    "allo_wayfarer": allo(0.25, barrier_rate=0.0, initial_dual=-1.0),
    "omm_joint_of_order_2": omm(order=2, sequential=False),
    "nested_lora_joint": nested_lora(sequential=False),
    "mu_eigengame": neural_ef(unbiased=True),
    "allo_permuted": permuted(allo(), every=2),
    "allo_permuted_twice": permuted(permuted(allo(), every=3, seed=1), every=2),
}

every_objective = pytest.mark.parametrize("objective", VARIANTS.values(), ids=VARIANTS.keys())


def random_values(seed: int, *leading: int) -> Values:
    """Values with any leading axes, made by NumPy: JAX's own generators take longer to compile than the steps."""
    rng = np.random.default_rng(seed)
    return Values(*rng.normal(size=(4, *leading, 10, DIM)).astype(np.float32))


def one_step(objective: Objective, state, values: Values):
    (loss, seen), gradient = jax.value_and_grad(lambda v: objective.loss(state, v), has_aux=True)(values)
    return objective.update(state, seen.aux), loss, seen, gradient, objective.eigenvalues(state, seen.aux)


class CountedStep:
    """One compiled step of an objective, shared by the tests, that counts how often it was traced."""

    def __init__(self, objective: Objective) -> None:
        self.traces = 0

        def step(state, values):
            self.traces += 1
            return one_step(objective, state, values)

        self.run = jax.jit(step)


@functools.cache
def compiled_step(name: str) -> CountedStep:
    return CountedStep(VARIANTS[name])


@pytest.mark.parametrize("name", VARIANTS)
def test_steps_keep_shapes_and_types_and_add_up_and_compile_once(name: str) -> None:
    objective, step = VARIANTS[name], compiled_step(name)
    state = objective.init(DIM)
    described = describe(state)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(state))
    for seed in range(5):
        state, loss, seen, gradient, eigenvalues = step.run(state, random_values(seed))
        assert describe(state) == described
        assert loss.shape == ()
        assert eigenvalues.shape == (DIM,)
        assert all(metric.shape == () for metric in seen.metrics.values())
        assert gradient.here.shape == gradient.first.shape == (10, DIM)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((state, loss, seen, gradient, eigenvalues)))
        if "graph" in seen.metrics:
            terms = sum(seen.metrics.get(name, 0) for name in ("graph", "dual", "penalty"))
            np.testing.assert_allclose(loss, terms, rtol=1e-6)
    assert step.traces == 1


def describe(state):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), state)


@pytest.mark.parametrize("name", VARIANTS)
def test_compiled_and_plain_steps_agree(name: str) -> None:
    values, state = random_values(1), VARIANTS[name].init(DIM)
    plain, compiled = one_step(VARIANTS[name], state, values), compiled_step(name).run(state, values)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), plain, compiled)


@every_objective
def test_equal_weights_are_no_weights(objective: Objective) -> None:
    values = random_values(5)
    weighted = dataclasses.replace(values, weights=np.full(10, 0.1, dtype=np.float32))
    plain, equal = (objective.loss(objective.init(DIM), given)[0] for given in (values, weighted))
    np.testing.assert_allclose(plain, equal, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OBJECTIVES, "allo_permuted"])
def test_seeds_in_one_scanned_program_agree_with_seeds_alone(name: str) -> None:
    objective = VARIANTS[name]

    def run(values: Values):
        def step(state, now):
            state, loss, seen, _, eigenvalues = one_step(objective, state, now)
            return state, (loss, seen, eigenvalues)

        return jax.lax.scan(step, objective.init(DIM), values)

    seeds = random_values(2, 4, 3)
    together, run_alone = jax.jit(jax.vmap(run))(seeds), jax.jit(run)
    for i in range(4):
        alone = run_alone(jax.tree.map(lambda leaf: leaf[i], seeds))  # noqa: B023
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a[i], b, rtol=1e-4, atol=1e-5), together, alone)  # noqa: B023


@every_objective
def test_one_shared_batch_gives_the_square_of_its_errors(objective: Objective) -> None:
    values = random_values(4)
    shared = dataclasses.replace(values, second=values.first)
    copied = dataclasses.replace(values, second=jnp.array(values.first))
    for one, other in zip(
        jax.tree.leaves(objective.loss(objective.init(DIM), shared)),
        jax.tree.leaves(objective.loss(objective.init(DIM), copied)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("module", ["objective", "constraints", "permuted", *OBJECTIVES])
def test_the_examples_in_the_docstrings_run(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(f"lapwing.objectives.{module}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0
