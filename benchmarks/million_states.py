"""A room of 1,000 x 1,000 cells solved exactly: time, peak memory, and error against the closed form.

    python benchmarks/million_states.py [ROWS COLUMNS]

An empty room of n x m cells has the one-step eigenvalues 1 - cos(pi k / n) / 2 - cos(pi l / m) / 2.
"""

import resource
import sys
import time

import numpy as np

import lapwing as lw

DIM = 11


def closed_form(rows: int, columns: int, count: int) -> np.ndarray:
    # sin^2 instead of 1 - cos: the small ones keep all their digits.
    down = np.sin(np.pi * np.arange(count) / (2 * rows)) ** 2
    across = np.sin(np.pi * np.arange(count) / (2 * columns)) ** 2
    return np.sort((down[:, None] + across[None, :]).ravel())[:count]


def main(rows: int = 1000, columns: int = 1000) -> None:
    before, before_cpu = time.perf_counter(), time.process_time()
    model = lw.solve(f"room:{rows}x{columns}", DIM, say=lambda stage: print(f"  {stage} ...", flush=True))
    seconds, cpu_seconds = time.perf_counter() - before, time.process_time() - before_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kB on Linux, bytes on macOS
    gigabytes = peak / (1e9 if sys.platform == "darwin" else 1e6)
    truth = closed_form(rows, columns, DIM)
    errors = np.abs(model.eigenvalues[1:] - truth[1:]) / truth[1:]
    print(f"states                          {rows * columns:,}")
    print(f"components                      {DIM}")
    print(f"time                            {seconds:.1f} s")
    print(f"processor time                  {cpu_seconds:.1f} s")
    print(f"peak memory                     {gigabytes:.2f} GB")
    print(f"first eigenvalue (true: 0)      {model.eigenvalues[0]:.1e}")
    print(f"largest relative error, others  {errors.max():.1e}")
    print(f"largest residual                {model.certificate().residuals.max():.1e}")


if __name__ == "__main__":
    main(*(int(size) for size in sys.argv[1:3]))
