"""Correct losses conform; each known error is found, by its name and its number."""

import json
from functools import cache
from typing import Any

import allo_ports as ports
import jax
import numpy as np
import pytest
from allo_ports import Functions

import lapwing as lw
from lapwing.evaluation import Conformance, check_loss
from lapwing.evaluation.conformance import BARRIER, DIM, FINDINGS, exact_room


@cache
def checked(functions: Functions) -> Conformance:
    return check_loss(**functions._asdict())


def failed(found: Conformance) -> set[str]:
    return {finding.name for finding in found.failures}


# --- the world -------------------------------------------------------------------------------------------------------


def test_the_room_has_13_states_and_distinct_eigenvalues() -> None:
    room = exact_room()
    assert room.states == 13
    assert np.diff(room.eigenvalues[: DIM + 1]).min() > 0.08
    assert room.pairs.shape == (52, 2)


def test_plain_means_over_the_rows_are_expectations() -> None:
    room = exact_room()
    u = room.eigenvectors[:, :DIM]
    arrays = {name: u[rows] for name, rows in room.rows().items()}
    assert {array.shape for array in arrays.values()} == {(676, DIM)}
    for name in ("start", "end", "first", "second"):
        np.testing.assert_allclose(arrays[name].T @ arrays[name] / 676, np.eye(DIM), atol=1e-12)
    energies = ((arrays["start"] - arrays["end"]) ** 2).mean(axis=0) / 2
    np.testing.assert_allclose(energies, room.eigenvalues[:DIM], atol=1e-12)
    independent = np.outer(u.mean(axis=0), u.mean(axis=0))
    np.testing.assert_allclose(arrays["first"].T @ arrays["second"] / 676, independent, atol=1e-12)


# --- losses that conform ---------------------------------------------------------------------------------------------

CORRECT = {
    "ours": Functions(lw.allo()),
    "ours, settings of the paper": Functions(lw.allo(barrier=0.25, barrier_rate=0.005, dual_rate=5e-5)),
    "reference": Functions(ports.make_loss(1.0), ports.ascent, eigenvalues=ports.read_quarter),
    "whole triangle at -2": Functions(
        ports.make_loss(), ports.ascent, ports.whole_triangle_at_minus_two, ports.read_half
    ),
    "NumPy with its gradient": Functions(
        ports.numpy_loss, ports.ascent_from_components, eigenvalues=ports.read_half, gradient=ports.numpy_gradient
    ),
}


SLOW = ("ours, settings of the paper", "graph term averaged", "duals descend", "weight decay")


def names(table: dict[str, Any]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in table]


@pytest.mark.parametrize("name", names(CORRECT))
def test_a_correct_loss_conforms(name: str) -> None:
    found = checked(CORRECT[name])
    assert found.conforms, str(found)
    assert [finding.status for finding in found.findings] == ["pass"] * len(FINDINGS)
    assert found["multipliers"].measured == pytest.approx(4 if name == "reference" else 2, rel=1e-4)
    assert found["order"].measured > 0.999999
    assert found["orthonormality"].measured < 1e-5


def test_without_an_update_only_the_loss_is_checked() -> None:
    found = check_loss(ports.make_loss())
    assert found.conforms
    assert [finding.name for finding in found.unchecked] == ["negative duals", "dual step", "eigenvalues"]


@pytest.mark.slow
def test_a_large_barrier_of_its_own_is_no_failure() -> None:
    def stiff(start: Any, end: Any, first: Any, second: Any, duals: Any) -> Any:
        return ports.make_loss()(start, end, first, second, duals, 1000.0)

    found = check_loss(stiff)
    assert found.conforms
    assert found["order"].status == "not applicable"
    assert "give the loss an argument barrier" in found["order"].detail


