# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""Networks as encoders: built by name with plain-data options, or brought by the user; saved, loaded and rotated."""

import functools
import inspect
import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from lapwing.checks import shown
from lapwing.data.packing import RowFormat
from lapwing.encoders.convolution import conv
from lapwing.encoders.encoder import Encoder
from lapwing.encoders.fourier import fourier, fourier_statistics
from lapwing.encoders.layers import Statistics, byte_statistics, image_statistics, vector_statistics
from lapwing.encoders.lookup import LookupEncoder
from lapwing.encoders.mlp import mlp
from lapwing.encoders.plain import check_shape, checked_numbers
from lapwing.encoders.several import several, several_statistics
from lapwing.encoders.table import table
from lapwing.errors import ArgumentError, DamagedFileError, LapwingError, UnknownNameError, did_you_mean
from lapwing.storage.reading import convert, forget_pages
from lapwing.storage.schemas import NetworkRecord, RotatedRecord

CHUNK_ROWS = 4096
"""Rows encoded at once: large enough for full speed, small enough for images of any number."""

OWN = "own"
"""The kind of networks that users bring."""

# Options of a factory that callers set from the data; all others are the user's.
GIVEN = ("observation_shape", "dim", "key", "statistics", "states", "entries", "kinds")
# A file may list that many options whatever the size of its arrays.
FEW_OPTIONS = 1000

Module = TypeVar("Module")
Network = Callable[[Array], Array]


class EncoderKind(NamedTuple):
    """A row of :data:`ENCODERS`: how to build one kind of network.

    Attributes:
        build: ``(observation_shape, dim, *, key, **options)`` to an Equinox module from (n, *observation_shape) to
            (n, dim). Options are plain data: numbers, text, booleans, None, lists and dictionaries of them. Models
            are loaded by calling it again without computing anything, so it must use ``jax.numpy`` for its arrays. If
            it takes ``statistics``, it keeps them in a field ``inputs``, a :class:`Standardise`.
        statistics: ``(observations, weights)`` to what inputs are centred and scaled by; None for raw inputs.
    """

    build: Callable[..., Network]
    statistics: Callable[[NDArray[Any], NDArray[Any] | None], Statistics | None] | None = None


ENCODERS: dict[str, EncoderKind] = {
    "mlp": EncoderKind(mlp, vector_statistics),
    "fourier": EncoderKind(fourier, fourier_statistics),
    "conv": EncoderKind(conv, image_statistics),
    "several": EncoderKind(several),
    "table": EncoderKind(table),
}
"""Networks by name: adding one is a file and a row."""

LOW_DIMENSIONS = 8
# Arrays with fewer rows or columns are tables of numbers, such as a few stacked vectors, and not images.
SHORTEST_SIDE = 4
"""Up to this many continuous inputs, random Fourier features cover the space well enough to be the default."""


def default_kind(observation_shape: Sequence[int]) -> str:
    """The kind that suits a shape: images ``conv``, a few continuous numbers ``fourier``, anything else ``mlp``.

    Args:
        observation_shape: shape of one observation.

    Returns:
        A key of :data:`ENCODERS`.

    Example:
        >>> default_kind((41, 41, 3)), default_kind((2,)), default_kind((271,))
        ('conv', 'fourier', 'mlp')
    """
    shape = tuple(observation_shape)
    if len(shape) in (2, 3, 4) and sorted(shape)[-2] >= SHORTEST_SIDE:
        return "conv"
    return "fourier" if len(shape) == 1 and shape[0] <= LOW_DIMENSIONS else "mlp"


def encoder_options(kind: str) -> dict[str, Any]:
    """The options that a kind of network takes, with their defaults, from its factory's signature.

    Args:
        kind: a key of :data:`ENCODERS`.

    Returns:
        Defaults by name.

    Example:
        >>> encoder_options("mlp")
        {'hidden': (256, 256, 256), 'activation': 'relu', 'outputs': 'linear'}
    """
    parameters = inspect.signature(_row(kind).build).parameters.values()
    return {one.name: one.default for one in parameters if one.name not in GIVEN}


