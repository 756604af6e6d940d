"""How to learn: one flat, frozen configuration, and the presets it starts from."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from lapwing.checks import as_real, as_whole, shown
from lapwing.errors import LapwingError, did_you_mean
from lapwing.objectives import OBJECTIVES
from lapwing.objectives.base import Objective
from lapwing.objectives.constraints import require_not_negative, require_positive
from lapwing.operators.lags import endless_gaps


@dataclass(frozen=True)
class LearnConfig:
    """All hyper-parameters of learning, in the paper's units. default < preset < what is given."""

    dim: int = 11
    """How many components."""
    spare: int = 6
    """Components learned beyond those and left out of the answer: they sharpen the last ones."""
    steps: int = 1600
    """Gradient steps at most."""
    seed: int = 0
    """The same seed gives the same bits."""
    batches: Literal["auto", "exact", "sampled", "unbiased"] = "auto"
    """Expectation over the whole table, pairs cut at episodes' ends (the paper's), or pairs free of that bias."""
    discounts: tuple[float, ...] = (0.9, 0.99, 0.999)
    """Discounts of the gaps; several are mixed in equal shares."""
    batch_size: int = 1024
    """Pairs per step, and rows of each constraint batch, where batches are sampled."""
    objective: str = "allo"
    """allo, ggdo, gdo or quadratic_penalty."""
    barrier: float = 1.0
    """Barrier coefficient b at the start."""
    barrier_rate: float = 0.01
    """Growth of the barrier with the squared errors."""
    dual_rate: float = 0.01
    """Step of the dual ascent (ALLO)."""
    duals: bool = True
    """Whether there are duals (ALLO; off for the ablation)."""
    stop_gradient: bool = True
    """Whether ALLO's asymmetric stop-gradient is there (off for the ablation)."""
    permute_every: int = 0
    """Permute the outputs at random every so many steps (the paper's permutation study); 0 never."""
    encoder: str = "auto"
    """table, mlp, fourier, conv, or auto: by the shape of observations."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers; the paper's three are in its preset."""
    centre_pixels: bool = True
    """Subtract the data's mean image and scale by its deviation."""
    learning_rate: float = 2e-3
    """Of Adam, at the start."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """How the learning rate goes on."""
    refine: Literal["ritz", "none"] = "ritz"
    """Rotate inside the learned span at the end, or leave the components as they are."""
    stop_when_converged: bool = True
    """Stop early once the certificate says so."""
    log_every: int = 200
    """Steps between reports."""

    def __post_init__(self) -> None:
        """Refuse values that cannot work, each by name, and values that no memory could hold."""
        for name, (least, most) in _BOUNDS.items():
            _require_between(name, getattr(self, name), least, most)
        for name in ("barrier", "learning_rate"):
            require_positive(name, getattr(self, name))
        for name in ("barrier_rate", "dual_rate"):
            require_not_negative(name, getattr(self, name))
        endless_gaps(self.discounts)
        _require_bearable(self.hidden)
        if self.objective not in OBJECTIVES:
            raise LapwingError(f"no objective {shown(self.objective)}; {did_you_mean(self.objective, OBJECTIVES)}")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise LapwingError(f"{name} must be one of {', '.join(allowed)}; got {shown(getattr(self, name))}")
        self.make_objective()

    def make_objective(self) -> Objective:
        """The objective that these hyper-parameters describe."""
        if self.objective == "allo":
            options = {"dual_rate": self.dual_rate, "duals": self.duals, "stop_gradient": self.stop_gradient}
            return OBJECTIVES["allo"](barrier=self.barrier, barrier_rate=self.barrier_rate, **options)
        if self.objective == "ggdo":
            return OBJECTIVES["ggdo"](barrier=self.barrier, barrier_rate=self.barrier_rate)
        return OBJECTIVES[self.objective](barrier=self.barrier)

    def as_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}


# Least and most. Steps are counted in 32 bits; duals are a square of dim; the rest is what memory could hold.
_BOUNDS = {
    "dim": (1, 10_000),
    "spare": (0, 10_000),
    "steps": (1, 2**31 - 1),
    "seed": (0, 2**32 - 1),
    "batch_size": (1, 1 << 24),
    "permute_every": (0, 2**31 - 1),
    "log_every": (1, 2**31 - 1),
}
_MOST_OF_A_LIST = 100
_MOST_WEIGHTS = 1 << 28

_CHOICES = {
    "batches": ("auto", "exact", "sampled", "unbiased"),
    "schedule": ("cosine", "constant"),
    "refine": ("ritz", "none"),
}

# The authors' twelve-world study. Their graph term lacks its half, so what they call 0.5, 0.01 and 1e-4 is half that.
_PAPER = {
    "spare": 0,
    "steps": 200_000,
    "batches": "sampled",
    "discounts": (0.9,),
    "barrier": 0.25,
    "barrier_rate": 0.005,
    "dual_rate": 5e-5,
    "encoder": "mlp",
    "hidden": (256, 256, 256),
    "learning_rate": 1e-3,
    "centre_pixels": False,
    "schedule": "constant",
    "refine": "none",
    "stop_when_converged": False,
    "log_every": 1000,
}

# Many components ask for a deeper network, more steps, and spare ones in proportion.
MANY_COMPONENTS = 20
_MANY = {"steps": 4000, "hidden": (256, 256, 256), "learning_rate": 1e-3}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "pixels": {"encoder": "conv", "steps": 1000, "log_every": 100},
    "paper": _PAPER,
}


def make_config(preset: str = "default", **given: Any) -> LearnConfig:
    """A preset with some values changed; unknown names are errors that offer the nearest known one.

    The default preset with more than 20 components takes a deeper network, more steps and more spare components.

    Example:
        >>> make_config("paper", steps=6000).discounts
        (0.9,)
    """
    if not isinstance(preset, str) or preset not in PRESETS:
        raise LapwingError(f"no preset {shown(preset)}; {did_you_mean(shown(preset), PRESETS)}")
    known = [field.name for field in fields(LearnConfig)]
    for name in given:
        if name not in known:
            raise LapwingError(f"learning has no option {shown(name)}; {did_you_mean(name, known)}")
    wanted = {name: _as_plain(name, value) for name, value in given.items() if value is not None}
    base = PRESETS[preset]
    dim = wanted.get("dim", LearnConfig.dim)
    if preset == "default" and dim > MANY_COMPONENTS:
        base = {**_MANY, "spare": dim // 2}
    return LearnConfig(**{**base, **wanted})


def _as_plain(name: str, value: Any) -> Any:
    """The value as the plain type of its field, which files and shapes insist on; 2.5 components are refused."""
    if name in ("discounts", "hidden"):
        convert = as_real if name == "discounts" else as_whole
        several = value if isinstance(value, (list, tuple)) else (value,)
        if len(several) > _MOST_OF_A_LIST:
            raise LapwingError(f"{name} are at most {_MOST_OF_A_LIST}, got {len(several):,} of them")
        return tuple(_converted(name, one, convert) for one in several)
    kind = type(getattr(LearnConfig, name))
    if kind is bool:
        if not isinstance(value, (bool, np.bool_)):
            raise LapwingError(f"{name} must be True or False, got {shown(value)}")
        return bool(value)
    if kind is str:
        if not isinstance(value, str):
            raise LapwingError(f"{name} must be a name, got {shown(value)}")
        return value
    return _converted(name, value, as_whole if kind is int else as_real)


def _converted(name: str, value: Any, convert: Callable[[Any], Any]) -> Any:
    found = convert(value)
    if found is None:
        kind = "whole number" if convert is as_whole else "number"
        raise LapwingError(f"{name} must be a {kind}, got {shown(value)}")
    return found


def _require_between(name: str, value: int, least: int, most: int) -> None:
    if value < least:
        least_in_words = "not be negative" if least == 0 else f"be at least {least}"
        raise LapwingError(f"{name} must {least_in_words}, got {shown(value)}")
    if value > most:
        raise LapwingError(f"{name} must be at most {most:,}, got {shown(value)}")


def _require_bearable(hidden: Sequence[int]) -> None:
    """Refuse layers of no size, and so many weights that training could not hold them."""
    if any(size < 1 for size in hidden):
        raise LapwingError(f"hidden must be sizes of at least 1, got {shown(hidden)}")
    weights = sum(inputs * outputs for inputs, outputs in itertools.pairwise(hidden)) + sum(hidden)
    if weights > _MOST_WEIGHTS:
        raise LapwingError(
            f"hidden layers of {shown(hidden)} would have more than {_MOST_WEIGHTS:,} weights; make them smaller"
        )
