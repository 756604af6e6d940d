"""One of the processes that ``mpirun`` starts for :mod:`lapwing.operators.slepc`; it runs in the system's Python.

It reads ``indptr.npy``, ``indices.npy`` and ``data.npy`` of a sparse symmetric matrix, of which each process takes its
own rows, and writes ``values.npy`` and ``vectors.npy``. Nothing of lapwing is imported: that Python does not have it.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = 1e-12


def main(folder: Path, count: int, shift: float) -> None:
    """Solve, and write eigenvalues and eigenvectors.

    Args:
        folder: of the files.
        count: how many pairs.
        shift: a number just below the spectrum.
    """
    from petsc4py import PETSc
    from slepc4py import SLEPc

    indptr, indices, data = (
        np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ("indptr", "indices", "data")
    )
    size = len(indptr) - 1
    matrix = PETSc.Mat().create()
    matrix.setSizes((size, size))
    matrix.setType(PETSc.Mat.Type.AIJ)
    matrix.setUp()
    first, last = matrix.getOwnershipRange()
    begin, end = int(indptr[first]), int(indptr[last])
    own = np.asarray(indptr[first : last + 1], dtype=PETSc.IntType) - PETSc.IntType(begin)
    part = (own, np.asarray(indices[begin:end], dtype=PETSc.IntType), np.asarray(data[begin:end]))
    matrix = PETSc.Mat().createAIJ(((last - first, size), (last - first, size)), csr=part)

    solver = _shift_invert(SLEPc, matrix, shift)
    values, vectors = _solved(solver, matrix, count)
    # Krylov methods can miss copies of a repeated eigenvalue: look in the complement until nothing smaller is there.
    for _ in range(count):
        solver.setDeflationSpace(vectors)
        others, copies = _solved(solver, matrix, 1)
        if others[0] >= values[-1] - 1e-9 * max(abs(values[-1]), 1e-6):
            break
        order = np.argsort([*values, others[0]], kind="stable")[:count]
        joined = [*vectors, copies[0]]
        values, vectors = np.append(values, others[0])[order], [joined[number] for number in order]
    columns = np.empty((size, count)) if PETSc.COMM_WORLD.rank == 0 else None
    for number, vector in enumerate(vectors):
        scatter, whole = PETSc.Scatter.toZero(vector)
        scatter.scatter(vector, whole)
        if columns is not None:
            columns[:, number] = whole.getArray()
    if columns is not None:
        np.save(folder / "vectors.npy", columns, allow_pickle=False)
        np.save(folder / "values.npy", values, allow_pickle=False)


def _shift_invert(slepc: Any, matrix: Any, shift: float) -> Any:
    """A solver for the eigenvalues nearest to the shift; its factors are kept from one call to the next."""
    solver = slepc.EPS().create()
    solver.setOperators(matrix)
    solver.setProblemType(slepc.EPS.ProblemType.HEP)
    solver.setType(slepc.EPS.Type.KRYLOVSCHUR)
    solver.setTolerances(TOLERANCE, 1000)
    solver.setTarget(shift)
    solver.setWhichEigenpairs(slepc.EPS.Which.TARGET_MAGNITUDE)
    spectral = solver.getST()
    spectral.setType(slepc.ST.Type.SINVERT)
    linear = spectral.getKSP()
    linear.setType("preonly")
    conditioner = linear.getPC()
    conditioner.setType("cholesky")
    conditioner.setFactorSolverType("mumps")
    return solver


def _solved(solver: Any, matrix: Any, count: int) -> tuple[Any, list[Any]]:
    """The ``count`` eigenpairs nearest to the shift, eigenvalues ascending."""
    solver.setDimensions(count, max(2 * count + 10, 30))
    solver.solve()
    if solver.getConverged() < count:
        raise RuntimeError(f"only {solver.getConverged()} of {count} eigenpairs converged")
    vectors = []
    for number in range(count):
        vector = matrix.createVecRight()
        solver.getEigenvector(number, vector)
        vectors.append(vector)
    values = np.array([solver.getEigenvalue(number).real for number in range(count)])
    order = np.argsort(values, kind="stable")
    return values[order], [vectors[number] for number in order]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
