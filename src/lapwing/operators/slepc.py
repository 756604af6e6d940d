"""Eigenpairs by SLEPc, in processes of their own under ``mpirun``; arrays are exchanged as plain files."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, eye_array

from lapwing.errors import LapwingError, MissingExtraError
from lapwing.operators.eigensolver import ROUNDING, SHIFT, Eigenpairs, Say

INTERPRETER = "/usr/bin/python3"
# Where Debian puts the bindings, which its Python does not find by itself when recommended packages are left out.
BINDINGS = ("/usr/lib/slepcdir", "/usr/lib/petscdir")
WORKER = Path(__file__).with_name("slepc_worker.py")
LAST_LINES = 12
# A process that waits leaves its core to others, and takes whichever is free.
SHARING = ("--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
INSTALL = "apt-get install -y --no-install-recommends python3-slepc4py openmpi-bin"


def slepc_eigenpairs(
    symmetric: csr_array, count: int, processes: int = 2, say: Say | None = None, *, largest_mu: float = 1.0
) -> Eigenpairs:
    """The ``count`` smallest eigenpairs of I - S by shift-invert Krylov-Schur, its factors spread over processes.

    Args:
        symmetric: S, sparse, symmetric.
        count: how many pairs.
        processes: how many processes ``mpirun`` starts; on which machines is for its own settings to say.
        say: called with a short message when a long stage begins.
        largest_mu: no eigenvalue of S exceeds this; 1 for every S in the inner product of its stationary rho.

    Returns:
        The eigenpairs, eigenvalues ascending.

    Raises:
        MissingExtraError: where ``mpirun`` or Debian's slepc4py is not installed.
        LapwingError: where ``mpirun`` fails; the message has its last lines.
    """
    if not is_installed():
        raise MissingExtraError(f"engine='slepc' needs mpirun and Debian's slepc4py; install them with: {INSTALL}")
    size = symmetric.shape[0]
    laplacian = csr_array(eye_array(size) - symmetric)
    command = ["mpirun", "--oversubscribe", *SHARING, "-n", str(processes), INTERPRETER]
    if getattr(os, "geteuid", lambda: None)() == 0:
        command.insert(1, "--allow-run-as-root")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_bindings()), "OMP_NUM_THREADS": "1"}
    shift = SHIFT - max(largest_mu - 1.0, 0.0)
    if say:
        say(f"SLEPc with {processes} processes for {count} eigenvectors of {size:,} states")
    with tempfile.TemporaryDirectory(prefix="lapwing-slepc-") as folder:
        for name in ("indptr", "indices", "data"):
            np.save(Path(folder) / f"{name}.npy", getattr(laplacian, name), allow_pickle=False)
        # From a folder of its own: beside this file, Python would take operator.py for the module of that name.
        worker = shutil.copy(WORKER, folder)
        done = subprocess.run(
            [*command, worker, folder, str(count), repr(shift)],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if done.returncode:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            last = "\n".join(lines[-LAST_LINES:])
            raise LapwingError(f"mpirun ended with code {done.returncode}; its last lines:\n{last}")
        values, vectors = (np.load(Path(folder) / f"{name}.npy", allow_pickle=False) for name in ("values", "vectors"))
    values = np.where(np.abs(values) < ROUNDING, 0.0, values)
    residuals = np.linalg.norm(laplacian @ vectors - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals)


def is_installed() -> bool:
    """Whether :func:`slepc_eigenpairs` can run here.

    Returns:
        True where ``mpirun`` and Debian's bindings are there.
    """
    return shutil.which("mpirun") is not None and bool(_bindings())


def _bindings() -> list[str]:
    """The folders of slepc4py and petsc4py for real numbers; empty where one is missing."""
    found = []
    for root, name in zip(BINDINGS, ("slepc4py", "petsc4py"), strict=True):
        places = sorted(Path(root).glob(f"*/*-real/lib/python3/dist-packages/{name}"))
        if not places:
            return []
        found.append(str(places[-1].parent))
    return found
