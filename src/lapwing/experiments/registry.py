"""Every table, figure and theorem by name; adding one is one file and one row."""

from lapwing.errors import LapwingError, did_you_mean
from lapwing.experiments import (
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
from lapwing.studies.artefact import Artefact

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
    if name not in ARTEFACTS:
        raise LapwingError(f"nothing to reproduce is called {name!r}; {did_you_mean(name, ARTEFACTS)}")
    return ARTEFACTS[name]
