"""How to learn: one flat, frozen configuration, and the presets it starts from."""

import ast
import dataclasses
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from lapwing.checks import as_real, as_whole, shown
from lapwing.encoders.networks import ENCODERS, encoder_options
from lapwing.errors import ArgumentError, UnknownNameError, did_you_mean
from lapwing.objectives import OBJECTIVES, Objective
from lapwing.objectives.constraints import require_positive
from lapwing.operators.lags import geometric_lags

GIVEN = "given"
"""The name of an objective or encoder that is an object of the caller's own."""


@dataclass(frozen=True)
class LearnConfig:
    """All hyper-parameters of learning, in the paper's units. default < preset < what is given."""

    dim: int = 11
    """How many components."""
    oversampling: int = 6
    """Components learned beyond those and left out of the result: they sharpen the last ones."""
    steps: int = 1600
    """Gradient steps at most."""
    seed: int = 0
    """The same seed gives the same bits."""
    batches: Literal["auto", "exact", "sampled", "unbiased"] = "auto"
    """Expectation over the whole table, pairs cut at episodes' ends (the paper's), or pairs free of that bias."""
    discounts: tuple[float, ...] = (0.9, 0.99, 0.999)
    """Discounts of the lags; several are mixed in equal shares."""
    rho: Literal["visits", "uniform"] = "visits"
    """The distribution of states: as counted, or uniform where the dynamics are known to keep that. Visits are most of
    the noise in counts; for observations that repeat."""
    batch_size: int = 1024
    """Pairs per step, and rows of each constraint batch, where batches are sampled."""
    separate_constraints: bool = False
    """Draw the two constraint batches apart from the pairs, as in the paper; else they are halves of the pairs, and
    half as many rows are encoded."""
    objective: str = "allo"
    """A name of ``lapwing.objectives.OBJECTIVES``, with options if need be: ``allo(barrier=2.0)``."""
    objective_options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the objective's factory; the factory's own defaults where not given."""
    permute_every: int = 0
    """Permute the outputs at random every so many steps (the paper's permutation study); 0 never."""
    encoder: str = "auto"
    """table, mlp, fourier, conv, or auto: by the shape of observations; with options if need be."""
    encoder_options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the encoder's factory, e.g. ``scales`` of fourier."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers; the paper's three are in its preset."""
    scale_inputs: bool = True
    """Centre and scale the inputs of mlp and conv by statistics of the data; False leaves them as they are, but for
    images of bytes, which are divided by 255, as in the paper."""
    learning_rate: float = 2e-3
    """Of Adam, at the start."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """How the learning rate changes over the steps."""
    refit: int = 3
    """Where exact batches are not possible: rounds in which the network is fitted to eigenvectors that were solved, of
    the distinct observations or of cells of the representation; all but a share of the steps go there. 0 for none."""
    smooth_functions: bool = True
    """In the last round of ``refit``, of up to 8 inputs: fit to eigenfunctions in a span of smooth functions of them,
    where data held out prefer those to cells."""
    solve_last_layer: bool = True
    """After the rounds of ``refit`` by cells: solve the network's last layer in closed form over all the data."""
    refine: Literal["ritz", "none"] = "ritz"
    """Rotate inside the learned span at the end, or leave the components as they are."""
    lagged_eigenvalues: bool = True
    """With ``refine="ritz"`` and observations that hardly repeat: read eigenvalues at two lags, free of fast modes."""
    memory: float = 1.0
    """GiB that observations may take while learning; of larger data that hardly repeat, each chunk of ``log_every``
    steps holds another part."""
    stop_when_converged: bool = True
    """Stop early once the estimated angles of all components are small."""
    log_every: int = 200
    """Steps between progress reports."""

    def __post_init__(self) -> None:
        """Refuse values that cannot work, each by name, and values that no memory could hold."""
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            if value < least:
                wanted = "not be negative" if least == 0 else f"be at least {least}"
                raise ArgumentError(f"{name} must {wanted}, got {shown(value)}")
            if value > most:
                raise ArgumentError(f"{name} must be at most {most:,}, got {shown(value)}")
        require_positive("learning_rate", self.learning_rate)
        require_positive("memory", self.memory)
        geometric_lags(self.discounts)
        _require_bearable(self.hidden)
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ArgumentError(f"{name} must be one of {', '.join(allowed)}; got {shown(getattr(self, name))}")
        if self.objective != GIVEN:
            self.make_objective()

    def make_objective(self) -> Objective:
        """The objective that name and options describe.

        Returns:
            A fresh objective.
        """
        return _objective_factory(self.objective)(**self.objective_options)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as JSON types.

        Returns:
            Field names and values; tuples as lists.
        """
        plain: dict[str, Any] = _as_json(dataclasses.asdict(self))
        return plain


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(inner) for name, inner in value.items()}
    return [_as_json(inner) for inner in value] if isinstance(value, (tuple, list)) else value


# Least and most. Steps are counted in 32 bits; duals are a square of dim; the rest is what memory could hold.
_BOUNDS = {
    "dim": (1, 10_000),
    "oversampling": (0, 10_000),
    "steps": (1, 2**31 - 1),
    "seed": (0, 2**32 - 1),
    "batch_size": (1, 1 << 24),
    "permute_every": (0, 2**31 - 1),
    "refit": (0, 1000),
    "log_every": (1, 2**31 - 1),
}
_LONGEST_LIST = 100
_LONGEST_TEXT = 1000
_MOST_WEIGHTS = 1 << 28

_CHOICES = {name: get_args(kind) for name, kind in get_type_hints(LearnConfig).items() if get_origin(kind) is Literal}

_RENAMED = {"spare": "oversampling", "report": "callback", "centre_pixels": "scale_inputs"}

_DEFAULT = {"objective_options": {"barrier": 1.0, "barrier_rate": 0.01, "dual_rate": 0.01}}

# The authors' twelve-world study. Their graph term lacks its half, so what they call 0.5, 0.01 and 1e-4 is half that.
_PAPER = {
    "oversampling": 0,
    "steps": 200_000,
    "batches": "sampled",
    "discounts": (0.9,),
    "separate_constraints": True,
    "objective_options": {"barrier": 0.25, "barrier_rate": 0.005, "dual_rate": 5e-5},
    "encoder": "mlp",
    "hidden": (256, 256, 256),
    "learning_rate": 1e-3,
    "scale_inputs": False,
    "schedule": "constant",
    "refit": 0,
    "refine": "none",
    "lagged_eigenvalues": False,
    "stop_when_converged": False,
    "log_every": 1000,
}

# Many components need a deeper network, more steps, and oversampling in proportion.
MANY_COMPONENTS = 20
_MANY = {"steps": 4000, "hidden": (256, 256, 256), "learning_rate": 1e-3}

PRESETS: dict[str, dict[str, Any]] = {
    "default": _DEFAULT,
    "pixels": {**_DEFAULT, "encoder": "conv", "steps": 1000, "log_every": 100},
    "paper": _PAPER,
}


def make_config(preset: str = "default", *, objective: Any = None, encoder: Any = None, **given: Any) -> LearnConfig:
    """A preset with some values changed; unknown names are errors that offer the nearest known one.

    The default preset with more than 20 components takes a deeper network, more steps and more oversampling.

    Args:
        preset: ``default``, ``paper`` or ``pixels``.
        objective: a name, with options if need be (``"allo(barrier=2.0)"`` or ``{"name": "allo", "barrier": 2.0}``),
            or an :class:`Objective`. The preset's options of an objective hold if it is the preset's own.
        encoder: the same for the encoder, or a network of your own.
        given: fields of :class:`LearnConfig`; any other name is an option of the objective, then of the encoder.

    Returns:
        The configuration.

    Example:
        >>> make_config("paper", steps=6000).discounts
        (0.9,)
        >>> make_config(objective="ggdo", barrier=0.5).objective_options
        {'barrier': 0.5}
    """
    if not isinstance(preset, str) or preset not in PRESETS:
        raise UnknownNameError(f"no preset {shown(preset)}; {did_you_mean(shown(preset), PRESETS)}")
    base = PRESETS[preset]
    chosen, objective_options = _choice("objective", objective, base, given)
    network, encoder_options = _choice("encoder", encoder, base, given)
    known_objective, known_encoder = _objective_defaults(chosen), _encoder_defaults(network)
    fields_given: dict[str, Any] = {}
    for name, value in given.items():
        if name in _FIELDS:
            if value is not None:
                fields_given[name] = _converted(name, value, getattr(LearnConfig, name))
        elif name in known_objective:
            objective_options[name] = value
        elif name in known_encoder:
            encoder_options[name] = value
        elif name in _RENAMED:
            raise UnknownNameError(f"the option {name} has another name now: use {_RENAMED[name]}")
        else:
            known = [*_FIELDS, *known_objective, *known_encoder]
            raise UnknownNameError(f"learning has no option {shown(name)}; {did_you_mean(name, known)}")
    objective_options = _checked_options(f"objective {chosen}", objective_options, known_objective)
    encoder_options = _checked_options(f"encoder {network}", encoder_options, known_encoder)
    if chosen == base.get("objective", LearnConfig.objective):
        objective_options = {**base["objective_options"], **objective_options}
    dim = fields_given.get("dim", LearnConfig.dim)
    if preset == "default" and dim > MANY_COMPONENTS:
        base = {**_MANY, "oversampling": dim // 2}
    named = {"objective": chosen, "objective_options": objective_options}
    named |= {"encoder": network, "encoder_options": encoder_options}
    return LearnConfig(**{**base, **named, **fields_given})


_FIELDS = [one.name for one in fields(LearnConfig)]


def parse_choice(text: str) -> tuple[str, dict[str, Any]]:
    """A name and options from text, as data: nothing is evaluated but literals.

    Args:
        text: such as ``allo`` or ``allo(barrier=2.0, dual_rate=0.01)``.

    Returns:
        The name, and the options by name.

    Example:
        >>> parse_choice("fourier(scales=(3.0, 10.0))")
        ('fourier', {'scales': (3.0, 10.0)})
    """
    if "(" not in text:
        return text, {}
    advice = "write it like allo(barrier=2.0, dual_rate=0.01)"
    if len(text) > _LONGEST_TEXT:
        raise ArgumentError(f"{shown(text)} is too long; {advice}")
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)) or call.args:
            raise ValueError("not a name with options by name")
        names = [str(keyword.arg) for keyword in call.keywords]
        if len(set(names)) < len(names):
            raise ValueError("an option twice")
        values = [ast.literal_eval(keyword.value) for keyword in call.keywords]
        return call.func.id, dict(zip(names, values, strict=True))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise ArgumentError(f"cannot read {shown(text)} ({error}); {advice}") from None


def _choice(what: str, given: Any, preset: dict[str, Any], others: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and options of an objective or encoder from any of the forms in which they may be given."""
    options = others.pop(f"{what}_options", None)
    if options is not None and not isinstance(options, Mapping):
        raise ArgumentError(f"{what}_options must be a dictionary, got {shown(options)}")
    name = preset.get(what, getattr(LearnConfig, what))
    own: dict[str, Any] = {}
    if isinstance(given, str):
        name, own = parse_choice(given)
    elif isinstance(given, Mapping):
        own = dict(given)
        name = own.pop("name", None)
        if not isinstance(name, str):
            raise ArgumentError(f"{what} as a dictionary needs a name, got {shown(given)}")
    elif given is not None:
        name = GIVEN
    return name, {**own, **(options or {})}


def _objective_factory(name: str) -> Callable[..., Objective]:
    if name not in OBJECTIVES:
        raise UnknownNameError(f"no objective {shown(name)}; {did_you_mean(name, OBJECTIVES)}")
    return OBJECTIVES[name]


def _objective_defaults(name: str) -> dict[str, Any]:
    """Options of an objective and their defaults, from its factory's signature."""
    if name == GIVEN:
        return {}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(_objective_factory(name)).parameters
    return {name: one.default for name, one in parameters.items() if one.kind in named}


def _encoder_defaults(kind: str) -> dict[str, Any]:
    """Options of an encoder from its factory's signature; with ``auto``, of any that might be chosen."""
    if kind == GIVEN:
        return {}
    if kind != "auto" and kind not in ENCODERS:
        raise UnknownNameError(f"no encoder {shown(kind)}; {did_you_mean(kind, [*ENCODERS, 'auto'])}")
    found: dict[str, Any] = {}
    for name in ENCODERS if kind == "auto" else [kind]:
        found |= encoder_options(name)
    return found


def _checked_options(owner: str, options: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in known:
            advice = did_you_mean(str(name), known) if known else "an object of your own takes its options itself"
            raise UnknownNameError(f"{owner} has no option {shown(name)}; {advice}")
    return {name: _converted(name, value, known[name]) for name, value in options.items() if value is not None}


def _converted(name: str, value: Any, default: Any) -> Any:
    """The value as the plain type of its default, which files and shapes insist on; 2.5 components are refused."""
    plain = isinstance(default, (bool, int, float, str))
    if isinstance(default, (tuple, list)) or (isinstance(value, (tuple, list)) and not plain):
        several = value if isinstance(value, (list, tuple)) else (value,)
        if len(several) > _LONGEST_LIST:
            raise ArgumentError(f"{name} are at most {_LONGEST_LIST}, got {len(several):,} of them")
        kind = default[0] if isinstance(default, (tuple, list)) and default else 0.0
        return tuple(_converted(name, one, kind) for one in several)
    if isinstance(default, bool):
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(f"{name} must be True or False, got {shown(value)}")
        return bool(value)
    if isinstance(default, str):
        if not isinstance(value, str):
            raise ArgumentError(f"{name} must be a name, got {shown(value)}")
        return value
    if not isinstance(default, (int, float)):
        # Without a default of a plain type the factory itself checks.
        return value
    found = as_whole(value) if isinstance(default, int) else as_real(value)
    if found is None:
        kind = "whole number" if isinstance(default, int) else "number"
        raise ArgumentError(f"{name} must be a {kind}, got {shown(value)}")
    return found


def _require_bearable(hidden: Sequence[int]) -> None:
    """Refuse layers of no size, and so many weights that training could not hold them."""
    if any(size < 1 for size in hidden):
        raise ArgumentError(f"hidden must be sizes of at least 1, got {shown(hidden)}")
    weights = sum(inputs * outputs for inputs, outputs in itertools.pairwise(hidden)) + sum(hidden)
    if weights > _MOST_WEIGHTS:
        raise ArgumentError(
            f"hidden layers of {shown(hidden)} would have more than {_MOST_WEIGHTS:,} weights; make them smaller"
        )
