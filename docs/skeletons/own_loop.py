"""A training loop of your own: an agent's experience grows while the representation is trained."""

import jax
import numpy as np
import optax

import lapwing as lw
from lapwing.encoders import build_encoder
from lapwing.training import Pairs

encoder = build_encoder("fourier", (2,), 3, jax.random.key(0), hidden=(64,))
state = lw.training.init(encoder, lw.allo(barrier=1.0), optax.adam(3e-3), jax.random.key(1))
step = jax.jit(lw.training.step)  # compiled once: shapes stay the same

rng = np.random.default_rng(0)
episodes: list[np.ndarray] = []
for seed in range(10):
    data = lw.collect("GridMaze-9", steps=2_000, episode_length=2_000, seed=seed)  # your agent's latest episode
    episodes.append(data.episode(0))
    seen = np.stack(episodes)
    for _ in range(40):
        episode, start = rng.integers(len(seen), size=256), rng.integers(1_900, size=256)
        lag = np.minimum(rng.geometric(0.1, size=256), 100)
        first, second = seen[rng.integers(len(seen), size=(2, 256)), rng.integers(2_001, size=(2, 256))]
        state, info = step(state, Pairs(seen[episode, start], seen[episode, start + lag], first, second))

print(int(state.step), info.eigenvalues)  # of the operator with geometric lags at discount 0.9
components = state.encoder(data.episode(0))  # (2001, 3)
