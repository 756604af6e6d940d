"""What the page says is what the files say."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import lapwing as lw
from lapwing.applications import eigenoptions
from lapwing.environments import World
from lapwing.environments.registry import WORLDS
from lapwing.errors import DataError, LapwingError, LapwingWarning
from lapwing.report.charts import curve_charts
from lapwing.report.content import RunContent, content_of, dual_eigenvalues, rotated_to
from lapwing.report.run_folder import write_run
from lapwing.report.stored_run import StoredRun, read_run, read_runs
from lapwing.storage.schemas import DataRecord, Provenance, ScoresRecord

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def content(learned: Path) -> RunContent:
    return content_of(read_run(learned))


def scores_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "scores.json").read_text())
    return found


def test_eigenvalues_and_verdicts_are_those_of_the_spectrum_file(content: RunContent, learned: Path) -> None:
    with (learned / "spectrum.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    for row, component in zip(rows, content.components, strict=True):
        assert component.eigenvalue == float(row["one_step"])
        assert component.error == pytest.approx(2 * float(row["+- one_step"]))
        assert (component.residual, component.verdict) == (float(row["residual"]), row["verdict"])


def test_similarities_and_tiles_are_those_of_the_scores_file(content: RunContent, learned: Path) -> None:
    scores = scores_of(learned)
    assert [row.similarity for row in content.components] == scores["learned"]["subspace_cosines"]
    assert [row.baseline for row in content.components] == scores["baseline_eigenvalues"]["values"]
    tiles = {tile.name: tile for tile in content.tiles}
    for name in ("subspace_cosine", "cosine", "mean_eigenvalue_error"):
        assert tiles[name].value == scores["learned"][name]
    assert f"{scores['baseline']['subspace_cosine']:.4f}" in tiles["subspace_cosine"].hint


def test_without_a_scores_file_the_score_is_measured(learned: Path, tmp_path: Path) -> None:
    shutil.copytree(learned, tmp_path / "run")
    (tmp_path / "run" / "scores.json").unlink()
    shutil.rmtree(tmp_path / "run" / "ground_truth")
    found = content_of(read_run(tmp_path / "run"))
    for name in ("cosine", "subspace_cosine", "subspace_cosines"):
        assert getattr(found.score, name) == pytest.approx(scores_of(learned)["learned"][name])
    assert all(row.baseline is None for row in found.components)


def test_a_ground_truth_that_was_stored_is_not_solved_again(
    content: RunContent, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the ground truth is solved twice")

    monkeypatch.setattr("lapwing.report.content.solve", refuse)
    monkeypatch.setattr("lapwing.report.content.score", refuse)
    assert content_of(read_run(learned)).arrays == content.arrays


def test_exact_eigenvalues_are_solved_from_the_world_in_the_file(content: RunContent) -> None:
    truth = lw.solve("GridRoomSym-4", 6)
    np.testing.assert_allclose([row.exact for row in content.components], truth.eigenvalues, atol=1e-12)  # type: ignore[arg-type]


def test_values_are_those_of_the_model_to_seven_digits(content: RunContent, learned: Path) -> None:
    world = lw.make_world("GridRoomSym-4")
    assert isinstance(world, lw.GridWorld)
    values = lw.load(learned).transform(world.table())
    np.testing.assert_allclose(np.array(content.arrays["values"]).T, values, rtol=1e-6, atol=1e-12)
    rows, columns = np.divmod(content.arrays["cells"], content.arrays["columns"])
    assert world.layout.free[rows, columns].all()


def option_successors(world: lw.GridWorld, model: lw.LaplacianRepresentation) -> list[list[list[int]]]:
    """Where each option leads, by component and sign; a state itself where it ends."""
    own = np.arange(world.num_states)
    found = [
        np.where(one.actions < 0, own, world.successors[own, one.actions]).tolist()
        for one in eigenoptions(model, world)
    ]
    return [found[i : i + 2] for i in range(0, len(found), 2)]


@pytest.mark.filterwarnings("ignore::lapwing.errors.UntrustedWarning")
def test_psi_and_options_are_those_of_the_applications(solved: Path, content: RunContent, learned: Path) -> None:
    world = lw.make_world("GridRoomSym-4")
    assert isinstance(world, lw.GridWorld)
    for folder, found in ((solved, content_of(read_run(solved))), (learned, content)):
        model = lw.load(folder)
        psi = model.embedding(world.table())
        np.testing.assert_allclose(np.array(found.arrays["psi"]).T, psi, rtol=1e-6, atol=1e-9)
        assert found.arrays["options"]["values"] == option_successors(world, model)
        assert found.arrays["moves"] == [sorted(set(row)) for row in world.successors.tolist()]
    exact = content.arrays["options"]["exact"]
    assert (len(exact), len(exact[0]), len(exact[0][0])) == (5, 2, world.num_states)


def test_moves_are_those_of_the_world_where_ways_are_one_way(tmp_path: Path) -> None:
    write_run(lw.solve("OneWayRooms", 3), tmp_path / "run")
    arrays = content_of(read_run(tmp_path / "run")).arrays
    matrix = lw.operator("OneWayRooms").matrix
    moves = np.zeros(matrix.shape, dtype=bool)
    for state, following in enumerate(arrays["moves"]):
        moves[state, following] = True
    assert (moves != moves.T).any()
    world = lw.make_world("OneWayRooms")
    assert (moves == (world.transition_matrix().toarray() > 0)).all()  # type: ignore[union-attr]


def test_without_the_next_states_of_actions_an_option_goes_to_the_highest_neighbour(box: Path) -> None:
    arrays = content_of(read_run(box)).arrays
    values, nexts = np.array(arrays["values"][1]), np.array(arrays["options"]["values"][0][0])
    rows, columns = np.divmod(arrays["cells"], 40)
    image, chosen = np.full((42, 42), -np.inf), np.empty((40, 40))
    image[rows + 1, columns + 1], chosen[rows, columns] = values, values[nexts]
    ways = ((0, 0), (-1, 0), (0, 1), (1, 0), (0, -1))
    beside = [image[1 + down : 41 + down, 1 + right : 41 + right] for down, right in ways]
    np.testing.assert_array_equal(chosen, np.max(beside, axis=0))
    assert (nexts == np.arange(1600)).any()


def test_no_option_leads_to_a_state_that_was_never_seen(tmp_path: Path) -> None:
    data = lw.collect("FourRooms", steps=300, episode_length=300, seed=0)
    write_run(lw.solve(data, 3), tmp_path / "run", data=data)
    arrays = content_of(read_run(tmp_path / "run")).arrays
    unseen = np.array([value is None for value in arrays["values"][1]])
    assert 0 < unseen.sum() < len(unseen)
    for option in arrays["options"]["values"]:
        for nexts in map(np.array, option):
            assert (nexts[unseen] == -1).all()
            assert not unseen[nexts[~unseen]].any()


def test_a_world_in_parts_or_one_component_has_no_psi(tmp_path: Path) -> None:
    write_run(lw.solve("GridRoom-1", 1), tmp_path / "one")
    assert content_of(read_run(tmp_path / "one")).arrays["psi"] == []
    assert content_of(read_run(tmp_path / "one")).arrays["options"]["values"] == []
    with pytest.warns(LapwingWarning):
        model = lw.solve(lw.Layout.from_text("#####\n#.#.#\n#####", "parts"), 2)
    write_run(model, tmp_path / "parts")
    found = content_of(read_run(tmp_path / "parts")).arrays
    assert found["psi"] == []
    assert found["ranks"]["scaled"] == [None, None]


def test_exact_pictures_are_turned_to_the_learned_ones() -> None:
    rng = np.random.default_rng(0)
    exact = np.linalg.qr(rng.normal(size=(40, 4)))[0]
    angle = 0.7
    turn = np.array([[np.cos(angle), np.sin(angle)], [np.sin(angle), -np.cos(angle)]])
    learned = np.column_stack([-exact[:, 0], exact[:, 1:3] @ turn, exact[:, 3]])
    clusters = [range(0, 1), range(1, 3), range(3, 4)]
    np.testing.assert_allclose(rotated_to(learned, exact, clusters), learned, atol=1e-12)


def test_a_cluster_cut_by_the_number_of_components_is_turned_whole() -> None:
    exact = np.linalg.qr(np.random.default_rng(1).normal(size=(30, 3)))[0]
    learned = np.column_stack([exact[:, 0], (exact[:, 1] + exact[:, 2]) / np.sqrt(2)])
    rotated = rotated_to(learned, exact, [range(0, 1), range(1, 3)])
    np.testing.assert_allclose(rotated, learned, atol=1e-12)


def test_the_dual_estimate_is_mapped_back_to_the_shown_definition(learned: Path) -> None:
    run = read_run(learned)
    found = dual_eigenvalues(run)
    assert found is not None
    discounts = run.model.metadata["config"]["discounts"]
    back = np.mean([found / (1 - g + g * found) for g in discounts], axis=0)
    np.testing.assert_allclose(back, run.model.metadata["eigenvalue_estimates"]["dual"][: run.model.dim], rtol=1e-6)


def test_the_dual_estimate_of_sampled_pairs_needs_the_episode_lengths(tmp_path: Path) -> None:
    data = lw.collect("GridMaze-7", steps=1000, seed=0)
    model = lw.learn(data, dim=2, preset="paper", steps=20, log_every=20, batch_size=64, hidden=(8,))
    write_run(model, tmp_path / "with", data=data)
    write_run(model, tmp_path / "without")
    assert dual_eigenvalues(read_run(tmp_path / "with")) is not None
    with pytest.raises(DataError):
        dual_eigenvalues(read_run(tmp_path / "without"))
    assert "left out" in content_of(read_run(tmp_path / "without")).notes["spectrum"][0]


def test_a_box_is_evaluated_on_a_raster(box: Path) -> None:
    found = content_of(read_run(box))
    world = lw.make_world("Box-2")
    assert isinstance(world, lw.BoxWorld)
    assert (found.arrays["rows"], found.arrays["columns"]) == (40, 40)
    assert found.arrays["ratio"] == pytest.approx(0.8)
    expected = lw.solve("Box-2", 5).transform(world.field_points(40))
    np.testing.assert_allclose(np.array(found.arrays["values"]).T, expected, rtol=1e-6, atol=1e-9)
    assert found.arrays["reach"] == tuple(40 * world.max_step / side for side in world.sides)
    assert found.arrays["exact"] is None


def test_a_run_without_a_world_has_a_table_but_no_picture(foreign: Path, matrix: Path) -> None:
    for folder, count in ((foreign, None), (matrix, 5)):
        found = content_of(read_run(folder))
        assert found.has_points
        assert not found.has_picture
        assert not found.score
        assert count in (None, found.arrays["count"])


def test_a_run_with_nothing_to_look_at_says_so(foreign: Path, tmp_path: Path) -> None:
    shutil.copytree(foreign, tmp_path / "run")
    (tmp_path / "run" / "observations.npy").unlink()
    assert content_of(read_run(tmp_path / "run")).has_points  # of the episodes
    shutil.rmtree(tmp_path / "run" / "episodes")
    found = content_of(read_run(tmp_path / "run"))
    assert not found.has_points
    assert found.cards is None
    assert not found.episodes
    assert "keeps no observations" in found.notes["eigenvectors"][0]
    assert found.components
    assert found.curves


def test_states_that_a_counted_table_never_saw_are_left_blank(tmp_path: Path) -> None:
    data = lw.collect("GridRoom-1", steps=200, episode_length=200, seed=0)
    write_run(lw.solve(data, 3), tmp_path / "run", data=data)
    found = content_of(read_run(tmp_path / "run"))
    values = found.arrays["values"][1]
    blank = sum(value is None for value in values)
    assert blank == sum(visits == 0 for visits in found.arrays["visits"]) > 0
    assert found.run.method == "counted"
    assert found.arrays["exact"] is not None


def test_labels_of_several_runs_tell_them_apart(solved: Path, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        shutil.copytree(solved, tmp_path / parent / "run")
    labels = [run.label for run in read_runs([tmp_path / "a" / "run", tmp_path / "b" / "run"])]
    assert labels == ["a/run", "b/run"]
    assert len({run.label for run in read_runs([solved, solved])}) == 2


@pytest.mark.parametrize("name", ["audit.json", "scores.json", "provenance.json", "metrics.csv"])
def test_a_damaged_file_is_named(learned: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(learned, tmp_path / "run")
    (tmp_path / "run" / name).write_text("{not json" if name.endswith("json") else "step,loss\n1,two\n")
    if name == "metrics.csv":
        manifest = json.loads((tmp_path / "run" / "model.json").read_text())
        del manifest["metadata"]["history"]
        (tmp_path / "run" / "model.json").write_text(json.dumps(manifest))
    with pytest.raises(LapwingError, match=name):
        read_run(tmp_path / "run")


@pytest.mark.parametrize("name", ["audit.json", "scores.json"])
def test_a_record_that_lacks_a_field_is_named(learned: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(learned, tmp_path / "run")
    (tmp_path / "run" / name).write_text('{"learned": {"cosine": 1.0}}')
    with pytest.raises(LapwingError, match=name):
        content_of(read_run(tmp_path / "run"))


def test_no_run_and_no_folder_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(LapwingError, match="at least one run"):
        read_runs([])
    with pytest.raises(LapwingError, match=r"model\.json"):
        read_run(tmp_path)


def test_definitions_go_with_eigenvalues(box: Path) -> None:
    found = content_of(read_run(box))
    exact = lw.solve("Box-2", 5).eigenvalues_in("successor(0.9)")
    np.testing.assert_allclose([row.eigenvalue for row in found.components], exact)


def test_curves_show_what_the_history_has_columns_for(learned: Path) -> None:
    run = read_run(learned)
    figures = curve_charts([run])
    assert set(figures) == {"similarity", "angle", "loss", "constraints", "duals"}
    assert figures["similarity"]["data"][0]["y"] == [row["cosine"] for row in run.history]
    assert [trace["name"] for trace in figures["loss"]["data"]] == ["loss", "graph term", "dual term", "penalty"]
    others = [{name: value for name, value in row.items() if not name.startswith("eigenvalue_")} for row in run.history]
    assert "duals" not in curve_charts([replace(run, history=others)])
    history = [{**row, "eigenvalue_2": 0.2, "eigenvalue_1": 0.1} for row in others]
    duals = curve_charts([replace(run, history=history)])["duals"]
    assert [trace["name"] for trace in duals["data"]] == ["dual 1", "dual 2"]
    bare = curve_charts([replace(run, history=[{"step": 1.0, "loss": float("nan")}])])
    assert bare == {}


class Ring(World):
    """A world from outside the package: states on a circle, drawn as one row of cells with a wall at either end."""

    name = "ring-from-outside"
    observation_shape = (2,)
    actions = 2

    def __init__(self, picture: bool) -> None:
        self.picture = picture

    def describe(self) -> dict[str, Any]:
        return {"kind": "ring", "name": self.name, "picture": self.picture}

    def reset(self, count: int, rng: np.random.Generator) -> Any:
        return rng.integers(12, size=count)

    def step(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        actions = rng.integers(2, size=len(states)) if actions is None else actions
        return (states + 2 * actions - 1) % 12, actions

    def observe(self, states: Any) -> Any:
        angles = np.asarray(states) * np.pi / 6
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)

    def summary(self) -> dict[str, Any]:
        return {"size": "12", "states": 12, "parts": 1, "description": "a ring"}

    def table(self) -> Any:
        return self.observe(np.arange(12))

    def transition_matrix(self) -> Any:
        shift = np.roll(np.eye(12), 1, axis=1)
        return csr_array((shift + shift.T) / 2)

    def field_points(self, cells: int = 96) -> Any:
        return self.table() if self.picture else None

    def field_image(self, values: Any) -> Any:
        image = np.ma.masked_all((1, 14))
        image[0, 1:13] = values
        return image

    def field_extent(self) -> tuple[float, float, float, float]:
        return 0.0, 14.0, 1.0, 0.0


@pytest.mark.parametrize("picture", [True, False])
def test_a_world_from_outside_is_drawn_where_it_has_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, picture: bool
) -> None:
    monkeypatch.setitem(WORLDS, Ring.name, lambda: Ring(picture))
    data = lw.collect(Ring(picture), steps=3000, seed=0)
    write_run(lw.solve(data, 3), tmp_path / "run", data=data)
    assert (tmp_path / "run" / "eigenvectors.png").exists()
    found = content_of(read_run(tmp_path / "run"))
    assert (found.cards is None) is picture
    assert found.has_points
    assert found.has_picture is picture
    if picture:
        assert (found.arrays["rows"], found.arrays["columns"]) == (1, 14)
        assert found.arrays["cells"] == list(range(1, 13))
        assert found.score is not None
        assert found.score.subspace_cosine > 0.9


class Brightness:
    """Components of an image: a constant, and its brightness."""

    dim, kind = 2, "brightness"

    def encode(self, images: Any) -> Any:
        flat = np.asarray(images, dtype=np.float64).reshape(len(images), -1).mean(axis=1)
        return np.stack([np.ones(len(flat)), flat / 100 - 1], axis=1)

    def arrays(self) -> dict[str, Any]:
        return {}


def stored(model: lw.LaplacianRepresentation, **options: Any) -> StoredRun:
    """A run as if it had been read from files."""
    return StoredRun("run", model, [], None, DataRecord(), ScoresRecord(), Provenance(), **options)


def test_components_over_time_are_those_of_the_episodes_kept(learned: Path) -> None:
    run = read_run(learned)
    found = content_of(run)
    assert run.episodes is not None
    assert run.audit is not None
    assert found.episodes == f"8 of {run.audit.episodes} episodes"
    chart = found.figures["time"]
    assert len(chart["data"]) == 5
    trace = chart["data"][0]
    shown = {place: value for place, value in zip(trace["x"], trace["y"], strict=True) if place is not None}
    assert list(shown) == list(range(run.episodes.num_states))
    positions = run.episodes.rows(np.arange(run.episodes.num_states))
    expected = run.model.transform(run.episodes.observations)[positions, 1]
    np.testing.assert_allclose(list(shown.values()), expected, rtol=1e-3)
    # One line for each boundary in each panel, between the last state of an episode and the first of the next.
    places = [shape["x0"] for shape in chart["layout"]["shapes"]]
    assert places == (run.episodes.offsets[1:-1] - 0.5).tolist() * 5
    gaps = [number for number, place in enumerate(trace["x"]) if place is None]
    assert len(gaps) == run.episodes.num_episodes - 1
    assert not chart["layout"]["images"]
    assert "time" not in found.curves


def test_images_get_strips_and_frames_below_the_time_axis() -> None:
    images = np.repeat(np.arange(0, 200, 10, dtype=np.uint8), 4 * 400).reshape(20, 4, 20, 20)
    data = lw.from_arrays(np.concatenate([images, images[::-1]]), lengths=[20, 20])
    model = lw.LaplacianRepresentation(Brightness(), np.array([1.0, 0.9]), 2)  # type: ignore[arg-type]
    found = content_of(stored(model, episodes=data))
    assert found.cards is not None
    assert found.cards.strips
    assert [picture.wide for picture in found.cards.pictures[2]] == [4, 4, 1, 1, 1]
    assert found.cards.pictures[2][0].caption == "lowest: -1 to -0.7"
    frames = found.figures["time"]["layout"]["images"]
    assert len(frames) == 6
    assert all(frame["source"].startswith("data:image/png;base64,") for frame in frames)
    dots = found.figures["time"]["data"][1]
    assert dots["x"] == [frame["x"] for frame in frames]


def test_a_map_too_large_to_explore_is_drawn_as_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.report.content.MAX_POINTS", 40)
    found = content_of(stored(lw.solve("GridRoom-1", 3)))
    assert not found.has_points
    assert "too many to explore" in found.notes["eigenvectors"][0]
    assert found.cards is not None
    assert list(found.cards.pictures) == [2, 3]


def test_of_a_long_table_without_a_map_some_states_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.report.content.MAX_POINTS", 40)
    monkeypatch.setattr("lapwing.report.content.SPREAD", 30)
    chain = np.eye(50, k=1) + np.eye(50, k=-1) + np.eye(50)
    found = content_of(stored(lw.solve(chain / chain.sum(axis=1, keepdims=True), 3)))
    assert found.arrays["count"] == 30
    assert found.cards is not None
