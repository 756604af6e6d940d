"""Scores of whole representations, and the counting yardstick."""

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.data import collect
from lapwing.definitions import one_step, successor
from lapwing.encoders.encoder import Encoder
from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments.box import BoxWorld
from lapwing.errors import LapwingError, LapwingWarning
from lapwing.evaluation.scoring import counting_score, relative_errors, score
from lapwing.representation import LaplacianRepresentation
from lapwing.solving import solve


@pytest.fixture(scope="module")
def cross() -> LaplacianRepresentation:
    """GridMaze-11 has three-fold eigenvalues; eleven components cut one of them."""
    return solve("GridMaze-11", dim=11)


@pytest.fixture(scope="module")
def four_rooms() -> LaplacianRepresentation:
    return solve("FourRooms", dim=6)


def with_values(model: LaplacianRepresentation, values: NDArray[np.float64]) -> LaplacianRepresentation:
    """The same table with other components, as many as there are columns."""
    points, weights = model.encoder.support()  # type: ignore[attr-defined]
    count = values.shape[1]
    return LaplacianRepresentation(
        LookupEncoder(points, values, weights), model.mu[:count], min(model.dim, count), exact=model.exact
    )


def values_of(model: LaplacianRepresentation) -> NDArray[np.float64]:
    return model.encoder.arrays()["values"].copy()


@pytest.mark.parametrize("name", ["GridMaze-11", "GridRoom-1", "GridRoomSym-4", "Box-2"])
def test_a_truth_scores_one_against_itself(name: str) -> None:
    truth = solve(name, dim=9)
    found = score(truth, truth)
    assert found.cosine == pytest.approx(1.0, abs=1e-9)
    assert found.subspace_cosine == pytest.approx(1.0, abs=1e-9)
    assert found.mean_eigenvalue_error == 0.0
    assert np.isnan(found.eigenvalue_errors[0])
    assert found.definition == successor(0.9)


def test_signs_and_rotations_inside_a_cluster_do_not_matter(cross: LaplacianRepresentation) -> None:
    rng = np.random.default_rng(0)
    values = values_of(cross)
    for cluster in score(cross, cross).clusters:
        stop = 12 if cluster[-1] == 10 else cluster[-1] + 1
        columns = slice(cluster[0], stop)
        width = stop - cluster[0]
        values[:, columns] = values[:, columns] @ np.linalg.qr(rng.standard_normal((width, width)))[0]
    found = score(with_values(cross, values), cross)
    assert found.cosine == pytest.approx(1.0, abs=1e-12)
    assert found.subspace_cosine == pytest.approx(1.0, abs=1e-12)


def test_a_cluster_that_the_dimension_cuts_is_compared_whole(cross: LaplacianRepresentation) -> None:
    values = values_of(cross)
    # The member of the triple that the answer leaves out is as good as those that it keeps.
    values[:, [9, 11]] = values[:, [11, 9]]
    found = score(with_values(cross, values), cross)
    assert found.cosine == pytest.approx(1.0, abs=1e-12)
    assert found.subspace_cosine == pytest.approx(1.0, abs=1e-12)
    assert found.clusters[-1] == [9, 10]
    assert sum(len(cluster) for cluster in found.clusters) == 11


def test_a_component_learned_twice_costs_one_of_eleven(cross: LaplacianRepresentation) -> None:
    values = values_of(cross)
    values[:, 2] = values[:, 1]
    found = score(with_values(cross, values), cross)
    assert found.cosine == pytest.approx(1.0, abs=1e-12)
    assert found.subspace_cosine == pytest.approx(10.0 / 11.0, abs=1e-7)


def test_components_in_the_wrong_order_are_wrong(four_rooms: LaplacianRepresentation) -> None:
    values = values_of(four_rooms)
    values[:, [1, 3]] = values[:, [3, 1]]
    found = score(with_values(four_rooms, values), four_rooms)
    np.testing.assert_allclose(found.cosines, [1, 0, 1, 0, 1, 1], atol=1e-9)
    assert found.cosine == pytest.approx(4.0 / 6.0, abs=1e-9)