def encoder_statistics(
    kind: str, observations: NDArray[Any], weights: NDArray[Any] | None = None, raw: bool = False
) -> Statistics | None:
    """What a kind of network centres and scales its inputs by.

    Args:
        kind: a key of :data:`ENCODERS`.
        observations: (n, ...) of the data.
        weights: (n,) how often each row occurs; None counts each once.
        raw: leave inputs as they are, but for images of bytes, which are divided by 255, as in the paper's experiments:
            larger numbers would make outputs of the first steps so large that ALLO's barrier grows to its maximum.

    Returns:
        Statistics for :func:`build_encoder`; None where inputs stay as they are.
    """
    if raw:
        return byte_statistics(observations) if kind == "conv" else None
    measure = _row(kind).statistics
    return None if measure is None else measure(observations, weights)


def kinds_of_entries(layout: RowFormat) -> list[str]:
    """The kind of network that suits each entry of packed observations.

    Args:
        layout: of the rows.

    Returns:
        Keys of :data:`ENCODERS`, in the order of the entries.
    """
    return [default_kind(entry.shape) for entry in layout.entries]


def packed_statistics(packed: NDArray[np.uint8], weights: NDArray[Any] | None, layout: RowFormat) -> Statistics:
    """What a network of several inputs centres and scales them by.

    Args:
        packed: (n, bytes) rows.
        weights: (n,) how often each occurs; None counts each once.
        layout: of the rows.

    Returns:
        Statistics of all numbers of an observation, for :func:`build_encoder`.
    """
    measures = [functools.partial(encoder_statistics, kind) for kind in kinds_of_entries(layout)]
    return several_statistics(packed, weights, layout, measures)


def build_encoder(
    kind: str, observation_shape: Sequence[int], dim: int, key: Array, **options: Any
) -> "NetworkEncoder":
    """A new network by name, its weights a function of ``key`` alone.

    Args:
        kind: a key of :data:`ENCODERS`; :func:`default_kind` chooses by shape.
        observation_shape: shape of one observation; ``()`` for a table, whose observations are ids.
        dim: how many components.
        key: the source of randomness.
        options: those of the kind's factory (:func:`encoder_options`), ``statistics``, and for a table ``states``.

    Returns:
        The encoder.

    Example:
        >>> build_encoder("fourier", (2,), 11, jax.random.key(0), scales=(3.0, 30.0)).dim
        11
        >>> build_encoder("table", (), 4, jax.random.key(0), states=20).module.values.shape
        (20, 4)
    """
    build, statistics = _row(kind).build, options.pop("statistics", None)
    signature = inspect.signature(build)
    known = set(signature.parameters) - {"observation_shape", "dim", "key", "statistics"}
    for name in options:
        if name not in known:
            raise UnknownNameError(f"encoder {kind!r} has no option {name!r}; {did_you_mean(name, known)}")
    chosen = {name: signature.parameters[name].default for name in known} | options
    if missing := [name for name, value in chosen.items() if value is inspect.Parameter.empty]:
        raise ArgumentError(f"encoder {kind!r} needs the option {min(missing)!r}")
    try:
        # As a file would give them back, so that the network is built from the same options when it is loaded.
        text = json.dumps(chosen, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"options of encoder {kind!r} must be plain data: {error}; got {shown(options)}") from error
    given = json.loads(text)
    if "statistics" in signature.parameters:
        given["statistics"] = statistics
    shape = tuple(observation_shape)
    try:
        module = build(shape, dim, key=key, **given)
    except LapwingError:
        raise
    except Exception as error:  # wrong types or sizes fail inside JAX in too many ways to list
        raise ArgumentError(f"encoder {kind!r} cannot be built with {shown(options)}: {_reason(error)}") from error
    return NetworkEncoder(module, kind, shape, dim, text)


