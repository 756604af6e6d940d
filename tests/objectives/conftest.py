"""The chain that the oracle tests share."""

import numpy as np
import pytest
from reversible_chains import Chain, reversible_chain


@pytest.fixture(scope="session")
def chain() -> Chain:
    made = reversible_chain(8, seed=12)
    assert made.rho.max() > 2 * made.rho.min()
    assert np.diff(made.eigenvalues[:5]).min() > 0.03
    return made
