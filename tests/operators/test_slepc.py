"""SLEPc in processes of its own: against SciPy where it is installed, and what is said where it is not."""

from pathlib import Path

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import LapwingError, MissingExtraError
from lapwing.operators import slepc


@pytest.mark.slow
@pytest.mark.skipif(not slepc.is_installed(), reason="python3-slepc4py or mpirun is not installed")
def test_two_processes_agree_with_scipy_on_a_square_room() -> None:
    found, other = (lw.solve("room:40x40", 11, engine=engine) for engine in ("slepc:2", "scipy"))
    np.testing.assert_allclose(found.eigenvalues, other.eigenvalues, rtol=1e-8, atol=1e-13)
    assert lw.score(found, other).subspace_cosine > 1 - 1e-8


def test_where_it_is_missing_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slepc, "BINDINGS", ("/nowhere", "/nowhere"))
    with pytest.raises(MissingExtraError, match="apt-get install -y --no-install-recommends python3-slepc4py"):
        lw.solve("room:40x40", 3, engine="slepc")


def test_when_mpirun_fails_its_last_lines_are_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for root, name in (("s", "slepc4py"), ("p", "petsc4py")):
        (tmp_path / root / "v" / "x-real/lib/python3/dist-packages" / name).mkdir(parents=True)
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\necho all is lost >&2\nexit 3\n")
    mpirun.chmod(0o755)
    monkeypatch.setattr(slepc, "BINDINGS", (str(tmp_path / "s"), str(tmp_path / "p")))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(LapwingError, match=r"(?s)code 3.*all is lost"):
        lw.solve("room:40x40", 3, engine="slepc")
