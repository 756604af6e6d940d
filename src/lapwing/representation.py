"""The Laplacian representation: what the exact solver and learning both return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_path, shown
from lapwing.data.packing import RowFormat
from lapwing.definitions import Definition, as_definition, one_step, parse_definition
from lapwing.diagnostics.certificate import Certificate, certificate_from_residuals
from lapwing.diagnostics.problems import Problem, find_problems
from lapwing.encoders.cosine import CircleEncoder, CosineEncoder
from lapwing.encoders.encoder import Encoder
from lapwing.encoders.interpolated import InterpolatedEncoder
from lapwing.encoders.leading import LeadingEncoder
from lapwing.encoders.lookup import LookupEncoder
from lapwing.encoders.plain import PlainNetwork, plain_network
from lapwing.encoders.product_encoder import ProductEncoder
from lapwing.errors import ArgumentError, DamagedFileError, LapwingError
from lapwing.operators.clusters import DATA_TOLERANCE, EXACT_TOLERANCE, LEARNED_TOLERANCE
from lapwing.storage.models import read_model, write_model
from lapwing.storage.reading import convert
from lapwing.storage.schemas import EncoderRecord, LeadingRecord, ProductRecord, world_name

if TYPE_CHECKING:
    from jax import Array
    from matplotlib.figure import Figure

    from lapwing.data.trajectories import Trajectories

# Arrays that may come with a representation, one number per component.
MEASURED = ("residuals", "operator_values", "angles", "data_angles", "dual_gaps", "mu_errors")
FINITE = ("mu", "operator_values", "mu_errors")
SIZES = ("residuals", "angles", "data_angles", "dual_gaps", "mu_errors")

# A one-step eigenvalue below this is zero up to rounding.
SMALLEST_EIGENVALUE = 1e-13
# Up to so many observations NumPy is quicker than a call of a compiled program.
FEW_ROWS = 16


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
        dual_gaps: distance of the objective's estimate of each eigenvalue from the Rayleigh quotient, where learned.
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
            raise ArgumentError(
                f"{np.shape(self.mu)} eigenvalues and {self.encoder.dim} components do not make a representation "
                f"of {self.dim} dimensions"
            )
        for name in MEASURED:
            measured = getattr(self, name)
            # The first eigenvalue beyond the components may follow.
            lengths = (len(self.mu), len(self.mu) + 1) if name == "operator_values" else (len(self.mu),)
            if measured is not None and (measured.ndim != 1 or len(measured) not in lengths):
                raise ArgumentError(f"{name} of shape {measured.shape} do not fit {self.mu.shape} eigenvalues")

    def transform(self, observations: "ArrayLike | Mapping[str, ArrayLike]") -> NDArray[np.floating[Any]]:
        """Components of observations, ordered by eigenvalue, each with E[u^2] = 1.

        Args:
            observations: (n, ...) of any numeric type; a dictionary of such arrays where it was learned from several
                keys.

        Returns:
            (n, dim) values.
        """
        return self.transform_all(observations)[:, : self.dim]

    def transform_all(self, observations: "ArrayLike | Mapping[str, ArrayLike]") -> NDArray[np.floating[Any]]:
        """Like :meth:`transform`, with the components beyond ``dim`` that complete the last cluster.

        Args:
            observations: (n, ...) of any numeric type, or a dictionary of them.

        Returns:
            (n, encoder.dim) values.
        """
        if isinstance(observations, Mapping):
            layout = RowFormat.from_metadata(self.metadata)
            if layout is None:
                raise ArgumentError("this representation takes one array of observations, not a dictionary of several")
            return self.encoder.encode(layout.pack(observations))
        try:
            given = np.asarray(observations)
        except ValueError as error:
            raise ArgumentError(f"observations must be one array, all of the same shape: {error}") from error
        if self._plain is not None and given.ndim and len(given) <= FEW_ROWS:
            values = self._plain(given)
            return values.astype(np.float64) if self.encoder.kind == "rotated" else values
        return self.encoder.encode(given)

    @cached_property
    def _plain(self) -> PlainNetwork | None:
        """The network in NumPy, quicker than JAX for a few observations; None for tables and other encoders."""
        try:
            return plain_network(self.encoder, self.encoder.dim)
        except ArgumentError:
            return None

    def apply(self, observations: Any) -> "Array":
        """Components inside JAX: :meth:`transform` as a pure function for ``jax.jit`` and ``jax.vmap``.

        A network is evaluated on the device and can be differentiated. Tables and closed forms are evaluated on the
        host through a callback, which has no gradient, and in which an unknown observation is an error of JAX's.

        Args:
            observations: (n, ...) array of JAX or NumPy; inside ``jax.vmap`` too it is a batch.

        Returns:
            (n, dim) values in JAX's default precision.

        Example:
            >>> import jax, lapwing as lw
            >>> model, world = lw.solve("room:3x3", dim=3), lw.make_world("room:3x3")
            >>> jax.jit(model.apply)(world.table()).shape
            (9, 3)
            >>> jax.vmap(lambda one: model.apply(one[None])[0])(world.table()).shape  # one observation at a time
            (9, 3)
        """
        from lapwing.encoders.networks import apply_encoder  # which loads JAX

        return apply_encoder(self.encoder, observations)[:, : self.dim]

    def embedding(self, observations: "ArrayLike", scaled: bool = True) -> NDArray[np.floating[Any]]:
        """Components without the constant one, scaled so that squared distances are commute times.

        The scaled form is ``psi_i = u_i / sqrt(lambda_i)`` with one-step eigenvalues (Wang et al., 2023); see
        :mod:`lapwing.applications` for what its distances are.

        Args:
            observations: (n, ...) of any numeric type.
            scaled: False for the plain components u_i.

        Returns:
            (n, dim - 1) values, components 2 to ``dim``.

        Raises:
            ArgumentError: where ``dim`` is 1, or an eigenvalue beyond the first is 0: the world is in unconnected
                parts, and no finite scale keeps them apart.
        """
        if self.dim < 2:
            raise ArgumentError("an embedding leaves out the constant component, and this is all there is; take dim=2")
        values = self.transform(observations)[:, 1:]
        if not scaled:
            return values
        eigenvalues = 1.0 - self.mu[1 : self.dim]
        if not eigenvalues.min() > SMALLEST_EIGENVALUE:
            number = 2 + int(np.argmin(eigenvalues))
            raise ArgumentError(
                f"eigenvalue {number} is {eigenvalues.min():.2g}, not above 0: the world is in unconnected parts, and "
                "times between them are infinite; take scaled=False, or one part of the world"
            )
        return values / np.sqrt(eigenvalues)

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """(dim,) eigenvalues, ascending, in :attr:`definition`."""
        return self.eigenvalues_in(self.definition)

    def eigenvalues_in(self, definition: Definition | str) -> NDArray[np.float64]:
        """Eigenvalues in another definition.

        Args:
            definition: e.g. ``successor(0.9)``, or its text.

        Returns:
            (dim,) eigenvalues, ascending.
        """
        return as_definition(definition).from_mu(self.mu[: self.dim])

    def error_bars_in(self, definition: Definition | str) -> NDArray[np.float64]:
        """Standard errors of :meth:`eigenvalues_in`, to first order.

        Args:
            definition: e.g. ``successor(0.9)``, or its text.

        Returns:
            (dim,) standard errors; zero for exact dynamics.
        """
        chosen = as_definition(definition)
        if self.mu_errors is None:
            return np.zeros(self.dim)
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
        """How far each component can be trusted, estimated without a ground truth; computed once.

        Returns:
            Verdicts and error estimates for the ``dim`` components.
        """
        if self.residuals is None or self.orthonormality_error is None:
            raise ArgumentError("this representation holds no residuals, from which a certificate is computed")
        return self._certificate

    @cached_property
    def _certificate(self) -> Certificate:
        assert self.residuals is not None
        assert self.orthonormality_error is not None
        following = None if self.next_mu is None else 1.0 - self.next_mu
        measured = (self.operator_values, self.angles, self.data_angles, self.dual_gaps)
        found = certificate_from_residuals(
            1.0 - self.mu, self.residuals, self.orthonormality_error, self.tolerance, following, *measured
        )
        return found.first(self.dim)

    def problems(self) -> list[Problem]:
        """Reasons not to trust it, found without a ground truth; computed once.

        Returns:
            Problems, most serious first; empty where nothing is wrong.
        """
        return list(self._problems)

    @cached_property
    def _problems(self) -> list[Problem]:
        known = self.residuals is not None and self.orthonormality_error is not None and np.isfinite(self.mu).all()
        arrays = self.encoder.arrays().values()
        return find_problems(self.mu[: self.dim], arrays, self.certificate() if known else None, self.metadata)

    def save(self, path: str | Path) -> Path:
        """Write ``model.safetensors`` and ``model.json``; nothing is lost if that fails or is killed.

        A network of the user's own is saved without its code: see :func:`load`.

        Args:
            path: the folder, created if need be.

        Returns:
            The folder.
        """
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

    def export(self, path: str | Path, weights: str | Path | None = None) -> list[Path]:
        """Write the network for other libraries: ONNX, or a PyTorch module that needs torch and safetensors alone.

        Networks of kind ``mlp``, ``fourier`` and ``conv`` can be written. Observations are float32; those of images
        are pixels as they were collected, which the network scales itself.

        Args:
            path: a file that ends in ``.onnx``, or in ``.py`` for the source of a PyTorch module.
            weights: where the weights of a PyTorch module go, a file that ends in ``.safetensors``; None for the name
                of the source.

        Returns:
            The files that were written.

        Example:
            >>> import lapwing as lw
            >>> model = lw.learn(lw.collect("room:3x3", 300, seed=0), dim=2, steps=4, refine="none", seed=0)
            >>> [file.name for file in model.export("exported/room.py")]
            ['room.safetensors', 'room.py']
        """
        from lapwing.exporting import export_network  # which loads safetensors

        title = f"Laplacian representation of {world_name(self.metadata, 'an environment')}"
        return export_network(plain_network(self.encoder, self.dim), self.eigenvalues, title, path, weights)

    def plot(
        self, components: Sequence[int] | None = None, what: str = "eigenvectors", data: "Trajectories | None" = None
    ) -> "Figure":
        """A picture of the representation.

        Args:
            components: which ones, counted from 1; all unless given, of eigenvectors the first few.
            what: ``eigenvectors`` on the world or at the observations of ``data``, the ``spectrum``, the ``curves`` of
                learning, or the ``trajectories`` of components over time along some episodes of ``data``.
            data: experience, for trajectories, and for eigenvectors in an environment that has no map.

        Returns:
            A Matplotlib figure.

        Example:
            >>> import lapwing as lw
            >>> data = lw.collect("GridMaze-7", 200, seed=0)
            >>> figure = lw.solve(data, dim=3).plot(what="trajectories", data=data)
        """
        # The one import that points backwards: drawing needs this module, and is loaded on first use.
        from lapwing.report.notebook import plot_model

        return plot_model(self, components, what, data)

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        from lapwing.report.notebook import model_html

        return model_html(self)

    def __repr__(self) -> str:
        """One line: of what, how many components, and which eigenvalues."""
        name = world_name(self.metadata, "?")
        kind = "exact" if self.exact else "from data"
        values = ", ".join(f"{value:.4g}" for value in self.eigenvalues[:4])
        more = ", ..." if self.dim > 4 else ""
        return (
            f"LaplacianRepresentation({name}, {kind}, dim={self.dim}, {self.definition} eigenvalues [{values}{more}])"
        )


def load(path: str | Path, encoder: Any = None) -> LaplacianRepresentation:
    """Read a representation that :meth:`LaplacianRepresentation.save` wrote; no code in the files is run.

    Args:
        path: the folder.
        encoder: for a model with a network of your own, a network of the same structure; its arrays are replaced by
            the saved ones, after names, shapes and types have been compared.

    Returns:
        The representation, whose ``transform`` gives the same bits as that of the saved one.

    Raises:
        DamagedFileError: files that are torn, changed or not of this package.
        ArgumentError: a network of your own that is not given, or does not fit.

    Example:
        >>> load("runs/mine", encoder=network).transform(observations)  # doctest: +SKIP
    """
    folder = as_path(path, "the folder of a representation")
    manifest, arrays = read_model(folder)
    try:
        _check_arrays(arrays)
        loaded = _load_encoder(manifest.encoder, arrays, encoder)
    except LapwingError as error:
        raise type(error)(f"cannot load {folder}: {error}") from error
    known = {name: value for name, value in structs.asdict(manifest).items() if name not in ("encoder", "checksum")}
    try:
        known |= {"definition": parse_definition(manifest.definition), "encoder": loaded, "mu": arrays["mu"]}
        return LaplacianRepresentation(**known | {name: arrays.get(name) for name in MEASURED})
    except LapwingError as error:
        raise DamagedFileError(f"{folder} does not hold a valid representation: {error}") from error


def _load_encoder(record: EncoderRecord, arrays: dict[str, NDArray[Any]], module: Any) -> Encoder:
    """The encoder among the arrays of a file; ``module`` is a network of the user's own to put them in."""
    inside = {name.removeprefix("encoder."): array for name, array in arrays.items() if name.startswith("encoder.")}
    if record.kind == "rotated":
        from lapwing.encoders.networks import RotatedEncoder  # which loads JAX

        return RotatedEncoder.from_parts(record.config, inside, module)
    if module is not None:
        raise ArgumentError(f"this model uses an encoder of kind {record.kind!r}, which is loaded without encoder=")
    if record.kind == "lookup":
        return LookupEncoder.from_arrays(inside)
    if record.kind == "cosine":
        return CosineEncoder.from_arrays(inside)
    if record.kind == "circle":
        return CircleEncoder.from_arrays(inside)
    if record.kind == "interpolated":
        return InterpolatedEncoder.from_arrays(inside)
    if record.kind == "product":
        product = convert(record.config, ProductRecord, "the product of encoders")
        factors = []
        for number, factor in enumerate(product.factors):
            if factor.kind in ("leading", "product"):
                raise DamagedFileError("the factors of a product stand for others; the file is damaged")
            begin = f"{number}."
            own = {f"encoder.{n.removeprefix(begin)}": array for n, array in inside.items() if n.startswith(begin)}
            factors.append(_load_encoder(factor, own, None))
        return ProductEncoder.from_arrays(factors, product.widths, inside)
    if record.kind == "leading":
        parts = convert(record.config, LeadingRecord, "the encoder of leading entries")
        if parts.inner.kind == "leading":
            raise DamagedFileError("an encoder of leading entries stands behind another; the file is damaged")
        behind = {f"encoder.{name.removeprefix('inner.')}": array for name, array in inside.items() if "." in name}
        return LeadingEncoder.from_arrays(parts.columns, _load_encoder(parts.inner, behind, None), inside)
    raise DamagedFileError(f"its encoder is of kind {shown(record.kind)}, unknown here; update lapwing")


def _check_arrays(arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse arrays of another type, NaN in what must be a number, and negative sizes.

    A residual that is not known is NaN, and an angle infinity; neither ever counts as trusted.
    """
    if "mu" not in arrays:
        raise DamagedFileError("the eigenvalues mu are missing; the file is damaged")
    for name, array in arrays.items():
        inside = name.startswith("encoder.")
        if not inside and name not in ("mu", *MEASURED):
            raise DamagedFileError(f"there is an unknown array {shown(name)}; the file is damaged, or update lapwing")
        if not inside and array.dtype != np.float64:
            raise DamagedFileError(f"{name} must be float64, got {array.dtype}; the file is damaged")
        if (inside or name in FINITE) and not np.isfinite(array).all():
            raise DamagedFileError(f"{shown(name)} holds NaN or infinity; the file is damaged")
        if name in SIZES and (array < 0).any():
            raise DamagedFileError(f"{name} holds numbers below zero; the file is damaged")
