"""Options for agents of BaRL-SimpleOptions; needs the ``options`` extra."""

import functools
import importlib
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lapwing.applications.learned_options import LearnedOption
from lapwing.applications.options import Option
from lapwing.checks import shown
from lapwing.errors import ArgumentError, MissingExtraError

Observe = Callable[[Any], "ArrayLike"]

_NUMBERS = itertools.count()


def as_simple_options(
    options: Sequence[Option | LearnedOption], env: Any = None, *, observe: "Observe" = np.asarray
) -> list[Any]:
    """Options as ``simpleoptions.BaseOption`` objects, for the agents and environments of BaRL-SimpleOptions.

    Args:
        options: exact or learned.
        env: a ``simpleoptions.BaseEnvironment``. With it a policy gives that environment's primitive options, which
            intra-option learning needs; without it the numbers of actions.
        observe: from a state of that environment to the observation that the options know. A state is hashable, such
            as a tuple of coordinates, which is its own observation unless this is given.

    Returns:
        One object for each option; ``option`` is the option behind it. Each is different from all others.

    Raises:
        MissingExtraError: where simpleoptions is not installed.

    Example:
        >>> from lapwing import make_world
        >>> from lapwing.applications import point_options
        >>> world = make_world("room:1x3")
        >>> right, _ = as_simple_options(point_options(world, [(0, 2)]))  # doctest: +SKIP
        >>> start, _, goal = map(tuple, world.table())  # doctest: +SKIP
        >>> right.initiation(start), right.policy(start), right.termination(goal)  # doctest: +SKIP
        (True, 1, 1.0)
    """
    package, adapted = _simple_option()
    found = list(options)
    for option in found:
        if not isinstance(option, (Option, LearnedOption)):
            raise ArgumentError(f"options must be Option or LearnedOption objects, got {shown(option)}")
    if env is None:
        return [adapted(option, None, observe) for option in found]
    primitive = {action: package.PrimitiveOption(action, env) for action in env.get_action_space()}
    return [adapted(option, primitive, observe) for option in found]


@functools.cache
def _simple_option() -> tuple[Any, Any]:
    """The package, and our class of it, made when first needed, because the package may not be installed."""
    try:
        package = importlib.import_module("simpleoptions")
    except ImportError as error:
        raise MissingExtraError("BaRL-SimpleOptions is an extra: pip install 'lapwing[options]'") from error

    class SimpleOption(package.BaseOption):  # type: ignore[misc, name-defined]
        """An option with hashable states in place of observations."""

        def __init__(
            self, option: Option | LearnedOption, primitive: dict[Any, Any] | None, observe: "Observe"
        ) -> None:
            super().__init__()
            self.option, self._primitive, self._observe = option, primitive, observe
            # Agents find values by hash alone, so that two options with the same hash would share them; a number also
            # gives sets of options the same order in every process.
            self._number = next(_NUMBERS)

        def initiation(self, state: Hashable) -> bool:
            return self.option.initiation(self._observe(state))

        def policy(self, state: Hashable, test: bool = False) -> Any:
            action = self.option.policy(self._observe(state))
            return action if self._primitive is None else self._primitive[action]

        def termination(self, state: Hashable) -> float:
            return self.option.termination(self._observe(state))

        def __str__(self) -> str:
            return f"SimpleOption({self.option.name})"

        __repr__ = __str__

        def __hash__(self) -> int:
            return hash((self._class_id, self._number))

        def __eq__(self, other: object) -> bool:
            # An agent follows a copy.
            return isinstance(other, SimpleOption) and other._number == self._number

    return package, SimpleOption
