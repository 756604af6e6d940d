"""Laplacian definitions against dense linear algebra, against the sampler they describe, and against the paper."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from lapwing.checks import shown
from lapwing.definitions import MAX_HORIZON, Definition, geometric, one_step, parse_definition, successor, truncated
from lapwing.errors import ArgumentError, UnknownNameError

PAPER_TABLE = Path(__file__).resolve().parents[2] / "shared" / "paper" / "eigenvalues.csv"

discounts = st.floats(0.01, 0.99)
horizons = st.integers(1, 200)
definitions = st.one_of(
    st.just(one_step()),
    discounts.map(successor),
    discounts.map(geometric),
    st.builds(truncated, discounts, horizons),
)


@pytest.fixture(scope="module")
def chain() -> tuple[np.ndarray, np.ndarray]:
    """A reversible transition matrix and its eigenvalues, largest first, negative ones among them."""
    rng = np.random.default_rng(5)
    conductances = rng.random((6, 6)) ** 3
    conductances = conductances + conductances.T
    total = conductances.sum(axis=1)
    symmetric = conductances / np.sqrt(np.outer(total, total))
    mu = np.sort(np.linalg.eigvalsh(symmetric))[::-1]
    assert mu[-1] < -0.05
    return conductances / total[:, None], mu


def eigenvalues_of(laplacian: np.ndarray) -> np.ndarray:
    values = np.linalg.eigvals(laplacian)
    assert np.abs(values.imag).max() < 1e-9
    return np.sort(values.real)


def renormalised_lags(discount: float, horizon: int) -> np.ndarray:
    """Probability of each lag by going through every start and every lag that its episode still allows."""
    weights = np.zeros(horizon + 1)
    for start in range(horizon):
        allowed = [discount ** (lag - 1) for lag in range(1, horizon - start + 1)]
        for lag, weight in enumerate(allowed, start=1):
            weights[lag] += weight / sum(allowed) / horizon
    return weights[1:]


def test_one_step_is_the_identity_minus_the_matrix(chain: tuple[np.ndarray, np.ndarray]) -> None:
    matrix, mu = chain
    np.testing.assert_allclose(one_step().from_mu(mu), eigenvalues_of(np.eye(6) - matrix), atol=1e-12)


@pytest.mark.parametrize("discount", [0.1, 0.5, 0.9, 0.99])
def test_successor_is_the_scaled_inverse_of_the_paper(chain: tuple[np.ndarray, np.ndarray], discount: float) -> None:
    matrix, mu = chain
    laplacian = np.eye(6) - (1.0 - discount) * np.linalg.inv(np.eye(6) - discount * matrix)
    np.testing.assert_allclose(successor(discount).from_mu(mu), eigenvalues_of(laplacian), atol=1e-11)


@pytest.mark.parametrize("discount", [0.1, 0.5, 0.9, 0.99])
def test_geometric_sums_powers_from_the_first_on(chain: tuple[np.ndarray, np.ndarray], discount: float) -> None:
    matrix, mu = chain
    mean, power = np.zeros((6, 6)), np.eye(6)
    for lag in range(1, 4000):
        power = power @ matrix
        mean += (1.0 - discount) * discount ** (lag - 1) * power
    np.testing.assert_allclose(geometric(discount).from_mu(mu), eigenvalues_of(np.eye(6) - mean), atol=1e-11)


@pytest.mark.parametrize("horizon", [1, 2, 7, 50])
@pytest.mark.parametrize("discount", [0.3, 0.9, 0.99])
def test_truncated_averages_renormalised_lags_over_all_starts(
    chain: tuple[np.ndarray, np.ndarray], discount: float, horizon: int
) -> None:
    matrix, mu = chain
    weights = renormalised_lags(discount, horizon)
    mean = sum(weight * np.linalg.matrix_power(matrix, lag) for lag, weight in enumerate(weights, start=1))
    np.testing.assert_allclose(truncated(discount, horizon).lag_weights(), weights, atol=1e-13)
    np.testing.assert_allclose(truncated(discount, horizon).from_mu(mu), eigenvalues_of(np.eye(6) - mean), atol=1e-11)


def test_truncated_is_what_a_sampler_inside_episodes_draws() -> None:
    rng = np.random.default_rng(0)
    discount, horizon, draws = 0.8, 12, 200_000
    left = horizon - rng.integers(horizon, size=draws)
    lags = rng.geometric(1.0 - discount, size=draws)
    while (over := lags > left).any():
        lags[over] = rng.geometric(1.0 - discount, size=int(over.sum()))
    observed = np.bincount(lags, minlength=horizon + 1)[1:]
    expected = draws * truncated(discount, horizon).lag_weights()
    assert chisquare(observed, expected).pvalue > 1e-3


def test_truncated_of_one_step_is_one_step_and_of_many_is_geometric() -> None:
    mu = np.linspace(-1.0, 1.0, 21)
    np.testing.assert_allclose(truncated(0.7, 1).from_mu(mu), one_step().from_mu(mu), atol=1e-15)
    np.testing.assert_allclose(truncated(0.7, 100_000).from_mu(mu), geometric(0.7).from_mu(mu), atol=1e-4)


@given(definition=definitions)
def test_a_constant_has_eigenvalue_zero_and_slower_components_smaller_ones(definition: Definition) -> None:
    values = definition.from_mu(np.linspace(1.0, -1.0, 101))
    assert abs(values[0]) < 1e-12
    assert (np.diff(values) > 0).all()


@given(definition=definitions, mu=st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=5))
def test_to_mu_inverts_from_mu(definition: Definition, mu: list[float]) -> None:
    np.testing.assert_allclose(definition.to_mu(definition.from_mu(mu)), mu, atol=1e-6)


@pytest.mark.parametrize("definition", [one_step(), successor(0.9), geometric(0.9), truncated(0.9, 50)], ids=str)
def test_rounding_below_zero_survives_the_way_there_and_back(definition: Definition) -> None:
    mu = definition.to_mu(np.array([-1e-9, 0.0, 1e-9]))
    assert (np.diff(mu) < 0).all()
    np.testing.assert_allclose(definition.from_mu(mu), [-1e-9, 0.0, 1e-9], atol=1e-14)


@pytest.mark.parametrize("definition", [one_step(), successor(0.9), geometric(0.9), truncated(0.9, 50)], ids=str)
def test_nan_stays_nan_and_shapes_are_kept(definition: Definition) -> None:
    mu = definition.to_mu(np.array([[0.5, np.nan]]))
    assert mu.shape == (1, 2)
    assert np.isnan(mu).tolist() == [[False, True]]
    assert definition.from_mu(0.5).shape == ()


@given(
    definition=definitions
    | st.builds(truncated, st.floats(0, 1, exclude_min=True, exclude_max=True), st.just(MAX_HORIZON))
)
def test_the_text_of_a_definition_reads_back_exactly(definition: Definition) -> None:
    assert parse_definition(str(definition)) == definition


def test_definitions_read_as_people_write_them() -> None:
    assert str(successor(0.9)) == "successor(0.9)"
    assert str(truncated(0.9, 50)) == "truncated(0.9, 50)"
    assert str(one_step()) == "one_step"
    assert parse_definition("  truncated ( .9 ,50 ) ") == truncated(0.9, 50)
    assert parse_definition("one_step()") == one_step()


@pytest.mark.parametrize("text", ["sucessor(0.9)", "", "successor(0.9", "successor" + " " * 1_000_000 + "x"], ids=shown)
def test_text_that_names_no_definition_is_refused_at_once(text: str) -> None:
    # Two greedy runs of blanks side by side took time that grew with the square of the text.
    with pytest.raises(UnknownNameError):
        parse_definition(text)


@pytest.mark.parametrize(
    "text",
    [
        "successor",
        "successor(0.9, 50)",
        "truncated(0.9)",
        "one_step(0.9)",
        "successor(high)",
        "successor(1)",
        "successor(nan)",
        "geometric(0)",
        "truncated(0.9, 2.5)",
        "truncated(0.9, 0)",
        "truncated(0.9, inf)",
        "truncated(0.9, nan)",
        "truncated(0.9, 2e6)",
        None,
        3,
        b"one_step",
    ],
)
def test_wrong_numbers_in_a_definition_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        parse_definition(text)


@pytest.mark.parametrize(
    ("definition", "value"), [(successor(0.9), 1.0), (geometric(0.9), 1.0 / 0.9), (truncated(0.9, 50), 1.2)], ids=str
)
def test_values_that_no_eigenvalue_can_have_are_refused(definition: Definition, value: float) -> None:
    with pytest.raises(ArgumentError):
        definition.to_mu([0.1, value])


def test_only_truncated_lags_are_finitely_many() -> None:
    with pytest.raises(ArgumentError):
        successor(0.9).lag_weights()


@pytest.mark.skipif(not PAPER_TABLE.exists(), reason="the paper's tables are not beside this checkout")
@pytest.mark.parametrize(
    "world", ["GridRoom-16", "GridRoom-32", "GridMaze-17", "GridMaze-19", "GridMaze-26", "GridRoom-1"]
)
def test_truncated_explains_the_eigenvalues_that_the_paper_printed_for_allo(world: str) -> None:
    with PAPER_TABLE.open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["environment"] == world]
    true = np.array([float(row["true"]) for row in rows])
    printed = np.array([float(row["allo_mean"]) for row in rows])
    large = true > 0.005
    assert large.sum() >= 6
    expected = truncated(0.9, 50).from_mu(successor(0.9).to_mu(true))
    # A constant of 0.0005 is left over, as episodes glued at resets would leave.
    assert np.mean(np.abs(printed - 0.0005 - expected)[large] / expected[large]) < 0.015
    assert np.mean(np.abs(printed - true)[large] / true[large]) > 0.10


@pytest.mark.parametrize("horizon", ["a", None, [1], True, 10**400, 10**5000], ids=shown)
def test_a_horizon_that_is_not_a_number_of_transitions_is_refused(horizon: object) -> None:
    with pytest.raises(ArgumentError):
        truncated(0.9, horizon)  # type: ignore[arg-type]


def test_the_tail_that_is_left_out_of_a_long_horizon_does_not_show() -> None:
    mu = np.array([-1.0, -0.3, 0.0, 0.5, 0.99, 1.0])
    long = truncated(0.9, 5000)
    whole = 1.0 - np.polynomial.polynomial.polyval(mu, np.concatenate([[0.0], long.lag_weights()]))
    np.testing.assert_array_equal(long.from_mu(mu), whole)


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [("foo", {}), ("successor", {}), ("one_step", {"discount": 0.5}), ("successor", {"discount": 2})],
)
def test_a_definition_made_by_hand_is_checked_too(kind: str, numbers: dict[str, float]) -> None:
    with pytest.raises(ArgumentError):
        Definition(kind, **numbers)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", ["a", [1, [2]], [1j], np.array(["0.5"])])
def test_eigenvalues_that_are_no_real_numbers_are_refused(values: object) -> None:
    for definition in (one_step(), successor(0.5), truncated(0.5, 3)):
        for go in (definition.from_mu, definition.to_mu):
            with pytest.raises(ArgumentError):
                go(values)  # type: ignore[arg-type]