def test_clusters_are_as_wide_as_data_allow_unless_both_are_exact() -> None:
    truth = solve("GridRoomSym-4", dim=8)
    assert score(truth, truth).tolerance == 1e-6
    model = replace(truth, exact=False)
    by_data = score(model, truth)
    assert by_data.tolerance == 1e-2
    assert by_data.clusters == [[0], [1, 2], [3], [4, 5, 6, 7]]
    assert score(truth, truth).clusters == [[0], [1, 2], [3], [4], [5, 6], [7]]
    assert score(model, truth, tolerance=1e-6).clusters == score(truth, truth).clusters


def test_near_repeats_mixed_up_cost_the_papers_score_and_not_ours() -> None:
    truth = solve("GridRoomSym-4", dim=8)
    values = values_of(truth)
    values[:, 4:8] = values[:, 4:8] @ np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    found = score(replace(with_values(truth, values), exact=False), truth)
    assert found.subspace_cosine == pytest.approx(1.0, abs=1e-12)
    assert found.cosine < 0.95


def test_only_components_that_both_have_are_compared(cross: LaplacianRepresentation) -> None:
    for short in (1, 2, 5):
        for model, truth in ((solve("GridMaze-11", short), cross), (cross, solve("GridMaze-11", short))):
            found = score(model, truth)
            assert found.cosines.shape == found.subspace_cosines.shape == found.eigenvalue_errors.shape == (short,)
            assert found.cosine == pytest.approx(1.0, abs=1e-9)
            assert found.subspace_cosine == pytest.approx(1.0, abs=1e-9)
            assert max(found.clusters[-1]) == short - 1


def test_states_that_a_table_never_saw_cost(four_rooms: LaplacianRepresentation) -> None:
    encoder = four_rooms.encoder
    assert isinstance(encoder, LookupEncoder)
    half = len(encoder.values) // 2
    partial = LookupEncoder(encoder.observations[:half], encoder.values[:half], encoder.weights[:half])
    found = score(replace(four_rooms, encoder=partial), four_rooms)
    # A constant known on half of the states has the cosine of its share.
    assert found.cosines[0] == pytest.approx(np.sqrt(half / len(encoder.values)), abs=1e-9)
    assert found.cosine < 0.95


def test_observations_of_ones_own_may_be_compared_on(four_rooms: LaplacianRepresentation) -> None:
    points = four_rooms.encoder.support()[0]  # type: ignore[attr-defined]
    assert score(four_rooms, four_rooms, observations=points[:40]).cosine == pytest.approx(1.0, abs=1e-9)
    weights = np.random.default_rng(0).random(len(points))
    found = score(four_rooms, four_rooms, observations=points, weights=weights)
    assert found.cosine == pytest.approx(1.0, abs=1e-9)
    assert found.subspace_cosine == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("bad", [np.ones(3), -np.ones(104), np.zeros(104), np.full(104, np.nan), np.full(104, np.inf)])
def test_weights_that_are_none_are_refused(bad: NDArray[np.float64], four_rooms: LaplacianRepresentation) -> None:
    points = four_rooms.encoder.support()[0]  # type: ignore[attr-defined]
    assert len(points) == 104
    with pytest.raises(LapwingError, match="weights must be 104 numbers"):
        score(four_rooms, four_rooms, observations=points, weights=bad)


