"""Other people's losses and dual updates: called by the names of their arguments, checked, and differentiated."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from lapwing.checks import as_real, as_reals, shown
from lapwing.errors import ArgumentError, LapwingError, did_you_mean
from lapwing.objectives import AlloState, BarrierState, Objective, Values

Array = NDArray[np.float64]

COMPONENTS = ("start", "end", "first", "second")
"""Arguments that hold components; the others are duals, barrier, errors and a state."""

OF_THE_LOSS = (*COMPONENTS, "duals", "barrier")
OF_THE_READ_OUT = (*OF_THE_LOSS, "error_first", "error_second")
OF_THE_UPDATE = (*OF_THE_READ_OUT, "state")

# Wide enough for losses that compute in float32.
DIFFERENCE = 1e-3


class DualState(NamedTuple):
    """What a dual update returns, and ``init`` before the first one.

    Attributes:
        duals: (d, d) lower-triangular.
        barrier: the coefficient of the penalty; None where the update leaves it alone.
        state: of an optimiser, where the update has one.
    """

    duals: Array
    barrier: float | None = None
    state: Any = None


@dataclass(frozen=True)
class PortedFunction:
    """A function of somebody else, called with those of the offered arguments that its signature names.

    Attributes:
        function: the function.
        label: what it is, for messages.
        names: of its arguments.
    """

    function: Callable[..., Any]
    label: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, function: Any, label: str, offered: Sequence[str]) -> "PortedFunction":
        """Read the signature.

        Args:
            function: what was given.
            label: what it is, for messages.
            offered: names of arguments that it may have.

        Returns:
            The function, ready to be called.

        Raises:
            ArgumentError: where it is not a function, or has an argument that is not offered.
        """
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{label} must be a function with a signature, got {shown(function)}") from error
        names = []
        for one in parameters:
            if one.kind is one.VAR_KEYWORD:
                names += [name for name in offered if name not in names]
            elif one.name in offered and one.kind is not one.POSITIONAL_ONLY:
                names.append(one.name)
            elif one.default is one.empty and one.kind is not one.VAR_POSITIONAL:
                near = did_you_mean(one.name, offered)
                raise ArgumentError(f"{label} has an argument {one.name!r}, and arguments are given by name; {near}")
        return cls(function, label, tuple(names))

    def traced(self, **offered: Any) -> Any:
        """The result as it is, inside JAX.

        Args:
            offered: all arguments there are.

        Returns:
            What the function returns.
        """
        return self.function(**{name: offered[name] for name in self.names})

    def __call__(self, **offered: Any) -> Any:
        """The result; an exception becomes a message.

        Args:
            offered: all arguments there are; arrays are copied, so that they may be changed in place.

        Returns:
            What the function returns.

        Raises:
            ArgumentError: with the type and text of the exception.
        """
        try:
            return self.traced(**{name: one.copy() if hasattr(one, "copy") else one for name, one in offered.items()})
        except LapwingError:
            raise
        except Exception as error:  # somebody else's code raises anything
            shapes = ", ".join(f"{name} {np.shape(offered[name])}" for name in self.names if name != "state")
            raise ArgumentError(f"{self.label} raised {shown(error)}; it was called with {shapes}") from error


class Port:
    """A loss with all that belongs to it, evaluated where the components are those of a table of states.

    Args:
        loss: of named arguments, see :func:`lapwing.check_loss`; or an :class:`Objective`.
        update: of the duals, or None.
        init: ``(dim)`` to what ``update`` returns, or None for duals of zero.
        eigenvalues: the read-out, or None.
        gradient: of the loss, or None for ``jax.grad``, or differences where JAX cannot trace the loss.
        rows: of the table, for each of :data:`COMPONENTS`.
        table: (n, d) components at which the loss and its gradient must be finite.
        barrier: the coefficient that is passed on.
    """

    def __init__(
        self,
        loss: Any,
        update: Any,
        init: Any,
        eigenvalues: Any,
        gradient: Any,
        rows: Mapping[str, NDArray[np.intp]],
        table: Array,
        barrier: float,
    ) -> None:
        """Read the signatures and call each function once."""
        if isinstance(loss, Objective):
            if any(one is not None for one in (update, init, eigenvalues, gradient)):
                raise ArgumentError("an Objective has its own update, init and eigenvalues; give it alone")
            loss, update, init, eigenvalues = _functions_of(loss)
        self._loss = PortedFunction.of(loss, "the loss", OF_THE_LOSS)
        self._update = PortedFunction.of(update or _unchanged, "the update", OF_THE_UPDATE)
        self._init = PortedFunction.of(init or _zeros, "init", ("dim",))
        self._read_out = PortedFunction.of(eigenvalues or _unchanged, "eigenvalues", OF_THE_READ_OUT)
        self._gradient = PortedFunction.of(gradient or _unchanged, "the gradient", OF_THE_LOSS)
        self.has_update, self.has_read_out = update is not None, eigenvalues is not None
        self._taken = [name for name in COMPONENTS if name in self._loss.names]
        if not self._taken:
            raise ArgumentError(f"the loss takes none of the components: {', '.join(COMPONENTS)}")
        if "state" in self._update.names and init is None:
            raise ArgumentError("the update takes a state; give init, a function of dim that returns the first one")
        self.dim, self._barrier, self._rows = table.shape[1], barrier, rows
        self._compiled = self._compile(table)
        without = "finite differences" if self._compiled is None else "jax.grad"
        self.gradients = "given" if gradient is not None else without
        zeros = np.zeros((self.dim, self.dim))
        if not np.isfinite(found := self.value(self.components(table), zeros)):
            raise ArgumentError(f"the loss is {found} at the exact eigenvectors with duals of zero; it must be finite")
        if not np.isfinite(self.gradient(table, zeros)).all():
            raise ArgumentError("the gradient of the loss is not finite at the exact eigenvectors with duals of zero")
        # What is wrong with the others is better known before a descent than after it.
        self.updated(table, zeros, self.initial().state)
        if self.has_read_out:
            self.read_out(table, zeros)

    @property
    def sees_stop_gradients(self) -> bool:
        """Whether gradients are those that training follows; differences of values ignore stop-gradients."""
        return self.gradients != "finite differences"

    @property
    def takes_barrier(self) -> bool:
        """Whether the coefficient of the penalty is an argument of the loss."""
        return "barrier" in self._loss.names

    def components(self, table: Any) -> dict[str, Any]:
        """The arrays of components whose plain means are expectations.

        Args:
            table: (n, d) components at all states.

        Returns:
            (rows, d) arrays by name.
        """
        return {name: table[rows] for name, rows in self._rows.items()}

    def value(self, components: Mapping[str, Array], duals: Array) -> float:
        """The loss.

        Args:
            components: arrays by the names of :data:`COMPONENTS`.
            duals: (d, d) lower-triangular.

        Returns:
            A number, which may be infinite or NaN.
        """
        if self._compiled is None:
            found = self._loss(**components, **self._with(duals))
        else:
            found = self._compiled.value(dict(components), duals)
        number = None if np.shape(found) else as_real(np.asarray(found))
        if number is None:
            what = f"an array of shape {np.shape(found)}" if np.shape(found) else shown(found)
            raise ArgumentError(f"the loss must return one number, got {what}")
        return number

    def gradient(self, table: Array, duals: Array) -> Array:
        """The derivative of the loss by the components of each state.

        Args:
            table: (n, d) components at all states.
            duals: (d, d) lower-triangular.

        Returns:
            (n, d) derivatives.
        """
        if self.gradients == "given":
            return self._given_gradient(table, duals)
        if self._compiled is not None:
            return np.asarray(self._compiled.gradient(table, duals))
        return self._differences(table, duals)

    def slopes(self, table: Array) -> Array:
        """The derivative of the loss by the duals: the errors, as the loss measures them.

        The loss is linear in the duals, so differences of values are exact; ports often hold the duals constant in
        derivatives.

        Args:
            table: (n, d) components at all states.

        Returns:
            (d, d) derivatives, zero above the diagonal.
        """
        units = self.unit_duals()
        if self._compiled is not None:
            values = np.asarray(self._compiled.values(table, units))
        else:
            values = np.array([self.value(self.components(table), unit) for unit in units])
        return np.tensordot(values[1:] - values[0], units[1:], 1)

    def unit_duals(self) -> Array:
        """Duals of zero, then a one at each place of the lower triangle.

        Returns:
            (1 + d (d + 1) / 2, d, d) matrices.
        """
        rows, columns = np.tril_indices(self.dim)
        units = np.zeros((len(rows) + 1, self.dim, self.dim))
        units[np.arange(1, len(units)), rows, columns] = 1
        return units

    def initial(self) -> DualState:
        """The duals that training starts from.

        Returns:
            Zeros unless ``init`` was given.
        """
        return self._dual_state(self._init(dim=self.dim), "init")

    def updated(self, table: Array, duals: Array, state: Any = None) -> DualState:
        """The duals after one update.

        Args:
            table: (n, d) components at all states, whose errors the update moves along.
            duals: (d, d) before it.
            state: what ``init`` or the update before returned.

        Returns:
            What the update returns.
        """
        return self._dual_state(self._update(**self._measured(table, duals), state=state), "the update")

    def read_out(self, table: Array, duals: Array) -> Array:
        """The eigenvalues that the port reads.

        Args:
            table: (n, d) components at all states.
            duals: (d, d) duals.

        Returns:
            (d,) numbers.
        """
        found = as_reals(self._read_out(**self._measured(table, duals)))
        if found is None or found.shape != (self.dim,) or not np.isfinite(found).all():
            raise ArgumentError(f"eigenvalues must return {self.dim} finite numbers, got {shown(found)}")
        return found

    def _compile(self, table: Array) -> "_Compiled | None":
        """The loss compiled; None where JAX cannot trace it."""

        def value(components: dict[str, Any], duals: Any) -> Any:
            return self._loss.traced(**components, **self._with(duals))

        def of_table(table: Any, duals: Any) -> Any:
            return value(self.components(table), duals)

        try:
            jax.eval_shape(of_table, table, np.zeros((self.dim, self.dim)))
        except Exception:  # NumPy, PyTorch and mistakes fail in many ways; a call without tracing tells them apart
            return None
        return _Compiled(jax.jit(value), jax.jit(jax.vmap(of_table, (None, 0))), jax.jit(jax.grad(of_table)))

    def _with(self, duals: Any) -> dict[str, Any]:
        return {"duals": duals, "barrier": self._barrier}

    def _measured(self, table: Array, duals: Array) -> dict[str, Any]:
        """All arguments of an update at a table of components."""
        error = np.tril(table.T @ table / len(table) - np.eye(self.dim))
        arrays = {**self.components(table), "duals": duals, "error_first": error, "error_second": error}
        if self._compiled is not None:
            # Functions that go with a loss in JAX may use what only its arrays have.
            arrays = {name: jnp.asarray(array) for name, array in arrays.items()}
        return {**arrays, "barrier": self._barrier}

    def _given_gradient(self, table: Array, duals: Array) -> Array:
        """The derivative by the table: rows of the arrays are rows of the table."""
        components = self.components(table)
        parts = self._gradient(**components, **self._with(duals))
        shapes = {name: components[name].shape for name in self._taken}
        if not isinstance(parts, Sequence) or [np.shape(part) for part in parts] != list(shapes.values()):
            wanted = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise ArgumentError(f"the gradient must return a list of the derivatives by {wanted}; got {shown(parts)}")
        total = np.zeros_like(table)
        for name, part in zip(self._taken, parts, strict=True):
            np.add.at(total, self._rows[name], np.asarray(part))
        return total

    def _differences(self, table: Array, duals: Array) -> Array:
        """Central differences by each number of the table."""
        gradient = np.empty_like(table)
        for place in np.ndindex(table.shape):
            moved = table.copy()
            moved[place] += DIFFERENCE
            above = self.value(self.components(moved), duals)
            moved[place] -= 2 * DIFFERENCE
            gradient[place] = (above - self.value(self.components(moved), duals)) / (2 * DIFFERENCE)
        return gradient

    def _dual_state(self, found: Any, label: str) -> DualState:
        parts = found if isinstance(found, tuple) else (found,)
        duals = as_reals(parts[0]) if 1 <= len(parts) <= 3 else None
        if duals is None or duals.shape != (self.dim, self.dim) or not np.isfinite(duals).all():
            raise ArgumentError(
                f"{label} must return duals, (duals, barrier) or (duals, barrier, state) with {self.dim} x {self.dim} "
                f"finite duals, got {shown(found)}"
            )
        return DualState(duals, *parts[1:])


class _Compiled(NamedTuple):
    """A loss that JAX can trace: at arrays of components; and at a table, for many duals, and its gradient."""

    value: Callable[..., jax.Array]
    values: Callable[..., jax.Array]
    gradient: Callable[..., jax.Array]


def _unchanged(duals: Any) -> Any:
    return duals


def _zeros(dim: int) -> Array:
    return np.zeros((dim, dim))


def _functions_of(objective: Objective) -> tuple[Callable[..., Any], ...]:
    """Loss, update, init and read-out of an objective of this package as functions of named arguments."""

    def evaluated(arguments: dict[str, Any]) -> tuple[Any, jax.Array, Any]:
        duals, barrier = jnp.asarray(arguments["duals"]), jnp.asarray(arguments["barrier"])
        state = objective.init(len(duals))
        if isinstance(state, AlloState):
            state = AlloState(duals, BarrierState(barrier, jnp.zeros(())))
        elif "duals" in getattr(state, "_fields", ()):  # of an objective of the user's own, with a barrier of its own
            state = state._replace(duals=duals)
        value, seen = objective.loss(state, Values(*(arguments[name] for name in COMPONENTS)))
        return state, value, seen.aux

    def loss(**arguments: Any) -> jax.Array:
        return evaluated(arguments)[1]

    def update(**arguments: Any) -> Any:
        state, _, aux = evaluated(arguments)
        return getattr(objective.update(state, aux), "duals", arguments["duals"])

    def init(dim: int) -> Any:
        return getattr(objective.init(dim), "duals", jnp.zeros((dim, dim)))

    def read_out(**arguments: Any) -> jax.Array:
        state, _, aux = evaluated(arguments)
        return objective.eigenvalues(state, aux)

    return loss, update, init, read_out
