"""Functions of somebody else certified against worlds whose eigenfunctions are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lapwing as lw
from lapwing.errors import ArgumentError, DataError
from lapwing.training import certifying
from lapwing.training.certifying import MIXED, certify

WORLD = "rooms:2x3x4:1"
DIM = 6


@pytest.fixture(scope="module")
def truth() -> lw.LaplacianRepresentation:
    return lw.solve(WORLD, DIM)


@pytest.fixture(scope="module")
def operator() -> lw.Operator:
    return lw.operator(WORLD)


@pytest.fixture(scope="module")
def data() -> lw.Trajectories:
    return lw.collect(WORLD, 300_000, seed=1)


def rotation(angle: float) -> NDArray[np.float64]:
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def rough(observations: NDArray[Any]) -> NDArray[np.float64]:
    """Waves that have nothing to do with the rooms."""
    directions = np.random.default_rng(0).normal(size=(2, 4))
    return np.sin(5.0 * np.asarray(observations, dtype=np.float64) @ directions)


def test_exact_eigenvectors_are_trusted_with_their_eigenvalues(
    truth: lw.LaplacianRepresentation, operator: lw.Operator
) -> None:
    found = certify(truth, operator)
    assert found.all_trusted
    np.testing.assert_allclose(found.eigenvalues, truth.eigenvalues, atol=1e-9)
    np.testing.assert_allclose(found.model.eigenvalues, truth.eigenvalues, atol=1e-9)
    np.testing.assert_array_equal(found.components, np.arange(DIM))
    np.testing.assert_allclose(found.norms, 1.0)
    assert found.angles.max() < 1e-6
    assert found.residuals.max() < 1e-6
    assert (found.error_bars == 0).all()
    # Signs are those of every representation.
    np.testing.assert_allclose(found.model.transform(operator.observations), truth.transform(operator.observations))


def test_order_scale_and_sign_of_the_functions_do_not_matter(
    truth: lw.LaplacianRepresentation, operator: lw.Operator
) -> None:
    order, scales = [3, 1, 4], np.array([-7.0, 0.01, 1e4])
    found = certify(lambda x: truth.transform(x)[:, order] * scales, operator)
    assert found.components.tolist() == [2, 1, 3]
    np.testing.assert_allclose(found.eigenvalues, truth.eigenvalues[order], atol=1e-9)
    np.testing.assert_allclose(found.norms, np.abs(scales))
    assert set(found.verdicts) <= {"trusted", "degenerate"}


def test_a_rotated_pair_is_mixed_and_rayleigh_ritz_undoes_it(
    truth: lw.LaplacianRepresentation, operator: lw.Operator
) -> None:
    found = certify(lambda x: truth.transform(x)[:, 1:3] @ rotation(0.6), operator)
    assert found.verdicts == (MIXED, MIXED)
    np.testing.assert_allclose(found.angles, np.sin(0.6), rtol=1e-6)
    # The Rayleigh quotient of f(P), mapped back, is no plain mean; it lies between.
    assert (found.eigenvalues > truth.eigenvalues[1]).all()
    assert (found.eigenvalues < truth.eigenvalues[2]).all()
    assert not found.all_trusted
    np.testing.assert_allclose(found.model.eigenvalues, truth.eigenvalues[:3], atol=1e-9)
    assert set(found.model.certificate().verdicts) == {"trusted"}


def test_a_pair_turned_inside_its_eigenspace_is_not_mixed() -> None:
    # A square room has each eigenvalue of its axes twice.
    square = lw.solve("room:6x6", 3)
    found = certify(lambda x: square.transform(x)[:, 1:3] @ rotation(0.6), lw.operator("room:6x6"))
    assert found.verdicts == ("degenerate", "degenerate")
    assert found.angles.max() < 1e-6


def test_a_function_with_a_mean_is_mixed_with_the_constant(
    truth: lw.LaplacianRepresentation, operator: lw.Operator
) -> None:
    found = certify(lambda x: truth.transform(x)[:, [1]] + 0.5, operator)
    assert found.verdicts == (MIXED,)
    np.testing.assert_allclose(found.angles, 0.5 / np.sqrt(1.25))


def test_functions_that_are_no_eigenfunctions_have_not_converged(
    truth: lw.LaplacianRepresentation, operator: lw.Operator, data: lw.Trajectories
) -> None:
    for source in (operator, data):
        assert set(certify(rough, source).verdicts) == {"not converged"}
    both = certify(lambda x: np.concatenate([truth.transform(x)[:, 1:2], rough(x)[:, :1]], axis=1), operator)
    assert both.verdicts[0] == "trusted"
    assert both.verdicts[1] in ("not converged", MIXED)


def test_data_certify_what_is_known_exactly(truth: lw.LaplacianRepresentation, data: lw.Trajectories) -> None:
    found = certify(truth, data)
    assert "not converged" not in found.verdicts
    assert MIXED not in found.verdicts
    assert found.verdicts[:2] == ("trusted", "trusted")
    distance = np.abs(found.eigenvalues - truth.eigenvalues)[1:]
    assert (distance < 4.0 * found.error_bars[1:]).all()
    assert (found.error_bars[1:] > 0).all()


def test_data_find_a_rotated_pair(truth: lw.LaplacianRepresentation, data: lw.Trajectories) -> None:
    assert certify(lambda x: truth.transform(x)[:, 1:3] @ rotation(0.6), data).verdicts == (MIXED, MIXED)


def test_few_data_are_not_held_against_the_functions(truth: lw.LaplacianRepresentation) -> None:
    found = certify(truth, lw.collect(WORLD, 2_000, seed=2))
    assert "too few data" in found.verdicts
    assert "not converged" not in found.verdicts


def test_noise_in_counts_is_taken_off_the_residuals_on_average() -> None:
    # Exact eigenvectors have no residual: what noise adds to its square is what is taken off.
    truth = lw.solve("rooms:4x4x5:3", 5)
    ratios = []
    for seed in range(4):
        data = lw.collect("rooms:4x4x5:3", 100_000, seed=seed)
        given = certifying._Functions(truth, {})
        values_at = given.values_by_row(data.observations)
        lags = certifying.geometric_lags((0.9, 0.99))
        estimator, outputs_at = certifying._estimator(values_at, data, lags, 0)
        moments = estimator.moments(lambda rows, at=outputs_at: certifying.with_constant(at(rows)))
        unseen = certifying._unseen_squares(values_at, estimator, moments, data)
        residuals = certifying._as_given(moments, estimator.lags)[2]
        ratios.append(residuals[1:] ** 2 / np.diag(unseen)[2:])
    assert 0.6 < np.mean(ratios) < 1.6


def test_functions_of_unrepeated_observations_are_certified() -> None:
    truth = lw.solve("Box-2", 3)
    data = lw.collect("Box-2", 100_000, seed=0, episode_length=200)
    found = certify(truth, data)
    assert found.verdicts[0] == "trusted"
    assert "not converged" not in found.verdicts
    np.testing.assert_allclose(found.model.eigenvalues[1:], truth.eigenvalues[1:], rtol=0.1)
    waves = certify(np.sign, data)
    assert set(waves.verdicts) == {"not converged"}


def test_next_states_of_all_moves_have_no_noise(truth: lw.LaplacianRepresentation) -> None:
    found = certify(truth, lw.collect(WORLD, 20_000, seed=0, all_actions=True))
    np.testing.assert_allclose(found.eigenvalues, truth.eigenvalues, atol=1e-9)
    assert found.all_trusted
    assert (found.error_bars == 0).all()


def test_what_rotates_is_a_problem_of_long_lags() -> None:
    data = lw.collect("NoisyRotation", 20_000, seed=0)
    assert [one.name for one in certify(lambda x: x, data).model.problems()][:1] == ["directed dynamics"]
    found = certify(lambda x: x, data, discounts=(0.1,))
    np.testing.assert_allclose(found.eigenvalues, lw.solve("NoisyRotation", 3).eigenvalues[1:], rtol=0.2)


class WithTransform:
    """As estimators of scikit-learn and models of deeptime have it; the latter can be called, too."""

    def __init__(self, model: lw.LaplacianRepresentation) -> None:
        self.model = model

    def transform(self, observations: Any) -> Any:
        return self.model.transform(observations)[:, 1:]

    def __call__(self, observations: Any) -> Any:
        raise AssertionError("transform is what counts")


class WithEig:
    """As estimators of kooplearn have it: complex values that are real."""

    def __init__(self, model: lw.LaplacianRepresentation) -> None:
        self.model = model

    def eig(self, eval_left_on: Any = None, eval_right_on: Any = None) -> Any:
        return np.ones(DIM - 1), self.model.transform(eval_right_on)[:, 1:].astype(np.complex128)


@pytest.mark.parametrize("kind", [WithTransform, WithEig])
def test_objects_of_other_packages_are_taken(
    truth: lw.LaplacianRepresentation, operator: lw.Operator, kind: Any
) -> None:
    assert certify(kind(truth), operator).all_trusted


def test_one_function_may_give_one_number(truth: lw.LaplacianRepresentation, operator: lw.Operator) -> None:
    found = certify(lambda x: truth.transform(x)[:, 1], operator)
    assert found.verdicts == ("trusted",)


def test_several_keys_come_as_a_dictionary() -> None:
    walk = [[[0.0], [1.0], [2.0], [1.0], [0.0], [1.0]] * 10]
    data = lw.from_arrays({"a": walk, "b": walk})
    seen: list[Any] = []

    def function(observations: Any) -> Any:
        seen.append(sorted(observations))
        return observations["a"]

    certify(function, data)
    assert seen[0] == ["a", "b"]


def test_functions_are_called_with_few_rows_and_held_once(
    truth: lw.LaplacianRepresentation, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lw.collect(WORLD, 5_000, seed=0)
    monkeypatch.setattr(certifying, "CALLED_ROWS", 50)
    calls: list[int] = []

    def function(observations: Any) -> Any:
        calls.append(len(observations))
        return truth.transform(observations)[:, 1:3]

    held = certify(function, data)
    assert max(calls) <= 50
    assert sum(calls) == len(data.observations) + 1
    monkeypatch.setattr(certifying, "HELD_NUMBERS", 0)
    again = certify(function, data)
    np.testing.assert_allclose(again.eigenvalues, held.eigenvalues, rtol=1e-12)


def test_copies_of_a_function_are_one_component(truth: lw.LaplacianRepresentation, operator: lw.Operator) -> None:
    found = certify(lambda x: truth.transform(x)[:, [1, 1, 2]], operator)
    assert found.components.tolist() == [1, 1, 2]
    assert found.model.dim == 3
    assert found.all_trusted


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.zeros((len(x), 2)), "function 1 is zero"),
        (lambda x: np.column_stack([x[:, 0], np.full(len(x), np.nan)]), "function 2 gives NaN"),
        (lambda x: np.zeros((len(x) + 1, 2)), "shape"),
        (lambda x: np.zeros((len(x), 0)), "shape"),
        (lambda x: np.array(["a"] * len(x))[:, None], "shape"),
        (lambda x: x.astype(np.complex128) * 1j, "function 1, 2 of 2 is complex"),
    ],
)
def test_what_the_functions_give_is_checked(operator: lw.Operator, function: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        certify(function, operator)


@pytest.mark.parametrize(
    "arguments",
    [
        {"functions": None},
        {"functions": 3},
        {"functions": WithTransform},
        {"data": None},
        {"data": [[0.0]]},
        {"seed": -1},
        {"discounts": (2.0,)},
        {"discounts": ()},
    ],
)
def test_bad_arguments_are_refused(operator: lw.Operator, arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        certify(**({"functions": rough, "data": operator} | arguments))


def test_it_prints_both_tables(truth: lw.LaplacianRepresentation, operator: lw.Operator) -> None:
    text = str(certify(truth, operator)).splitlines()
    assert text[0] == "as given"
    assert "after Rayleigh-Ritz" in text
    assert sum(line.endswith("trusted") for line in text) == 2 * DIM


def test_functions_cannot_be_saved_and_nothing_is_written(
    truth: lw.LaplacianRepresentation, operator: lw.Operator, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError, match="cannot be saved"):
        certify(truth, operator).model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_models_of_deeptime_are_certified() -> None:
    decomposition = pytest.importorskip("deeptime.decomposition")
    train, held = (lw.collect("Box-2", 50_000, seed=seed, episode_length=200) for seed in (0, 1))
    pairs = [(episode[:-1], episode[1:]) for episode in map(train.episode, range(train.num_episodes))]
    before, after = (np.concatenate(part).astype(np.float64) for part in zip(*pairs, strict=True))
    tica = decomposition.TICA(dim=2, lagtime=1).fit_from_timeseries((before, after)).fetch_model()
    assert len(certify(tica, held).verdicts) == 2


def test_estimators_of_kooplearn_are_certified() -> None:
    kernels = pytest.importorskip("kooplearn.kernel")
    train, held = lw.collect("Box-2", 1_000, seed=0, episode_length=1_000), lw.collect("Box-2", 50_000, seed=1)
    estimator = kernels.KernelRidge(n_components=3, kernel="rbf", gamma=5.0).fit(train.episode(0).astype(np.float64))
    assert len(certify(estimator, held).verdicts) == 3
