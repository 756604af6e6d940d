"""A small reversible chain with a stationary distribution that is far from uniform, and its exact eigenpairs."""

from typing import NamedTuple

import numpy as np


class Chain(NamedTuple):
    operator: np.ndarray
    rho: np.ndarray
    eigenvalues: np.ndarray
    eigenvectors: np.ndarray

    @property
    def laplacian(self) -> np.ndarray:
        return np.eye(len(self.rho)) - self.operator

    def inner(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return u.T @ (self.rho[:, None] * v)


def reversible_chain(states: int, seed: int) -> Chain:
    rng = np.random.default_rng(seed)
    conductances = np.zeros((states, states))
    for i in range(states):
        conductances[i, (i + 1) % states] = rng.uniform(0.3, 3.0)
        conductances[i, i] = rng.uniform(0.0, 1.0)
    conductances += conductances.T
    total = conductances.sum(axis=1)
    rho = total / total.sum()
    root = np.sqrt(rho)
    operator = conductances / total[:, None]
    values, vectors = np.linalg.eigh(np.eye(states) - root[:, None] * operator / root[None, :])
    return Chain(operator, rho, values, vectors / root[:, None])