def own_encoder(module: Network, observation_shape: Sequence[int]) -> "NetworkEncoder":
    """A user's own network as an encoder.

    Every array of floats in it is trained, except inside a :class:`lapwing.encoders.Constant`. Modules that a plain
    function refers to are found, so ``jax.vmap(network)`` and a lambda around a module will do.

    Args:
        module: a callable from (n, *observation_shape) to (n, dim): an Equinox module, or a function around some.
        observation_shape: shape of one observation.

    Returns:
        The encoder.

    Example:
        >>> mine = jax.vmap(eqx.nn.MLP(2, 3, 16, 2, key=jax.random.key(0)))
        >>> encoder = own_encoder(mine, observation_shape=(2,))
        >>> encoder.dim, encoder.encode(np.zeros((4, 2))).shape
        (3, (4, 3))
    """
    shape = tuple(observation_shape)
    if isinstance(module, NetworkEncoder):
        # What `learn` was given, given to `load` again.
        module = module.module
    # NumPy arrays become JAX's, of the types that training and files will have.
    arrays, rest = eqx.partition(_with_visible_modules(module), eqx.is_array)
    visible = eqx.combine(jax.tree.map(jnp.asarray, arrays), rest)
    batch = jax.ShapeDtypeStruct((2, *shape), np.float32)  # type: ignore[no-untyped-call]
    try:
        out = eqx.filter_eval_shape(visible, batch)
    except Exception as error:
        raise ArgumentError(f"the module failed on a batch of shape {(2, *shape)}: {_reason(error)}") from error
    if getattr(out, "ndim", None) != 2 or out.shape[0] != 2:
        raise ArgumentError(
            f"the module must map (n, {', '.join(map(str, shape))}) to (n, dim); "
            f"for 2 rows it gave {getattr(out, 'shape', type(out).__name__)}"
        )
    return NetworkEncoder(visible, OWN, shape, out.shape[1], json.dumps({"module": _name_of(module)}))


