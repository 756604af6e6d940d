"""Certificates: verdicts from residuals, gaps and orthonormality alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.diagnostics.certificate import DEGENERATE, NOT_CONVERGED, TRUSTED, Certificate, certificate_from_residuals


def judged(
    eigenvalues: list[float],
    residuals: list[float] | None = None,
    error: float = 0.0,
    following: float | None = None,
    tolerance: float = 1e-6,
) -> Certificate:
    given_residuals = np.zeros(len(eigenvalues)) if residuals is None else np.array(residuals)
    return certificate_from_residuals(np.array(eigenvalues), given_residuals, error, tolerance, following)


def test_separate_eigenvalues_with_small_residuals_are_trusted() -> None:
    certificate = judged([0.0, 0.1, 0.3], [1e-9, 1e-3, 1e-2])
    assert certificate.verdicts == (TRUSTED,) * 3
    assert certificate.converged
    np.testing.assert_allclose(certificate.gaps, [0.1, 0.1, 0.2])
    np.testing.assert_allclose(certificate.angle_bounds, [1e-8, 1e-2, 5e-2])


def test_repeated_eigenvalues_are_degenerate_and_their_gap_is_to_the_other_clusters() -> None:
    certificate = judged([0.0, 0.2, 0.2, 0.5])
    assert certificate.verdicts == (TRUSTED, DEGENERATE, DEGENERATE, TRUSTED)
    np.testing.assert_allclose(certificate.gaps, [0.2, 0.2, 0.2, 0.3])
    assert certificate.converged


def test_a_residual_is_judged_by_its_gap() -> None:
    # The same residual is small beside a gap of 0.4 and large beside one of 0.01.
    assert judged([0.0, 0.4], [0.02, 0.02]).verdicts == (TRUSTED, TRUSTED)
    assert judged([0.0, 0.4, 0.41], [0.02] * 3).verdicts == (TRUSTED, NOT_CONVERGED, NOT_CONVERGED)


def test_the_next_eigenvalue_narrows_the_last_gap_and_may_complete_a_cluster() -> None:
    assert judged([0.0, 0.4]).gaps[-1] == pytest.approx(0.4)
    assert judged([0.0, 0.4], following=0.45).gaps[-1] == pytest.approx(0.05)
    assert judged([0.0, 0.4], following=0.4).verdicts == (TRUSTED, DEGENERATE)


@pytest.mark.parametrize("residual", [np.nan, np.inf, 0.2])
def test_a_large_or_undefined_residual_is_not_converged(residual: float) -> None:
    certificate = judged([0.0, 0.5, 0.9], [0.0, residual, 0.0])
    assert certificate.verdicts == (TRUSTED, NOT_CONVERGED, TRUSTED)
    assert not certificate.converged


def test_an_undefined_eigenvalue_is_not_converged() -> None:
    assert judged([0.0, np.nan], [0.0, 0.0]).verdicts[1] == NOT_CONVERGED


@pytest.mark.parametrize("error", [0.06, np.nan])
def test_components_that_are_not_orthonormal_are_not_converged(error: float) -> None:
    assert set(judged([0.0, 0.5], error=error).verdicts) == {NOT_CONVERGED}


def test_a_single_component_has_no_neighbour_to_be_mixed_up_with() -> None:
    certificate = judged([0.0], [1e-3])
    assert certificate.verdicts == (TRUSTED,)
    assert certificate.angle_bounds.tolist() == [0.0]


def test_the_first_components_keep_their_verdicts() -> None:
    whole = judged([0.0, 0.2, 0.2, 0.5], [0.0, 0.0, 0.0, 1.0])
    part = whole.first(2)
    assert part.verdicts == (TRUSTED, DEGENERATE)
    assert len(part.eigenvalues) == len(part.residuals) == len(part.gaps) == len(part.angle_bounds) == 2
    assert part.converged
    assert not whole.converged


@given(st.integers(0, 2**32 - 1))
def test_the_bound_on_the_angle_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.sort(rng.random(6))
    vectors = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    matrix = vectors @ np.diag(values) @ vectors.T
    which = int(rng.integers(6))
    guess = vectors[:, which] + 0.05 * rng.standard_normal(6)
    guess /= np.linalg.norm(guess)
    quotient = float(guess @ matrix @ guess)
    residual = float(np.linalg.norm(matrix @ guess - quotient * guess))
    eigenvalues = values.copy()
    eigenvalues[which] = quotient
    if (np.diff(eigenvalues) > 1e-6).all():
        residuals = np.where(np.arange(6) == which, residual, 0.0)
        bound = judged(eigenvalues.tolist(), residuals.tolist()).angle_bounds[which]
        assert np.sqrt(max(0.0, 1.0 - (guess @ vectors[:, which]) ** 2)) <= bound + 1e-9


def test_the_table_has_a_line_per_component() -> None:
    lines = str(judged([0.0, 0.2, 0.2], [0.0, 0.0, 1.0])).split("\n")
    assert len(lines) == 5
    assert [line.split("  ")[-1] for line in lines[1:4]] == [TRUSTED, DEGENERATE, NOT_CONVERGED]


def test_where_the_next_eigenvalue_is_not_known_it_may_be_anywhere_up_to_the_end_of_the_spectrum() -> None:
    values, residuals = np.array([0.0, 0.994]), np.array([1e-4, 1e-2])
    without = certificate_from_residuals(values, residuals, 0.0, 1e-3, operator_eigenvalues=values)
    assert without.verdicts == ("trusted", "trusted")
    judged = certificate_from_residuals(values, residuals, 0.0, 1e-3, operator_eigenvalues=np.append(values, 1.0005))
    assert judged.verdicts == ("trusted", "not converged")
    np.testing.assert_allclose(judged.gaps, [0.994, 0.0065])
