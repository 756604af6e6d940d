"""Twenty seeds in one program against twenty runs one after another: throughput, agreement.

    python benchmarks/many_seeds.py

First the compiled steps alone: rounds alternate in one run and the ratio of the best is printed. Then whole runs as a
user makes them, compilation and answer included.
"""

import argparse
import time

import jax
import numpy as np

import lapwing as lw
from lapwing.training import make_config, run_steps
from lapwing.training.task import prepare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", default="GridMaze-9")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--layouts", default=None)
    options = parser.parse_args()
    data = lw.collect(options.world, 200_000, layouts=options.layouts)
    config = make_config(options.preset)
    together = timer(config, data, list(range(options.seeds)), options.steps)
    alone = timer(config, data, [0], options.steps)
    many, one = [], []
    for _ in range(3):
        many.append(options.seeds * options.steps / together())
        one.append(options.steps * 4 / sum(alone() for _ in range(4)))
    print(
        f"{options.world}, {options.preset} preset: {options.seeds} seeds in one program {max(many):,.0f} seed-steps/s, "
    )
    print(f"one after another {max(one):,.0f} steps/s, ratio {max(many) / max(one):.2f}")
    learner = lw.Learner(options.preset, steps=200, stop_when_converged=False)
    started = time.perf_counter()
    learner.fit_many(data, list(range(options.seeds)))
    whole_many = time.perf_counter() - started
    started = time.perf_counter()
    for seed in range(options.seeds):
        lw.Learner(options.preset, steps=200, stop_when_converged=False, seed=seed).fit(data)
    whole_one = time.perf_counter() - started
    print(
        f"whole runs of 200 steps: together {whole_many:.1f} s, one after another {whole_one:.1f} s, ratio {whole_one / whole_many:.2f}"
    )
    print("agreement of seed 0 alone and among the others:")
    learner = lw.Learner(options.preset, steps=100, stop_when_converged=False, refine="none")
    alone_model, among = learner.fit(data), learner.fit_many(data, list(range(options.seeds)))[0]
    points = np.asarray(data.observations)
    gap = np.abs(alone_model.transform(points) - among.transform(points)).max()
    print(f"  largest difference of components after 100 steps {gap:.1e}")
    truth = lw.solve(options.world, layouts=options.layouts)
    learner = lw.Learner(options.preset)
    scores = [
        lw.score(model, truth).subspace_cosine
        for model in (learner.fit(data), learner.fit_many(data, list(range(options.seeds)))[0])
    ]
    print(f"  final subspace cosine alone {scores[0]:.6f}, among {scores[1]:.6f}")


def timer(config, data, seeds, steps):
    task = prepare(config, data, seeds, None, None)
    state = [task.initial_state()]
    program = jax.jit(run_steps, static_argnums=2, donate_argnums=0)

    def run() -> float:
        started = time.perf_counter()
        state[0], info = program(state[0], task.source, steps)
        jax.block_until_ready(info.loss)
        return time.perf_counter() - started

    run()
    return run


if __name__ == "__main__":
    main()
