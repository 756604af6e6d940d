"""Which learning it is: what two runs must share for one to go on where the other stopped."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lapwing.spectral.operators import Operator
from lapwing.training.config import LearnConfig
from lapwing.training.job import Data, Job
from lapwing.trajectories.container import Trajectories

# Observations on disk may be larger than memory: of more than this, rows spread over them are read.
MAX_READ_BYTES = 256 << 20


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


def data_digest(data: Data) -> str:
    """A fingerprint of experience or exact dynamics: the same data give the same, other data another."""
    digest = hashlib.sha256()
    for array in _parts(data):
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(_affordable(array)).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:32]


def _parts(data: Data) -> list[NDArray[Any]]:
    if isinstance(data, Trajectories):
        ids = [] if data.ids is None else [data.ids]
        return [data.observations, data.offsets, data.terminated, data.truncated, *ids]
    assert isinstance(data, Operator)
    matrix = csr_array(data.matrix)
    return [matrix.data, matrix.indices, matrix.indptr, data.rho, data.observations]


def _affordable(array: NDArray[Any]) -> NDArray[Any]:
    if array.nbytes <= MAX_READ_BYTES:
        return array
    rows = np.linspace(0, len(array) - 1, max(2, len(array) * MAX_READ_BYTES // array.nbytes)).astype(np.int64)
    return np.asarray(array[rows])
