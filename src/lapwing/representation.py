"""The Laplacian representation: what the exact solver and learning both return."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_path
from lapwing.definitions import Definition, as_definition, one_step, parse_definition
from lapwing.diagnostics.certificate import Certificate, certify
from lapwing.diagnostics.problems import Problem, find_problems
from lapwing.encoders.base import Encoder
from lapwing.errors import LapwingError
from lapwing.operators.clusters import DATA_TOLERANCE, EXACT_TOLERANCE, LEARNED_TOLERANCE
from lapwing.storage.models import MANIFEST, read_model, write_model
from lapwing.storage.records import Record, world_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Arrays that may come with a representation, one number per component.
MEASURED = ("residuals", "operator_values", "angles", "data_angles", "dual_gaps", "mu_errors")
FINITE = ("mu", "operator_values", "mu_errors")
SIZES = ("residuals", "angles", "data_angles", "dual_gaps", "mu_errors")
LONGEST_DEFINITION = 100

# Where each kind of encoder lives; imported when a file asks for it.
ENCODER_HOMES = {
    "lookup": "lapwing.encoders.lookup:LookupEncoder",
    "cosine": "lapwing.encoders.cosine:CosineEncoder",
    "rotated": "lapwing.encoders.rotated:RotatedEncoder",
}


@dataclass(frozen=True, eq=False)
class LaplacianRepresentation:
    """The smallest eigenvectors of a graph Laplacian as functions of observations, with eigenvalues (paper, Section 2).

    Args:
        encoder: from observations to components; it may hold more than ``dim`` so as to complete the last cluster
            of repeated eigenvalues.
        mu: eigenvalues of the one-step operator, largest first, one per component of the encoder.
        dim: how many components the representation has.
        definition: in which Laplacian ``eigenvalues`` are given.
        exact: whether it comes from exact dynamics rather than data.
        residuals: ``|Lu - lambda u|`` per component of the encoder, where known.
        operator_values: ``1 - f(mu)`` of the operator that residuals were measured with, where that is not the one-step
            operator; the first eigenvalue beyond the components may follow.
        angles: estimated sines of the angles to true eigenvectors, where they are known better than from residuals.
        data_angles: sines by which noise in the data turns each component, where it comes from data.
        dual_gaps: distance of the objective's own reading of each eigenvalue from the Rayleigh quotient, where learned.
        mu_errors: standard error of each mu, where it comes from data.
        orthonormality_error: largest ``|<u_j, u_k> - delta_jk|``, where known.
        next_mu: the first eigenvalue that the encoder does not hold, where known.
        metadata: how it was made, as JSON types.
    """

    encoder: Encoder
    mu: NDArray[np.float64]
    dim: int
    definition: Definition = field(default_factory=one_step)
    exact: bool = False
    residuals: NDArray[np.float64] | None = None
    operator_values: NDArray[np.float64] | None = None
    angles: NDArray[np.float64] | None = None
    data_angles: NDArray[np.float64] | None = None
    dual_gaps: NDArray[np.float64] | None = None
    mu_errors: NDArray[np.float64] | None = None
    orthonormality_error: float | None = None
    next_mu: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        if not 1 <= self.dim <= self.encoder.dim or np.shape(self.mu) != (self.encoder.dim,):
            raise LapwingError(
                f"{np.shape(self.mu)} eigenvalues and {self.encoder.dim} components do not make a representation "
                f"of {self.dim} dimensions"
            )
        for name in MEASURED:
            measured = getattr(self, name)
            # The first eigenvalue beyond the components may follow.
            lengths = (len(self.mu), len(self.mu) + 1) if name == "operator_values" else (len(self.mu),)
            if measured is not None and (measured.ndim != 1 or len(measured) not in lengths):
                raise LapwingError(f"{name} of shape {measured.shape} do not fit {self.mu.shape} eigenvalues")

    def transform(self, observations: ArrayLike) -> NDArray[np.floating[Any]]:
        """(n, ...) observations to (n, dim) components, ordered by eigenvalue, each with E[u^2] = 1."""
        return self.transform_all(observations)[:, : self.dim]

    def transform_all(self, observations: ArrayLike) -> NDArray[np.floating[Any]]:
        """Like :meth:`transform`, with the components beyond ``dim`` that complete the last cluster."""
        try:
            given = np.asarray(observations)
        except ValueError as error:
            raise LapwingError(f"observations must be one array, all of the same shape: {error}") from error
        return self.encoder.encode(given)

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """(dim,) eigenvalues, ascending, in :attr:`definition`."""
        return self.eigenvalues_in(self.definition)

    def eigenvalues_in(self, definition: Definition | str) -> NDArray[np.float64]:
        """(dim,) eigenvalues, ascending, in another definition, e.g. ``successor(0.9)``."""
        chosen = as_definition(definition)
        return chosen.from_mu(self.mu[: self.dim])

    def error_bars_in(self, definition: Definition | str) -> NDArray[np.float64]:
        """(dim,) standard errors of :meth:`eigenvalues_in`, to first order; zero for exact dynamics."""
        if self.mu_errors is None:
            return np.zeros(self.dim)
        chosen = as_definition(definition)
        mu = self.mu[: self.dim]
        step = np.maximum(1e-4 * (1.0 - mu), 1e-9)
        slopes = (chosen.from_mu(mu - step) - chosen.from_mu(mu)) / step
        return np.abs(slopes) * self.mu_errors[: self.dim]

    @property
    def tolerance(self) -> float:
        """Relative width within which eigenvalues count as one: 1e-6 solved, 1e-3 learned exactly, 1 % from data."""
        if not self.exact:
            return DATA_TOLERANCE
        return EXACT_TOLERANCE if self.operator_values is None else LEARNED_TOLERANCE

    def certificate(self) -> Certificate:
        """How far each component can be trusted, judged without a truth."""
        if self.residuals is None or self.orthonormality_error is None:
            raise LapwingError("this representation holds no residuals to judge it by")
        following = None if self.next_mu is None else 1.0 - self.next_mu
        everything = certify(
            1.0 - self.mu,
            self.residuals,
            self.orthonormality_error,
            self.tolerance,
            following,
            self.operator_values,
            self.angles,
            self.data_angles,
            self.dual_gaps,
        )
        return everything.first(self.dim)

    def problems(self) -> list[Problem]:
        """What speaks against trusting it, judged without a truth, most serious first; none where nothing does."""
        judged = self.residuals is not None and self.orthonormality_error is not None and np.isfinite(self.mu).all()
        arrays = self.encoder.arrays().values()
        return find_problems(self.mu[: self.dim], arrays, self.certificate() if judged else None, self.metadata)

    def save(self, path: str | Path) -> Path:
        """Write ``model.safetensors`` and ``model.json`` into a folder; nothing is lost if it fails or is killed."""
        arrays = {f"encoder.{name}": array for name, array in self.encoder.arrays().items()} | {"mu": self.mu}
        arrays |= {name: getattr(self, name) for name in MEASURED if getattr(self, name) is not None}
        manifest = {
            "dim": self.dim,
            "definition": str(self.definition),
            "eigenvalues": self.eigenvalues.tolist(),
            "exact": self.exact,
            "orthonormality_error": self.orthonormality_error,
            "next_mu": self.next_mu,
            "encoder": {"kind": self.encoder.kind, "config": self.encoder.config()},
            "metadata": self.metadata,
        }
        folder = as_path(path, "the folder to save to")
        write_model(folder, manifest, {name: np.asarray(array) for name, array in arrays.items()})
        return folder

    def plot(self, components: Sequence[int] | None = None, what: str = "eigenvectors") -> "Figure":
        """A picture: ``eigenvectors`` on the world, the ``spectrum``, or the ``curves`` of learning.

        Args:
            components: which ones, counted from 1; all unless given, of eigenvectors the first few.
            what: as above.
        """
        figure: Figure = _notebook().plot_model(self, components, what)
        return figure

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        return str(_notebook().model_html(self))

    def __repr__(self) -> str:
        """One line: of what, how many components, and which eigenvalues."""
        name = world_name(self.metadata, "?")
        kind = "exact" if self.exact else "from data"
        values = ", ".join(f"{value:.4g}" for value in self.eigenvalues[:4])
        more = ", ..." if self.dim > 4 else ""
        return (
            f"LaplacianRepresentation({name}, {kind}, dim={self.dim}, {self.definition} eigenvalues [{values}{more}])"
        )


def load(path: str | Path) -> LaplacianRepresentation:
    """Read a representation that :meth:`LaplacianRepresentation.save` wrote; no code in the files is run."""
    folder = as_path(path, "the folder of a representation")
    if (folder / "trajectories.json").is_file() and not (folder / MANIFEST).exists():
        raise LapwingError(f"{folder} holds trajectories, not a representation; read it with Trajectories.load")
    manifest, arrays = read_model(folder)
    encoder = manifest.record("encoder")
    own = {name.removeprefix("encoder."): array for name, array in arrays.items() if name.startswith("encoder.")}
    metadata = manifest.record("metadata").content if manifest.has("metadata") else {}
    try:
        _check_arrays(arrays)
        return LaplacianRepresentation(
            encoder=_encoder_class(encoder.text("kind")).from_parts(encoder.record("config").content, own),
            mu=arrays["mu"],
            dim=manifest.whole("dim"),
            definition=parse_definition(manifest.text("definition", longest=LONGEST_DEFINITION)),
            exact=manifest.flag("exact"),
            **{name: arrays.get(name) for name in MEASURED},
            orthonormality_error=_number_or_none(manifest, "orthonormality_error", least=0.0),
            next_mu=_number_or_none(manifest, "next_mu"),
            metadata=metadata,
        )
    except LapwingError as error:
        raise LapwingError(f"{folder} holds no sound representation: {error}") from error


def _notebook() -> Any:
    # Pictures are drawn from representations, so the module that draws them imports this one and cannot be imported
    # by it. As for encoders above, its name is enough, and it is loaded when somebody wants to look.
    return importlib.import_module("lapwing.report.notebook")


def _number_or_none(manifest: Record, name: str, least: float | None = None) -> float | None:
    return manifest.number(name, least) if manifest.has(name) else None


def _check_arrays(arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse arrays of another type, NaN in what must be a number, and negative sizes.

    NaN is a residual, and infinity an angle, that is not known; neither ever counts as trusted.
    """
    if "mu" not in arrays:
        raise LapwingError("the eigenvalues mu are missing; the file is damaged")
    for name, array in arrays.items():
        inside = name.startswith("encoder.")
        if not inside and name not in ("mu", *MEASURED):
            raise LapwingError(f"there is an unknown array {name[:80]!r}; the file is damaged, or update lapwing")
        if not inside and array.dtype != np.float64:
            raise LapwingError(f"{name} must be float64, got {array.dtype}; the file is damaged")
        if (inside or name in FINITE) and not np.isfinite(array).all():
            raise LapwingError(f"{name[:80]} holds NaN or infinity; the file is damaged")
        if name in SIZES and (array < 0).any():
            raise LapwingError(f"{name} holds numbers below zero; the file is damaged")


def _encoder_class(kind: Any) -> Any:
    if kind not in ENCODER_HOMES:
        raise LapwingError(f"this representation uses an encoder of kind {kind!r}, unknown here; update lapwing")
    module, name = ENCODER_HOMES[kind].split(":")
    return getattr(importlib.import_module(module), name)
