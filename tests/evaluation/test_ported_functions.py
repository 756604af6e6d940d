"""Functions that cannot be checked are refused in one line, whichever way they are wrong."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from allo_ports import ascent, make_loss

import lapwing as lw
from lapwing.evaluation import check_loss
from lapwing.evaluation.ported_functions import PortedFunction

LOSS = make_loss()


def per_component(start: Any, end: Any) -> Any:
    return ((start - end) ** 2).mean(axis=0)


def raises(start: Any) -> Any:
    raise KeyError("duals\nand more")


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "not a function": ({"loss": 5}, "the loss must be a function"),
    "another name": ({"loss": lambda start, ends: 0.0}, "argument 'ends', .* did you mean end"),
    "no components": ({"loss": lambda duals: 0.0}, "takes none of the components"),
    "positional only": ({"loss": lambda start, /: 0.0}, "arguments are given by name"),
    "wrong shape": ({"loss": per_component}, r"must return one number, got an array of shape \(4,\)"),
    "wrong shape in NumPy": ({"loss": lambda start: np.mean(np.asarray(start), 0)}, "one number"),
    "a tuple": ({"loss": lambda start: (jnp.sum(start), {})}, "must return one number"),
    "nothing": ({"loss": lambda start: None}, "must return one number, got None"),
    "NaN": ({"loss": lambda start: jnp.nan * start.sum()}, "the loss is nan"),
    "NaN in the gradient": ({"loss": lambda start, end: jnp.sqrt(0 * (start - end)).sum()}, "gradient .* not finite"),
    "raises": ({"loss": raises}, "the loss raised KeyError.* start \\(676, 4\\)"),
    "update of another name": ({"loss": LOSS, "update": lambda beta: beta}, "the update has an argument 'beta'"),
    "update of the wrong shape": ({"loss": LOSS, "update": lambda duals: duals[0]}, "4 x 4 finite duals"),
    "update gives NaN": ({"loss": LOSS, "update": lambda duals: duals * jnp.nan}, "4 x 4 finite duals"),
    "update without init": ({"loss": LOSS, "update": lambda duals, state: duals}, "give init"),
    "init of the wrong shape": ({"loss": LOSS, "update": ascent, "init": lambda dim: 0.0}, "init must return duals"),
    "read-out of the wrong shape": ({"loss": LOSS, "eigenvalues": lambda duals: duals}, "must return 4 finite numbers"),
    "gradient of the wrong shape": (
        {"loss": LOSS, "gradient": lambda start: [start]},
        "a list of the derivatives",
    ),
    "objective with an update": ({"loss": lw.allo(), "update": ascent}, "give it alone"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_what_cannot_be_checked_is_explained_in_one_line(name: str) -> None:
    arguments, message = BAD[name]
    with pytest.raises(lw.LapwingError, match=message) as caught:
        check_loss(**arguments)
    assert "\n" not in str(caught.value)


def test_arguments_with_defaults_and_keywords_are_allowed() -> None:
    def function(duals: Any, rate: float = 0.1, *rest: Any, **others: Any) -> Any:
        return rate, sorted(others)

    ported = PortedFunction.of(function, "the function", ("start", "duals"))
    assert ported(start=np.ones(2), duals=np.ones(2), end=np.ones(2)) == (0.1, ["start"])


def test_what_a_function_changes_in_place_stays_its_own() -> None:
    def changing(start: Any) -> Any:
        start[:] = 0
        return start

    kept = np.ones(3)
    PortedFunction.of(changing, "the function", ("start",))(start=kept)
    assert kept.tolist() == [1, 1, 1]
