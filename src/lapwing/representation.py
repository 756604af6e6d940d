"""The Laplacian representation: what the exact solver and learning both return."""

import importlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from lapwing.definitions import Definition, as_definition, one_step, parse_definition
from lapwing.encoders.base import Encoder
from lapwing.errors import LapwingError
from lapwing.files import read_manifest, replaced_file, write_json
from lapwing.health import Problem, find_problems
from lapwing.spectral.certificates import Certificate, certify
from lapwing.spectral.clusters import DATA_TOLERANCE, EXACT_TOLERANCE, LEARNED_TOLERANCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "lapwing-representation"
VERSION = 1
MANIFEST = "model.json"
WEIGHTS = "model.safetensors"

# Arrays that may come with a representation, one number per component.
MEASURED = ("residuals", "operator_values", "angles", "data_angles", "dual_gaps", "mu_errors")

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
        if not 1 <= self.dim <= self.encoder.dim or self.mu.shape != (self.encoder.dim,):
            raise LapwingError(
                f"{self.mu.shape} eigenvalues and {self.encoder.dim} components do not make a representation "
                f"of {self.dim} dimensions"
            )
        if self.residuals is not None and self.residuals.shape != self.mu.shape:
            raise LapwingError(f"{self.residuals.shape} residuals do not fit {self.mu.shape} eigenvalues")

    def transform(self, observations: ArrayLike) -> NDArray[np.floating[Any]]:
        """(n, ...) observations to (n, dim) components, ordered by eigenvalue, each with E[u^2] = 1."""
        return self.transform_all(observations)[:, : self.dim]

    def transform_all(self, observations: ArrayLike) -> NDArray[np.floating[Any]]:
        """Like :meth:`transform`, with the components beyond ``dim`` that complete the last cluster."""
        return self.encoder.encode(np.asarray(observations))

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
        """Write ``model.safetensors`` and ``model.json`` into a folder; nothing is replaced unless both can be."""
        folder = Path(path)
        if folder.exists() and not folder.is_dir():
            raise LapwingError(f"{folder} is a file; choose a folder")
        arrays = {f"encoder.{name}": array for name, array in self.encoder.arrays().items()} | {"mu": self.mu}
        arrays |= {name: getattr(self, name) for name in MEASURED if getattr(self, name) is not None}
        contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        with replaced_file(folder / WEIGHTS) as temporary:
            save_file(contiguous, temporary)
            checksum = zlib.crc32(temporary.read_bytes())
            try:
                write_json(folder / MANIFEST, self._manifest(checksum))
            except (TypeError, ValueError) as error:
                if isinstance(error, LapwingError):
                    raise
                raise LapwingError(f"this cannot be saved ({error}): it has diverged or has odd metadata") from error
        return folder

    def _manifest(self, checksum: int) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "dim": self.dim,
            "definition": str(self.definition),
            "eigenvalues": self.eigenvalues.tolist(),
            "exact": self.exact,
            "orthonormality_error": self.orthonormality_error,
            "next_mu": self.next_mu,
            "encoder": {"kind": self.encoder.kind, "config": self.encoder.config()},
            "checksum": checksum,
            "metadata": self.metadata,
        }

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
        name = (self.metadata.get("world") or {}).get("name", "?")
        kind = "exact" if self.exact else "from data"
        values = ", ".join(f"{value:.4g}" for value in self.eigenvalues[:4])
        more = ", ..." if self.dim > 4 else ""
        return (
            f"LaplacianRepresentation({name}, {kind}, dim={self.dim}, {self.definition} eigenvalues [{values}{more}])"
        )


def load(path: str | Path) -> LaplacianRepresentation:
    """Read a representation that :meth:`LaplacianRepresentation.save` wrote; no code in the files is run."""
    if not isinstance(path, (str, Path)):
        raise LapwingError(f"load takes the path of a folder, got {type(path).__name__}")
    folder = Path(path)
    if (folder / "trajectories.json").is_file() and not (folder / MANIFEST).exists():
        raise LapwingError(f"{folder} holds trajectories, not a representation; read it with Trajectories.load")
    manifest = read_manifest(folder / MANIFEST, FORMAT, VERSION)
    arrays = _load_arrays(folder / WEIGHTS, manifest.get("checksum"))
    try:
        encoder_arrays = {name.removeprefix("encoder."): a for name, a in arrays.items() if name.startswith("encoder.")}
        encoder = _encoder_class(manifest["encoder"]["kind"]).from_parts(manifest["encoder"]["config"], encoder_arrays)
        return LaplacianRepresentation(
            encoder=encoder,
            mu=arrays["mu"].astype(np.float64),
            dim=int(manifest["dim"]),
            definition=parse_definition(str(manifest["definition"])),
            exact=bool(manifest["exact"]),
            **{name: arrays.get(name) for name in MEASURED},
            orthonormality_error=_number_or_none(manifest.get("orthonormality_error")),
            next_mu=_number_or_none(manifest.get("next_mu")),
            metadata=dict(manifest.get("metadata") or {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, LapwingError):
            raise
        raise LapwingError(f"{folder / MANIFEST} lacks or garbles a field ({error}); the file is damaged") from error


def _notebook() -> Any:
    # Pictures are drawn from representations, so the module that draws them imports this one and cannot be imported
    # by it. As for encoders above, its name is enough, and it is loaded when somebody wants to look.
    return importlib.import_module("lapwing.notebook")


def _number_or_none(value: Any) -> float | None:
    return None if value is None else float(value)


def _load_arrays(path: Path, checksum: Any) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise LapwingError(f"{path} does not exist, though {MANIFEST} does; copy the whole folder")
    if zlib.crc32(path.read_bytes()) != checksum:
        raise LapwingError(f"{path} is damaged or belongs to another {MANIFEST}: checksums differ")
    try:
        return load_file(path)
    except (SafetensorError, ValueError, KeyError) as error:
        raise LapwingError(f"{path} is not a safetensors file: {error}") from error


def _encoder_class(kind: Any) -> Any:
    if kind not in ENCODER_HOMES:
        raise LapwingError(f"this representation uses an encoder of kind {kind!r}, unknown here; update lapwing")
    module, name = ENCODER_HOMES[kind].split(":")
    return getattr(importlib.import_module(module), name)
