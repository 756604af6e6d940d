"""What should not be passed to the public functions: refused with a message, whichever argument it is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lapwing as lw
import lapwing_paper

DATA = lw.collect("GridMaze-7", 2000, seed=0)
MODEL = lw.solve("GridMaze-7", 3)
OPERATOR = lw.operator("GridMaze-7")
TINY: dict[str, Any] = {"dim": 2, "steps": 2, "hidden": (4,)}

CALLS: dict[str, Callable[[], Any]] = {
    "audit of a name": lambda: lw.audit("data"),  # type: ignore[arg-type]
    "ritz of a name": lambda: lw.rayleigh_ritz(lambda x: x, "data"),  # type: ignore[arg-type]
    "ritz of nothing": lambda: lw.rayleigh_ritz(None, OPERATOR),  # type: ignore[arg-type]
    "no function to report to": lambda: lw.learn(OPERATOR, **TINY, callback=5),
    "no function for progress": lambda: lw.collect("GridMaze-7", 10, progress=5),  # type: ignore[arg-type]
    "no loss": lambda: lw.check_loss(None),  # type: ignore[arg-type]
    "no update": lambda: lw.check_loss(lambda start: start.sum(), 5),  # type: ignore[arg-type]
    "tolerance in words": lambda: lw.score(MODEL, MODEL, tolerance="x"),  # type: ignore[arg-type]
    "nothing to plot": lambda: MODEL.plot(what=None),  # type: ignore[arg-type]
    "half an episode": lambda: DATA.episode(2.5),  # type: ignore[arg-type]
    "lag too large": lambda: DATA.counts(1e30),  # type: ignore[arg-type]
    "ragged observations": lambda: MODEL.transform([[1], [2, 3]]),
    "no study": lambda: lapwing_paper.reproduce(None),  # type: ignore[arg-type]
    "workers in words": lambda: lapwing_paper.reproduce("theory", workers="x"),  # type: ignore[arg-type]
    "nowhere to run": lambda: lapwing_paper.reproduce("theory", on=5),  # type: ignore[arg-type]
    "worlds that are none": lambda: lapwing_paper.reproduce("brittle-ggdo", worlds=5),  # type: ignore[arg-type]
    "one world's letters": lambda: lapwing_paper.reproduce("brittle-ggdo", worlds="GridMaze-7"),
    "no eigenvalues": lambda: lw.LaplacianRepresentation(MODEL.encoder, None, 3),  # type: ignore[arg-type]
}
PATHS: dict[str, Callable[[Any], Any]] = {
    "load": lw.load,
    "load data": lw.Trajectories.load,
    "save": MODEL.save,
    "save data": DATA.save,
    "checkpoints": lambda path: lw.learn(OPERATOR, **TINY, checkpoints=path),
    "study": lambda path: lapwing_paper.reproduce("theory", out=path),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_a_wrong_argument_is_explained_in_one_line(name: str) -> None:
    with pytest.raises(lw.LapwingError) as caught:
        CALLS[name]()
    assert str(caught.value).strip()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["a\0b", "x" * 5000, "y" * 300, 5, b"bytes"], ids=["nul", "long", "name", "int", "bytes"]
)
@pytest.mark.parametrize("name", list(PATHS))
def test_what_is_no_path_is_explained(name: str, path: Any) -> None:
    with pytest.raises(lw.LapwingError, match="must be a path"):
        PATHS[name](path)


def test_an_array_in_a_message_stays_on_one_line() -> None:
    with pytest.raises(lw.LapwingError) as caught:
        lw.audit(np.eye(3))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
