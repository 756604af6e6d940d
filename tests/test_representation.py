"""The representation: what it says of itself, and what survives on disk."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import lapwing as lw
from lapwing import representation
from lapwing.data import collect
from lapwing.definitions import geometric, successor, truncated
from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments.box import BoxWorld
from lapwing.errors import ArgumentError, DamagedFileError, LapwingError
from lapwing.representation import LaplacianRepresentation, load
from lapwing.solving import solve
from lapwing.storage import models
from lapwing.storage.models import MANIFEST, NEXT_WEIGHTS, WEIGHTS


@pytest.fixture(scope="module")
def cross() -> LaplacianRepresentation:
    """GridMaze-11: its eleventh component is the second of three that share an eigenvalue."""
    return solve("GridMaze-11", dim=11, definition="successor(0.9)")


@pytest.fixture
def saved(cross: LaplacianRepresentation, tmp_path: Path) -> Path:
    return cross.save(tmp_path / "run")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("source", ["GridMaze-11", "Box-3", "square box", "data", "matrix", "pixels"])
def test_what_is_loaded_equals_what_was_saved_bit_by_bit(source: str, tmp_path: Path) -> None:
    sources: dict[str, Any] = {
        "square box": BoxWorld((1.0, 1.0)),
        "data": collect("GridMaze-9", steps=3_000, seed=0),
        "matrix": np.full((4, 4), 0.25),
        "pixels": "GridMaze-7",
    }
    options: dict[str, Any] = {"observation": "pixels"} if source == "pixels" else {}
    model = solve(sources.get(source, source), 2, definition="truncated(0.9, 50)", **options)
    again = load(model.save(tmp_path / "run"))
    for name, array in model.encoder.arrays().items():
        np.testing.assert_array_equal(again.encoder.arrays()[name], array)
        assert again.encoder.arrays()[name].dtype == array.dtype
    np.testing.assert_array_equal(again.mu, model.mu)
    assert model.residuals is not None
    assert again.residuals is not None
    np.testing.assert_array_equal(again.residuals, model.residuals)
    for name in ("dim", "definition", "exact", "orthonormality_error", "next_mu", "metadata"):
        assert getattr(again, name) == getattr(model, name), name
    points = model.encoder.support()[0]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(again.transform(points), model.transform(points))
    assert str(again.certificate()) == str(model.certificate())


def test_a_representation_without_residuals_survives_too(cross: LaplacianRepresentation, tmp_path: Path) -> None:
    bare = replace(cross, residuals=None, orthonormality_error=None, next_mu=None)
    again = load(bare.save(tmp_path))
    assert again.residuals is None
    assert again.next_mu is None


def test_saving_again_replaces_the_model_and_leaves_other_files_alone(
    cross: LaplacianRepresentation, saved: Path
) -> None:
    (saved / "config.json").write_text("{}")
    (saved / "checkpoints").mkdir()
    (saved / "checkpoints" / "1").write_text("x")
    solve("GridMaze-7", 3).save(saved)
    assert load(saved).dim == 3
    assert {path.name for path in saved.iterdir()} == {MANIFEST, WEIGHTS, "config.json", "checkpoints"}
    assert (saved / "checkpoints" / "1").read_text() == "x"


@pytest.mark.parametrize("broken", ["write_bytes", "write_json"])
def test_a_failed_save_changes_nothing(
    broken: str, cross: LaplacianRepresentation, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("disk full")

    before = contents(saved)
    monkeypatch.setattr(models, broken, fail)
    other = solve("GridMaze-7", 3)
    with pytest.raises(OSError, match="disk full"):
        other.save(saved)
    assert contents(saved) == before
    with pytest.raises(OSError, match="disk full"):
        other.save(tmp_path / "new")
    assert not (tmp_path / "new").exists() or not list((tmp_path / "new").iterdir())


@pytest.mark.parametrize(
    "changes",
    [{"mu": np.full(12, np.nan)}, {"orthonormality_error": np.inf}, {"metadata": {"key": object()}}],
    ids=["nan eigenvalues", "infinite error", "metadata"],
)
def test_what_a_manifest_cannot_hold_is_refused_and_changes_nothing(
    changes: dict[str, Any], cross: LaplacianRepresentation, saved: Path
) -> None:
    before = contents(saved)
    with pytest.raises(LapwingError, match="cannot be saved"):
        replace(cross, **changes).save(saved)
    assert contents(saved) == before


def test_a_file_in_place_of_the_folder_is_refused(cross: LaplacianRepresentation, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("mine")
    with pytest.raises(LapwingError, match="is a file; choose a folder"):
        cross.save(target)
    assert target.read_text() == "mine"


def test_a_folder_that_is_absent_empty_or_a_file_is_refused(tmp_path: Path, saved: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "absent", tmp_path / "empty", saved / MANIFEST):
        with pytest.raises(LapwingError, match="does not exist"):
            load(path)


def test_a_folder_of_trajectories_is_recognised(tmp_path: Path) -> None:
    collect("GridMaze-7", steps=100, seed=0).save(tmp_path / "data")
    with pytest.raises(LapwingError, match=r"holds trajectories.*Trajectories\.load"):
        load(tmp_path / "data")


def test_missing_or_foreign_weights_are_refused(saved: Path, tmp_path: Path) -> None:
    other = solve("GridMaze-7", 3).save(tmp_path / "other")
    (saved / WEIGHTS).write_bytes((other / WEIGHTS).read_bytes())
    with pytest.raises(LapwingError, match="damaged or belongs to another"):
        load(saved)
    (saved / WEIGHTS).unlink()
    with pytest.raises(LapwingError, match="copy the whole folder"):
        load(saved)


def test_truncated_weights_and_one_flipped_bit_are_noticed(saved: Path) -> None:
    content = (saved / WEIGHTS).read_bytes()
    flipped = bytearray(content)
    flipped[-3] ^= 1
    for damaged in (b"", content[:100], content[:-1], bytes(flipped)):
        (saved / WEIGHTS).write_bytes(damaged)
        with pytest.raises(DamagedFileError):
            load(saved)


@pytest.mark.parametrize("field", ["dim", "definition", "exact", "encoder", "checksum"])
def test_a_manifest_that_lacks_a_field_is_refused_and_the_field_is_named(field: str, saved: Path) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    del manifest[field]
    (saved / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DamagedFileError, match=rf"{re.escape(MANIFEST)}.*{field}"):
        load(saved)


def test_the_certificate_and_the_problems_are_computed_once(
    cross: LaplacianRepresentation, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = replace(cross)
    first, problems = model.certificate(), model.problems()
    monkeypatch.setattr(representation, "certificate_from_residuals", None)
    monkeypatch.setattr(representation, "find_problems", None)
    assert model.certificate() is first
    assert model.problems() == problems


@pytest.mark.parametrize(
    "changes", [{"dim": 0}, {"dim": 13}, {"mu": np.zeros(3)}, {"residuals": np.zeros(3)}], ids=lambda c: next(iter(c))
)
def test_parts_that_do_not_fit_make_no_representation(changes: dict[str, Any], cross: LaplacianRepresentation) -> None:
    with pytest.raises(LapwingError, match="do not"):
        replace(cross, **changes)


def test_eigenvalues_come_in_any_definition(cross: LaplacianRepresentation) -> None:
    for definition in (successor(0.5), geometric(0.9), truncated(0.9, 50)):
        expected = definition.from_mu(cross.mu[:11])
        np.testing.assert_array_equal(cross.eigenvalues_in(definition), expected)
        np.testing.assert_array_equal(cross.eigenvalues_in(str(definition)), expected)
    np.testing.assert_array_equal(cross.eigenvalues, cross.eigenvalues_in("successor(0.9)"))
    np.testing.assert_allclose(cross.eigenvalues_in("one_step"), 1.0 - cross.mu[:11])
    with pytest.raises(LapwingError, match="unknown Laplacian definition"):
        cross.eigenvalues_in("two_step")


def test_an_unknown_observation_is_an_error(cross: LaplacianRepresentation) -> None:
    with pytest.raises(LapwingError, match="does not generalise"):
        cross.transform([[0.123, 0.456]])


def test_the_tolerance_is_that_of_exact_dynamics_or_of_data(cross: LaplacianRepresentation) -> None:
    assert cross.tolerance == 1e-6
    assert replace(cross, exact=False).tolerance == 1e-2


def test_an_exact_solution_is_trusted_except_for_repeats(cross: LaplacianRepresentation) -> None:
    certificate = cross.certificate()
    repeated = [abs(np.delete(cross.mu, i) - mu).min() < 1e-9 for i, mu in enumerate(cross.mu)][:11]
    assert any(repeated)
    assert not all(repeated)
    assert certificate.verdicts == tuple("degenerate" if again else "trusted" for again in repeated)
    assert len(certificate.residuals) == 11
    np.testing.assert_allclose(certificate.eigenvalues, 1.0 - cross.mu[:11])


def test_a_cluster_that_the_dimension_cuts_keeps_the_gap_above_the_whole_of_it(
    cross: LaplacianRepresentation,
) -> None:
    assert cross.next_mu is not None
    below, above = cross.mu[8] - cross.mu[10], cross.mu[11] - cross.next_mu
    assert cross.certificate().gaps[10] == pytest.approx(min(below, above), rel=1e-6)
    close = replace(cross, next_mu=float(cross.mu[11] - 1e-4))
    assert close.certificate().gaps[10] == pytest.approx(1e-4, rel=1e-6)


def test_a_component_with_a_large_residual_is_not_converged(cross: LaplacianRepresentation) -> None:
    assert cross.residuals is not None
    residuals = cross.residuals.copy()
    residuals[4] = 0.5
    certificate = replace(cross, residuals=residuals).certificate()
    assert certificate.verdicts[4] == "not converged"
    assert not certificate.converged
    others = np.delete(np.array(certificate.verdicts), 4)
    assert "not converged" not in others


def test_a_residual_beyond_the_dimension_is_nobodys_concern(cross: LaplacianRepresentation) -> None:
    assert cross.residuals is not None
    residuals = np.append(cross.residuals[:11], 0.5)
    assert replace(cross, residuals=residuals).certificate().converged


def test_without_residuals_there_is_no_certificate(cross: LaplacianRepresentation) -> None:
    with pytest.raises(LapwingError, match="no residuals"):
        replace(cross, residuals=None).certificate()


def test_the_text_says_what_it_is(cross: LaplacianRepresentation) -> None:
    assert repr(cross).startswith("LaplacianRepresentation(GridMaze-11, exact, dim=11, successor(0.9) eigenvalues [0,")
    bare = LaplacianRepresentation(LookupEncoder(np.zeros((1, 1)), np.ones((1, 1)), np.ones(1)), np.ones(1), 1)
    assert repr(bare) == "LaplacianRepresentation(?, from data, dim=1, one_step eigenvalues [0])"


class KilledError(BaseException):
    """Stands for a kill: nothing catches it, and no clearing up follows."""


def killed_while_saving(model: LaplacianRepresentation, folder: Path, after: int, patch: pytest.MonkeyPatch) -> None:
    """Save, but stop dead after so many files have taken their names."""
    replace, taken = Path.replace, []

    def counted(self: Path, other: Path) -> Path:
        if len(taken) == after:
            raise KilledError
        taken.append(other)
        return replace(self, other)

    with patch.context() as context:
        context.setattr(Path, "replace", counted)
        # A process that is killed does not remove anything on its way out.
        context.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(KilledError):
            model.save(folder)


@pytest.mark.parametrize(("after", "dim"), [(0, 11), (1, 11), (2, 3)])
def test_a_kill_while_saving_leaves_the_old_model_or_the_new_one(
    after: int, dim: int, cross: LaplacianRepresentation, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = solve("GridMaze-7", 3)
    killed_while_saving(small, saved, after, monkeypatch)
    again = load(saved)
    kept = cross if dim == 11 else small
    assert again.dim == dim
    np.testing.assert_array_equal(again.transform(kept.encoder.observations), kept.transform(kept.encoder.observations))
    # Whatever was left, the next save works, and leaves two files.
    other = solve("GridMaze-9", 4)
    other.save(saved)
    assert load(saved).dim == 4
    assert {path.name for path in saved.iterdir() if not path.name.startswith(".")} == {MANIFEST, WEIGHTS}


def test_two_kills_in_a_row_lose_nothing(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_while_saving(solve("GridMaze-7", 3), saved, 2, monkeypatch)
    assert (saved / NEXT_WEIGHTS).exists()
    # The second begins by finishing the first: its own weights must not take the place of the only ones that count.
    killed_while_saving(solve("GridMaze-9", 4), saved, 2, monkeypatch)
    assert load(saved).dim == 3
    killed_while_saving(solve("GridMaze-9", 4), saved, 2, monkeypatch)
    assert load(saved).dim == 4


def test_a_first_save_that_is_killed_is_a_model_once_its_manifest_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for after in (0, 1):
        killed_while_saving(solve("GridMaze-7", 3), tmp_path / "run", after, monkeypatch)
        with pytest.raises(LapwingError, match="does not exist"):
            load(tmp_path / "run")
    killed_while_saving(solve("GridMaze-7", 3), tmp_path / "run", 2, monkeypatch)
    assert load(tmp_path / "run").dim == 3


def test_left_over_weights_that_belong_to_nothing_are_ignored(saved: Path) -> None:
    before = load(saved)
    (saved / NEXT_WEIGHTS).write_bytes(b"nonsense")
    np.testing.assert_array_equal(load(saved).mu, before.mu)
    (saved / WEIGHTS).unlink()
    with pytest.raises(LapwingError, match="checksums differ"):
        load(saved)


# --- the embedding ---------------------------------------------------------------------------------------------------


def test_the_embedding_is_the_components_without_the_constant_over_the_roots_of_eigenvalues() -> None:
    model = solve("FourRooms", 5, definition="successor(0.9)")
    table, _ = model.encoder.support()  # type: ignore[attr-defined]
    plain = model.embedding(table, scaled=False)
    assert plain.shape == (104, 4)
    np.testing.assert_array_equal(plain, model.transform(table)[:, 1:])
    # One-step eigenvalues, whatever the definition in which the model gives them.
    np.testing.assert_allclose(model.embedding(table), plain / np.sqrt(model.eigenvalues_in("one_step")[1:]))


def test_a_negative_eigenvalue_gives_an_error_and_no_nan(cross: LaplacianRepresentation) -> None:
    model = replace(cross, mu=np.array([1.0, 1.01, *cross.mu[2:]]))
    table, _ = model.encoder.support()  # type: ignore[attr-defined]
    with pytest.raises(LapwingError, match=r"eigenvalue 2 is -0\.01"):
        model.embedding(table)
    assert np.isfinite(model.embedding(table, scaled=False)).all()


def test_one_component_has_no_embedding() -> None:
    model = solve("GridMaze-7", 1)
    table, _ = model.encoder.support()  # type: ignore[attr-defined]
    with pytest.raises(LapwingError, match="take dim=2"):
        model.embedding(table, scaled=False)


def test_apply_is_transform_inside_jax(cross: LaplacianRepresentation) -> None:
    learned = lw.learn(lw.operator("room:3x3"), dim=3, steps=20, seed=0)
    for model, points in (
        (learned, lw.make_world("room:3x3").table()),
        (cross, lw.make_world("GridMaze-11").table()),
        (lw.solve("Box-2", dim=3), np.array([[0.1, 0.2], [-0.3, 0.0]], dtype=np.float32)),
    ):
        wanted = model.transform(points)
        assert wanted.shape[1] == model.dim
        np.testing.assert_allclose(jax.jit(model.apply)(points), wanted, atol=1e-5)
        one_by_one = jax.jit(jax.vmap(lambda row, model=model: model.apply(row[None])[0]))
        np.testing.assert_allclose(one_by_one(points), wanted, atol=1e-5)
        np.testing.assert_allclose(jax.vmap(model.apply)(np.stack([points, points]))[1], wanted, atol=1e-5)
    step = 1e-4
    slope = jax.jacobian(lambda row: learned.apply(row[None])[0, 1])(points[0])
    above, below = (points[:1] + np.array([[sign * step, 0.0]]) for sign in (1, -1))
    moved = learned.transform(above)[0, 1], learned.transform(below)[0, 1]
    assert slope[0] == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=2e-2, abs=0.1)
    for model in (learned, cross):
        for wrong in (np.zeros((4, 3)), np.zeros(2), 3.0):
            with pytest.raises(ArgumentError, match="takes"):
                model.apply(wrong)


def test_apply_knows_a_table_of_double_precision() -> None:
    rows = np.array([[0.1], [0.2], [0.3]] * 100)
    model = solve(lw.from_arrays(rows, lengths=[300]), dim=2)
    assert model.encoder.observations.dtype == np.float64  # type: ignore[attr-defined]
    np.testing.assert_allclose(model.apply(rows[:3]), model.transform(rows[:3]), atol=1e-6)