@pytest.mark.parametrize("where", ["values", "eigenvalues"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_model_that_has_diverged_is_refused(where: str, bad: float, four_rooms: LaplacianRepresentation) -> None:
    if where == "values":
        values = values_of(four_rooms)
        values[3, 2] = bad
        model = with_values(four_rooms, values)
    else:
        mu = four_rooms.mu.copy()
        mu[2] = bad
        model = replace(four_rooms, mu=mu)
    with pytest.raises(LapwingError, match="has diverged"):
        score(model, four_rooms)


def test_a_truth_of_another_kind_of_observation_is_refused(four_rooms: LaplacianRepresentation) -> None:
    with pytest.raises(LapwingError, match="observations must have shape"):
        score(solve("FourRooms", 6, observation="pixels"), four_rooms)


def test_a_truth_without_states_of_its_own_needs_observations(four_rooms: LaplacianRepresentation) -> None:
    class Network:
        kind = "network"
        dim = 6

        def encode(self, observations: Any) -> NDArray[np.float64]:
            return four_rooms.transform(observations)

    encoder: Encoder = Network()  # type: ignore[assignment]
    network = LaplacianRepresentation(encoder, four_rooms.mu[:6], 6)
    with pytest.raises(LapwingError, match="give observations"):
        score(four_rooms, network)
    points = four_rooms.encoder.support()[0]  # type: ignore[attr-defined]
    assert score(four_rooms, network, observations=points).cosine == pytest.approx(1.0, abs=1e-9)
    assert score(network, four_rooms).cosine == pytest.approx(1.0, abs=1e-9)


def test_a_box_is_compared_over_its_whole_volume() -> None:
    oblong, square = solve("Box-2", 4), solve(BoxWorld((1.0, 1.0)), 4)
    # Cosines of scaled coordinates are the same in both boxes; the square one has the middle two as a pair.
    found = score(oblong, square)
    assert found.clusters == [[0], [1, 2], [3]]
    assert found.cosine == pytest.approx(1.0, abs=1e-5)
    assert found.subspace_cosine == pytest.approx(1.0, abs=1e-5)
    assert found.mean_eigenvalue_error > 0.1


def test_relative_errors_are_undefined_where_the_truth_is_zero() -> None:
    found = relative_errors([0.3, 0.9, -1.0, 2.0], [0.0, 1.0, 1.0, 1e-12])
    np.testing.assert_allclose(found, [np.nan, 0.1, 2.0, np.nan])


def test_eigenvalues_are_compared_in_the_definition_asked_for(four_rooms: LaplacianRepresentation) -> None:
    model = replace(four_rooms, mu=1.0 - 1.1 * (1.0 - four_rooms.mu))
    plain = score(model, four_rooms, definition="one_step")
    np.testing.assert_allclose(plain.eigenvalue_errors[1:], 0.1, rtol=0, atol=1e-10)
    assert plain.mean_eigenvalue_error == pytest.approx(0.1)
    assert plain.definition == one_step()
    assert score(model, four_rooms).mean_eigenvalue_error < 0.1
    assert "10.00% in one_step" in str(plain)


def test_a_score_is_plain_data_for_json(four_rooms: LaplacianRepresentation) -> None:
    found = score(four_rooms, four_rooms)
    content = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert content["eigenvalue_errors"][0] is None
    assert content["definition"] == "successor(0.9)"
    assert content["clusters"] == found.clusters
    assert content["cosine"] == found.cosine


def test_only_zero_eigenvalues_leave_no_error_to_average() -> None:
    constant = solve("GridMaze-7", 1)
    assert score(constant, constant).mean_eigenvalue_error == 0.0


def test_counting_a_million_steps_of_sixteen_rooms_comes_close_to_the_truth() -> None:
    data, truth = collect("Rooms-16", steps=1_000_000, seed=0), solve("Rooms-16", dim=11)
    found = counting_score(data, truth)
    assert found.cosine > 0.99
    assert found.subspace_cosine > 0.99
    assert found.mean_eigenvalue_error < 0.03
    assert found.tolerance == 1e-2
    fewer = counting_score(collect("Rooms-16", steps=20_000, seed=0), truth)
    assert fewer.cosine < found.cosine
    assert counting_score(data, truth, definition="one_step").definition == one_step()


def test_counting_suffers_from_states_it_never_saw() -> None:
    truth = solve("Rooms-16", dim=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LapwingWarning)
        found = counting_score(collect("Rooms-16", steps=300, seed=0), truth)
    assert 0.0 < found.cosine < 0.9
