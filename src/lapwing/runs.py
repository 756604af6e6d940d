"""A run directory: the representation, its spectrum and pictures, and for learning the configuration and metrics."""

from pathlib import Path
from typing import Any

from lapwing.definitions import one_step, successor
from lapwing.environments.descriptions import world_from_description
from lapwing.errors import LapwingError
from lapwing.files import read_manifest, write_csv, write_json
from lapwing.plots.curves import curves_figure
from lapwing.plots.figures import eigenvector_figure, save_figure, spectrum_figure
from lapwing.representation import FORMAT, MANIFEST, VERSION, WEIGHTS, LaplacianRepresentation

# What a run directory may hold besides the representation itself.
RUN_FILES = {"spectrum.csv", "config.json", "metrics.csv", "curves.png", "spectrum.png", "eigenvectors.png"}


def refuse_foreign(out: Path) -> None:
    """An error, before any work is done, if ``out`` is a file or a folder of something else."""
    if out.exists() and not out.is_dir():
        raise LapwingError(f"{out} is a file; choose a folder")
    if out.is_dir() and any(out.iterdir()):
        if not (out / MANIFEST).exists():
            raise LapwingError(f"{out} holds other files and no {MANIFEST}; choose an empty or new folder")
        read_manifest(out / MANIFEST, FORMAT, VERSION)


def write_run(model: LaplacianRepresentation, out: Path) -> list[Path]:
    """Write everything there is to say about a representation; the files written, pictures last."""
    model.save(out)
    written = [out / MANIFEST, out / WEIGHTS, write_csv(out / "spectrum.csv", spectrum_rows(model))]
    history = model.metadata.get("history")
    if "config" in model.metadata:
        write_json(out / "config.json", {"preset": model.metadata.get("preset"), **model.metadata["config"]})
        written.append(out / "config.json")
    if history:
        written.append(write_csv(out / "metrics.csv", history))
        written.append(save_figure(curves_figure(model), out / "curves.png"))
    written.append(save_figure(spectrum_figure(model), out / "spectrum.png"))
    if world_from_description(model.metadata.get("world")) is not None:
        written.append(save_figure(eigenvector_figure(model), out / "eigenvectors.png"))
    for name in RUN_FILES - {path.name for path in written}:
        # Left by an earlier run in this folder: it would speak of another model.
        (out / name).unlink(missing_ok=True)
    return written


def spectrum_rows(model: LaplacianRepresentation) -> list[dict[str, Any]]:
    """One row per component: eigenvalues (with error bars where they come from data), residual and verdict."""
    certificate = model.certificate()
    columns: dict[str, Any] = {}
    for definition in dict.fromkeys([model.definition, one_step(), successor(0.9)]):
        columns[str(definition)] = model.eigenvalues_in(definition)
        if model.mu_errors is not None:
            columns[f"+- {definition}"] = model.error_bars_in(definition)
    columns["residual"] = certificate.residuals
    return [
        {
            "component": number + 1,
            **{name: float(column[number]) for name, column in columns.items()},
            "verdict": certificate.verdicts[number],
        }
        for number in range(model.dim)
    ]
