"""Every table, figure and theorem by name; adding one is one file and one row."""

from lapwing.checks import shown
from lapwing.errors import LapwingError, did_you_mean
from lapwing_paper.engine.artefact import Artefact, Scale, Spec
from lapwing_paper.studies import (
    ablation,
    brittle_ggdo,
    comparison_pixels,
    comparison_xy,
    eigenvalue_bias,
    eigenvalues,
    fair_ggdo,
    horizons,
    many_components,
    permutations,
    pixels_centred,
    robust_allo,
    rotations,
    theory,
    world_gallery,
)

ARTEFACTS: dict[str, Artefact] = {
    module.ARTEFACT.spec.name: module.ARTEFACT
    for module in (
        brittle_ggdo,
        world_gallery,
        robust_allo,
        comparison_xy,
        comparison_pixels,
        eigenvalues,
        ablation,
        rotations,
        permutations,
        theory,
        eigenvalue_bias,
        fair_ggdo,
        pixels_centred,
        horizons,
        many_components,
    )
}


def find_artefact(name: str) -> Artefact:
    """The artefact of that name, or an error that offers the nearest one."""
    if not isinstance(name, str) or name not in ARTEFACTS:
        raise LapwingError(f"nothing to reproduce is called {shown(name)}; {did_you_mean(str(name), ARTEFACTS)}")
    return ARTEFACTS[name]


def overview() -> str:
    """Every artefact in Markdown: what it shows, the command, its sizes, and every deviation from the paper.

    Example:
        >>> overview().splitlines()[0]
        '### brittle-ggdo'
    """
    lines = []
    for name, artefact in ARTEFACTS.items():
        spec = artefact.spec
        lines += [
            f"### {name}",
            "",
            f"{spec.title}. {_origin(spec)} [Result of the quick version](results/{name}.md).",
            "",
        ]
        lines += [f"    lapwing reproduce {name} --quick    # {_size(spec.quick)}"]
        lines += [f"    lapwing reproduce {name} --full     # {_size(spec.full)}", ""]
        lines += [f"* {deviation}" for deviation in spec.deviations] + [""]
    return "\n".join(lines)


def _origin(spec: Spec) -> str:
    return f"{spec.paper} of the paper." if spec.paper else "A study of our own."


def _size(scale: Scale) -> str:
    parts = [f"{scale.seeds} seed{'s' if scale.seeds != 1 else ''}"]
    parts += [f"{scale.steps:,} steps"] if scale.steps > 1 else []
    parts += [f"{scale.transitions:,} transitions"] if scale.transitions else []
    return ", ".join(parts)