def test_differences_of_values_do_not_see_stop_gradients_and_say_so() -> None:
    found = checked(Functions(ports.numpy_loss, ports.ascent_from_components, eigenvalues=ports.read_half))
    assert found.conforms
    assert found.gradients == "finite differences"
    assert [finding.name for finding in found.unchecked] == ["stop-gradient", "order"]
    assert "give a gradient" in found["order"].detail
    assert found["multipliers"].measured == pytest.approx(2)


# --- errors of public implementations --------------------------------------------------------------------------------

# What fails, and the number of the finding named first.
CONSTRAINT = {"orthonormality", "order", "multipliers"}
ERRORS: dict[str, tuple[Functions, str, float, set[str]]] = {
    "Gram matrix over two batches": (
        Functions(ports.gram_of_two_batches, ports.ascent),
        *("Gram matrix", 1.81, {"unbiased square"} | CONSTRAINT),
    ),
    "square of one batch": (Functions(ports.square_of_one_batch, ports.ascent), "unbiased square", 1.70, set()),
    "no stop-gradient": (
        Functions(ports.make_loss(hold=lambda batch: batch), ports.ascent),
        *("stop-gradient", 0.979, {"order", "multipliers"}),
    ),
    "duals not below zero": (
        Functions(ports.make_loss(), ports.not_below_zero),
        *("negative duals", 0.0, {"orthonormality", "multipliers"}),
    ),
    "duals inside the optimiser": (
        Functions(ports.make_loss(), ports.inside_the_optimiser, ports.optimiser_init),
        *("dual step", 0.972, set()),
    ),
    "duals descend": (Functions(ports.make_loss(), ports.descent_on_duals), "dual step", 0.1, set()),
    "weight decay": (Functions(ports.make_loss(), ports.with_weight_decay), "dual step", 0.145, set()),
    "factor of two": (
        Functions(ports.make_loss(1.0), ports.ascent, eigenvalues=ports.read_half),
        *("eigenvalues", 2.0, set()),
    ),
    "graph term averaged": (Functions(ports.graph_term_averaged), "multipliers", 2 / DIM, set()),
}


@pytest.mark.parametrize("name", names(ERRORS))
def test_an_error_is_found(name: str) -> None:
    functions, cause, measured, consequences = ERRORS[name]
    found = checked(functions)
    assert failed(found) == {cause} | consequences, str(found)
    assert found[cause].measured == pytest.approx(measured, abs=5e-3)
    assert all(finding.advice and "\n" not in finding.advice for finding in found.failures)


def test_pinned_duals_shorten_components_as_a_penalty_does() -> None:
    found = checked(ERRORS["duals not below zero"][0])
    assert found["orthonormality"].measured == pytest.approx(exact_room().eigenvalues[DIM - 1] / BARRIER, rel=1e-3)


def test_graph_drawing_leaves_a_rotation() -> None:
    found = check_loss(lw.gdo())
    assert failed(found) == {"stop-gradient", "orthonormality", "order", "eigenvalues"}
    assert "a rotation remains" in found["order"].detail


def test_values_alone_find_a_wrong_constraint() -> None:
    found = check_loss(ports.numpy_gram_of_two_batches)
    assert found.gradients == "finite differences"
    assert failed(found) == {"Gram matrix", "unbiased square", "orthonormality"}


@pytest.mark.slow
def test_a_dual_term_of_the_other_sign_is_named() -> None:
    def negated(duals: Any, **others: Any) -> Any:
        return ports.make_loss()(duals=-duals, **others)

    found = check_loss(negated)
    assert "negative sign" in found["Gram matrix"].detail


# --- the result ------------------------------------------------------------------------------------------------------


def test_the_result_is_plain_json_and_prints_one_line_per_finding() -> None:
    found = checked(ERRORS["Gram matrix over two batches"][0])
    content = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert content["conforms"] is False
    assert [finding["name"] for finding in content["findings"]] == list(FINDINGS)
    lines = str(found).splitlines()
    assert len(lines) == len(FINDINGS) + len(found.advice())
    assert not jax.config.jax_enable_x64
