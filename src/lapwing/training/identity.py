"""Which learning it is: what two runs must share for one to go on where the other stopped."""

import hashlib
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lapwing.data.trajectories import Trajectories
from lapwing.operators.operator import Operator
from lapwing.training.config import LearnConfig
from lapwing.training.job import Data, Job
from lapwing.training.step import Program, TrainState

BLOCK_BYTES = 64 << 20


def identity_of(job: Job) -> dict[str, Any]:
    """Configuration, seeds, data, and what was given in place of what the configuration describes, as JSON types.

    Options at their default are left out: one that is added later then changes nothing for what was begun before.
    """
    defaults = LearnConfig().as_dict()
    config = {name: value for name, value in job.config.as_dict().items() if name != "seed" and value != defaults[name]}
    return {
        "config": config,
        "seeds": list(job.seeds),
        "data": data_digest(job.data),
        "objective": "given" if job.custom else job.config.objective,
        "encoder": "given" if job.given is not None else job.kind,
    }


def compiled_digest(program: Program, state: TrainState, data: Any) -> str:
    """A fingerprint of what a program computes and of where it begins; the same code and weights give the same."""
    digest = hashlib.sha256(program.run.lower(state, data, 1).as_text().encode())  # type: ignore[attr-defined]
    for leaf in jax.tree.leaves(jax.device_get((state.trained, state.fixed, state.objective))):
        digest.update(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:32]


def data_digest(data: Data) -> str:
    """A fingerprint of experience or exact dynamics: the same data give the same, other data another."""
    digest = hashlib.sha256()
    for array in _parts(data):
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        # In blocks, for what lies on a disk may be larger than memory.
        rows = max(1, BLOCK_BYTES * len(array) // max(array.nbytes, 1))
        for begin in range(0, len(array), rows):
            digest.update(np.ascontiguousarray(array[begin : begin + rows]).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:32]


def _parts(data: Data) -> list[NDArray[Any]]:
    if isinstance(data, Trajectories):
        ids = [] if data.ids is None else [data.ids]
        return [data.observations, data.offsets, data.terminated, data.truncated, *ids]
    assert isinstance(data, Operator)
    matrix = csr_array(data.matrix)
    return [matrix.data, matrix.indices, matrix.indptr, data.rho, data.observations]