class NetworkEncoder(eqx.Module):
    """A network with what is needed to encode NumPy observations with it and to save it.

    Make one with :func:`build_encoder` or :func:`own_encoder`.

    Attributes:
        module: from (n, *observation_shape) to (n, dim).
        kind: a key of :data:`ENCODERS`, or ``own``.
        observation_shape: shape of one observation.
        dim: how many components it gives.
        options: of the factory, as JSON: text, so that the encoder's structure can be hashed.
    """

    module: Network
    kind: str = eqx.field(static=True)
    observation_shape: tuple[int, ...] = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    options: str = eqx.field(static=True)

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """Components of a batch, inside JAX.

        Args:
            batch: (n, *observation_shape).

        Returns:
            (n, dim).
        """
        return self.module(batch)

    def encode(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Components of NumPy observations, compiled, a chunk of rows at a time.

        Chunks are padded to a power of two, so that a handful of programs serve any number of rows.

        Args:
            observations: (n, *observation_shape) of any numeric type.

        Returns:
            (n, dim) values.
        """
        given = np.asarray(observations)
        check_shape(given, self.observation_shape)
        values = np.empty((len(given), self.dim), dtype=np.float32)
        for start in range(0, len(given), CHUNK_ROWS):
            rows = checked_numbers(given[start : start + CHUNK_ROWS])
            size = min(CHUNK_ROWS, 1 << (len(rows) - 1).bit_length())
            padded = np.concatenate([rows, np.broadcast_to(rows[:1], (size - len(rows), *rows.shape[1:]))])
            values[start : start + len(rows)] = np.asarray(_apply(self.module, padded))[: len(rows)]
            forget_pages(given)
        return values

    def config(self) -> dict[str, Any]:
        """Shape, components and options.

        Returns:
            A dictionary of JSON types.
        """
        return {"observation_shape": list(self.observation_shape), "dim": self.dim, **json.loads(self.options)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every array of the network.

        Returns:
            Arrays by path, such as ``network.layers.0.weight``; below ``module.`` if it is a user's own.
        """
        return named_arrays(self if self.kind == OWN else self.module)

    @classmethod
    def from_parts(
        cls, kind: str, config: dict[str, Any], arrays: dict[str, NDArray[Any]], module: Network | None = None
    ) -> Self:
        """The encoder that was saved, bit for bit.

        A configuration from a file is only used to compute shapes, which must be those of the arrays, so nothing is
        allocated because a file says so.

        Args:
            kind: a key of :data:`ENCODERS`, or ``own``.
            config: what :meth:`config` gave.
            arrays: what :meth:`arrays` gave.
            module: a network of the structure that was saved, if it is a user's own.

        Returns:
            The encoder.
        """
        if kind == OWN and module is None:
            raise ArgumentError(
                f"this model uses a network of your own, {shown(config.get('module'))}, and files hold no code: "
                "build a network of the same structure and load with lw.load(path, encoder=network)"
            )
        known = convert(config, NetworkRecord, "the encoder's configuration")
        if kind == OWN:
            assert module is not None
            own = own_encoder(module, known.observation_shape)
            return with_named_arrays(own, arrays, ArgumentError)  # type: ignore[return-value]
        if module is not None:
            raise ArgumentError(f"this model uses a network of kind {kind!r}, which is loaded without encoder=")
        if kind not in ENCODERS:
            raise DamagedFileError(
                f"the network is of kind {kind!r}, unknown here; update lapwing, or add it to ENCODERS"
            )
        if not arrays or _count(config) > max(FEW_OPTIONS, sum(array.size for array in arrays.values())):
            raise DamagedFileError("the encoder's configuration is longer than its arrays; the file is damaged")
        options = {name: value for name, value in config.items() if name not in ("observation_shape", "dim")}
        if options.keys() & {"key", "statistics"}:
            raise DamagedFileError("the encoder's configuration sets what it cannot set; the file is damaged")
        if "statistics" in inspect.signature(ENCODERS[kind].build).parameters:
            options["statistics"] = _saved_statistics(arrays)
        try:
            build = functools.partial(build_encoder, kind, known.observation_shape, known.dim, **options)
            template = eqx.filter_eval_shape(build, jax.random.key(0))
        except (LapwingError, TypeError) as error:
            raise DamagedFileError(f"the encoder's configuration does not fit its kind: {error}") from error
        filled = with_named_arrays(template.module, arrays, DamagedFileError)
        return cls(filled, kind, template.observation_shape, template.dim, template.options)


class RotatedEncoder:
    """``inner(observations) @ matrix``: the rotation, scaling and choice of components that ends learning.

    Args:
        inner: a learned encoder.
        matrix: (inner.dim, dim), or (1 + inner.dim, dim) with a first row for the constant function 1.
    """

    kind: ClassVar[str] = "rotated"

    def __init__(self, inner: Encoder, matrix: NDArray[np.float64]) -> None:
        """Keep both; the matrix in order of rows, as files hold it, because products round by the layout."""
        self.inner = inner
        self.matrix = np.ascontiguousarray(matrix)

    @property
    def dim(self) -> int:
        """How many components the matrix leaves."""
        return int(self.matrix.shape[1])

    def encode(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """Rotated components.

        Args:
            observations: (n, ...) as the inner encoder takes them.

        Returns:
            (n, dim) values.
        """
        values = np.asarray(self.inner.encode(observations), dtype=np.float64)
        if len(self.matrix) == self.inner.dim:
            return values @ self.matrix
        return self.matrix[0] + values @ self.matrix[1:]

    def config(self) -> dict[str, Any]:
        """The inner encoder's kind and configuration.

        Returns:
            A dictionary of JSON types.
        """
        return {"inner": {"kind": self.inner.kind, "config": self.inner.config()}}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The matrix, and the inner encoder's arrays.

        Returns:
            Arrays by name.
        """
        return {"matrix": self.matrix, **{f"inner.{name}": array for name, array in self.inner.arrays().items()}}

    @classmethod
    def from_parts(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]], module: Network | None = None) -> Self:
        """The encoder that was saved.

        Args:
            config: what :meth:`config` gave.
            arrays: what :meth:`arrays` gave.
            module: a network of the structure that was saved, if it is a user's own.

        Returns:
            The encoder.
        """
        parts = convert(config, RotatedRecord, "the encoder's configuration").inner
        inside = {name.removeprefix("inner."): array for name, array in arrays.items() if name.startswith("inner.")}
        inner = NetworkEncoder.from_parts(parts.kind, parts.config, inside, module)
        matrix = arrays.get("matrix")
        if matrix is None or matrix.dtype != np.float64 or matrix.ndim != 2:
            raise DamagedFileError("the rotation is missing or not a matrix of float64; the file is damaged")
        if matrix.shape[0] not in (inner.dim, inner.dim + 1) or not matrix.shape[1]:
            raise DamagedFileError(f"a rotation of shape {matrix.shape} does not fit {inner.dim} components")
        return cls(inner, matrix)


def apply_encoder(encoder: Encoder, batch: Any) -> Array:
    """Components of a batch inside JAX: networks as they are, other encoders by a callback to the host.

    Args:
        encoder: any encoder.
        batch: (n, ...) observations.

    Returns:
        (n, dim) values in JAX's default precision.
    """
    given = jnp.asarray(batch)
    shape = getattr(encoder, "observation_shape", None)
    if given.ndim == 0 or (shape is not None and given.shape[1:] != shape):
        wanted = "..." if shape is None else ", ".join(map(str, shape))
        raise ArgumentError(f"this encoder takes (n, {wanted}) observations, got shape {given.shape}")
    if isinstance(encoder, NetworkEncoder):
        return encoder(given)
    if isinstance(encoder, RotatedEncoder):
        values, matrix = apply_encoder(encoder.inner, given), jnp.asarray(encoder.matrix)
        return values @ matrix if len(matrix) == encoder.inner.dim else matrix[0] + values @ matrix[1:]
    dtype = jnp.zeros(()).dtype
    table = encoder.observations if isinstance(encoder, LookupEncoder) else None
    if table is not None and table.dtype.kind == "f" and jnp.asarray(table[:1]).dtype != table.dtype:
        # JAX rounds what it is given, and so must the table.
        encoder = LookupEncoder(table.astype(np.float32), encoder.values, encoder.weights)  # type: ignore[attr-defined]

    def encode(rows: Any) -> NDArray[Any]:
        # Inside vmap the callback sees the axes of all batches at once.
        flat = np.asarray(rows).reshape(-1, *given.shape[1:])
        return encoder.encode(flat).astype(dtype).reshape(*rows.shape[: rows.ndim - given.ndim + 1], encoder.dim)

    result = jax.ShapeDtypeStruct((len(given), encoder.dim), dtype)  # type: ignore[no-untyped-call]
    return jax.pure_callback(encode, result, given, vmap_method="expand_dims")


def named_arrays(module: Any) -> dict[str, NDArray[Any]]:
    """Every array of a module.

    Args:
        module: any pytree.

    Returns:
        Arrays by path, such as ``network.layers.0.weight``.
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(module, eqx.is_array))
    return {_path_name(path): np.asarray(leaf) for path, leaf in leaves}


def with_named_arrays(template: Module, arrays: Mapping[str, NDArray[Any]], wrong: type[LapwingError]) -> Module:
    """A module of the template's structure that holds other arrays.

    Args:
        template: a module, or one of shapes only, as ``equinox.filter_eval_shape`` gives.
        arrays: by path, as :func:`named_arrays` gives them; names, shapes and types must all fit.
        wrong: the error to raise where they do not.

    Returns:
        The module with the arrays in place.
    """
    holes, rest = eqx.partition(template, lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct))
    leaves, structure = jax.tree_util.tree_flatten_with_path(holes)
    names = [_path_name(path) for path, _ in leaves]
    if set(names) != set(arrays):
        lacking, extra = sorted(set(names) - set(arrays)), sorted(set(arrays) - set(names))
        raise wrong(f"the arrays are not those of this network: missing {shown(lacking)}, unknown {shown(extra)}")
    for name, (_, leaf) in zip(names, leaves, strict=True):
        found = arrays[name]
        if found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise wrong(
                f"array {name} is {found.dtype} {found.shape}, but this network needs {leaf.dtype} {leaf.shape}"
            )
    filled = jax.tree.unflatten(structure, [jnp.asarray(arrays[name]) for name in names])
    return eqx.combine(filled, rest)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["modules"], meta_fields=["function"])
