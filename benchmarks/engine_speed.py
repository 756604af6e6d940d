"""Sampled steps of the paper preset: each distinct observation encoded once, against all 4,096 rows encoded.

    python benchmarks/engine_speed.py --layouts DIR

Rounds of both kinds alternate in one run, and the ratio of the best rounds is printed: the machine may be shared. The
matrix-multiply rate is that of JAX on this machine in the same run, for the products of the network itself (n x 256 by
256 x 256); the share is what the encoding's multiplications reach of it, everything else of the step included.
"""

import argparse
import itertools
import time
import warnings

import jax
import optax

import lapwing as lw
from lapwing.encoders import build_encoder
from lapwing.operators.lags import geometric_lags
from lapwing.training import init, make_config, pair_sampler, run_steps

HIDDEN = (256, 256, 256)


def stepper(data: lw.Trajectories, encode_table: bool):
    config = make_config("paper")
    lags = geometric_lags(config.discounts)
    source = pair_sampler(data, lags, config.batch_size, encode_table=encode_table)
    encoder = build_encoder("mlp", data.observation_shape, config.dim, jax.random.key(0), hidden=HIDDEN)
    state = [init(encoder, config.make_objective(), optax.adam(config.learning_rate), jax.random.key(1))]
    program = jax.jit(run_steps, static_argnums=2, donate_argnums=0)

    def run(steps: int) -> float:
        started = time.perf_counter()
        state[0], info = program(state[0], source, steps)
        jax.block_until_ready(info.loss)
        return steps / (time.perf_counter() - started)

    return run, len(data.observations) if encode_table else 4 * config.batch_size


def flops_per_row(dim: int = 11) -> float:
    """Multiply-adds of the network times two, forward and both backward products (none to the inputs)."""
    sizes = [2, *HIDDEN, dim]
    products = [2.0 * a * b for a, b in itertools.pairwise(sizes)]
    return 3.0 * sum(products) - products[0]


def multiply_rate(rows: int, repeats: int = 200) -> float:
    """Operations per second of a chain of (rows x 256) (256 x 256) products."""
    weight = jax.random.normal(jax.random.key(0), (256, 256)) / 16.0
    values = jax.random.normal(jax.random.key(1), (rows, 256))
    chain = jax.jit(lambda x: jax.lax.fori_loop(0, repeats, lambda _, y: y @ weight, x))
    jax.block_until_ready(chain(values))
    started = time.perf_counter()
    jax.block_until_ready(chain(values))
    return 2.0 * rows * 256 * 256 * repeats / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", default=None)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", lw.LapwingWarning)
    names = ("GridMaze-9", "GridRoom-16", "GridRoom-64") if options.layouts else ("GridMaze-9", "Rooms-16", "Rooms-64")
    print(
        f"{'world':12} {'rows':>5} {'once/s':>8} {'plain/s':>8} {'ratio':>6} {'GFLOP/s':>8} {'multiply':>9} {'share':>6}"
    )
    for name in names:
        data = lw.collect(name, 1_000_000, layouts=options.layouts)
        (once, rows), (plain, _) = stepper(data, True), stepper(data, False)
        fast, slow = [], []
        steps = max(50, 100_000 // (rows + 100))
        once(steps), plain(20)
        rates = []
        for _ in range(options.rounds):
            fast.append(once(steps))
            rates.append(multiply_rate(rows))
            slow.append(plain(20))
        reached = max(fast) * rows * flops_per_row()
        print(
            f"{name:12} {rows:5} {max(fast):8.1f} {max(slow):8.1f} {max(fast) / max(slow):6.1f} "
            f"{reached / 1e9:8.1f} {max(rates) / 1e9:9.1f} {reached / max(rates):6.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
