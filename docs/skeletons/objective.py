"""An objective of your own: orbital minimisation, which needs the off-diagonal products <u_i, f(P) u_j>."""

import jax
import jax.numpy as jnp

import lapwing as lw
from lapwing.objectives import Evaluation, Objective, Values


def orbital_minimisation(shift: float = 1.0) -> Objective:
    """Minimise ``-2 tr A + tr(G A)`` with ``A = <u, (f(P) + shift) u>`` and ``G = <u, u>``: no constraint is needed.

    At the minimum the outputs are an orthonormal basis of the span of the leading eigenvectors; the rotation inside
    it is left to Rayleigh-Ritz (``refine="ritz"``).

    Args:
        shift: makes ``f(P) + shift`` positive; an option for users, on the command line too.

    Returns:
        The objective.
    """

    def init(dim: int) -> tuple[()]:
        return ()  # what the next step needs: here nothing

    def loss(state: tuple[()], values: Values) -> tuple[jax.Array, Evaluation]:
        first, second = values.inner_products()
        gram = (first + second) / 2
        products = values.operator_products() + shift * gram
        value = -2 * jnp.trace(products) + jnp.sum(gram * products)
        error = jnp.max(jnp.abs(gram - jnp.eye(gram.shape[0])))
        return value, Evaluation(aux=(gram, products), metrics={"error": error})

    def update(state: tuple[()], aux: tuple[jax.Array, jax.Array]) -> tuple[()]:
        return state

    def eigenvalues(state: tuple[()], aux: tuple[jax.Array, jax.Array]) -> jax.Array:
        gram, products = aux
        return 1 + shift - jnp.diagonal(products) / jnp.diagonal(gram)

    return Objective(init, loss, update, eigenvalues)


if __name__ == "__main__":
    data = lw.collect("GridMaze-7", steps=20_000, seed=0)
    model = lw.learn(data, dim=3, objective=orbital_minimisation(), steps=600, seed=0)
    print(lw.score(model, lw.solve("GridMaze-7", dim=3)))