@dataclass(frozen=True)
class FunctionAroundModules:
    """A plain function whose modules are visible as parts of a pytree, so that their arrays are trained and saved.

    Attributes:
        modules: what the function refers to, by the name of the variable.
        function: the function; it is called with ``modules`` in place of those variables.
    """

    modules: dict[str, Any]
    function: Any

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function on the present modules."""
        given, code = self.function, self.function.__code__
        cells = tuple(
            types.CellType(self.modules[name]) if name in self.modules else cell
            for name, cell in zip(code.co_freevars, given.__closure__ or (), strict=True)
        )
        scope = given.__globals__ | {n: m for n, m in self.modules.items() if n not in code.co_freevars}
        bound = types.FunctionType(code, scope, given.__name__, given.__defaults__, cells)
        bound.__kwdefaults__ = given.__kwdefaults__
        return bound(*args, **options)


def _with_visible_modules(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """A function with the Equinox modules in its closure and globals made visible; anything else as it is."""
    if id(value) in seen:  # a function that refers to itself
        return value
    seen = seen | {id(value)}
    if isinstance(value, types.MethodType):
        value = functools.partial(value.__func__, value.__self__)
    if isinstance(value, functools.partial):
        return eqx.Partial(_with_visible_modules(value.func, seen), *value.args, **value.keywords)
    if not isinstance(value, types.FunctionType):
        # `jax.jit` of a module hides it, and changes nothing that matters here.
        inner = None if isinstance(value, eqx.Module) else getattr(value, "__wrapped__", None)
        return value if inner is None else _with_visible_modules(inner, seen)
    modules = {}
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        try:
            found = _with_visible_modules(cell.cell_contents, seen)
        except ValueError:  # a variable that is not set yet
            continue
        if _holds_modules(found):
            modules[name] = found
    for name in _global_names(value.__code__):
        if _holds_modules(value.__globals__.get(name)):
            modules[name] = value.__globals__[name]
    return FunctionAroundModules(modules, value) if modules else value


def _holds_modules(value: Any) -> bool:
    leaves = jax.tree.leaves(value, is_leaf=lambda leaf: isinstance(leaf, eqx.Module))
    return any(isinstance(leaf, eqx.Module) for leaf in leaves)


def _global_names(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*(_global_names(one) for one in inner))


def _name_of(module: Any) -> str:
    return str(getattr(module, "__qualname__", type(module).__qualname__))[:100]


def _row(kind: str) -> EncoderKind:
    if kind not in ENCODERS:
        raise UnknownNameError(f"no encoder {kind!r}; {did_you_mean(str(kind), ENCODERS)}")
    return ENCODERS[kind]


def _saved_statistics(arrays: Mapping[str, NDArray[Any]]) -> Statistics:
    """The statistics among a network's arrays, which decide the shape of its scale."""
    centre, scale = arrays.get("inputs.centre.array"), arrays.get("inputs.scale.array")
    if centre is None or scale is None:
        raise DamagedFileError("the encoder lacks the statistics of its inputs; the file is damaged")
    return Statistics(centre, scale)


def _count(value: Any) -> int:
    """How many single values plain data hold."""
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list) else 1


def _path_name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _reason(error: Exception) -> str:
    """The first line of an error's message."""
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


@eqx.filter_jit
def _apply(module: Any, batch: Any) -> Any:
    return module(batch)
