"""Every study by name; adding one is one file and one row."""

from lapwing.errors import UnknownNameError, did_you_mean
from lapwing_paper.studies import (
    ablation,
    brittle_ggdo,
    commute_distances,
    comparison_pixels,
    comparison_xy,
    cover_time,
    diffusion_options,
    diffusion_time,
    directed_times,
    eigenvalue_bias,
    eigenvalues,
    fair_ggdo,
    horizons,
    many_components,
    maze_planning,
    online_policies,
    permutations,
    pixels_centred,
    rivals,
    robust_allo,
    rotations,
    shaping,
    theorems,
    world_gallery,
    zero_shot_rewards,
)
from lapwing_paper.study import Study

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
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
        theorems,
        eigenvalue_bias,
        fair_ggdo,
        pixels_centred,
        horizons,
        many_components,
        rivals,
        commute_distances,
        directed_times,
        diffusion_time,
        cover_time,
        diffusion_options,
        shaping,
        zero_shot_rewards,
        maze_planning,
        online_policies,
    )
}


def find_study(name: str) -> Study:
    """The study of that name, or an error that offers the nearest one.

    Args:
        name: as on the command line.

    Returns:
        The study.
    """
    if not isinstance(name, str) or name not in STUDIES:
        shown = str(name)[:100]
        raise UnknownNameError(f"nothing to reproduce is called {shown!r}; {did_you_mean(shown, STUDIES)}")
    return STUDIES[name]


def overview() -> str:
    """Every study in Markdown: what it shows, the command, its sizes, and every deviation from the paper.

    Returns:
        The section "Every study" of docs/reproduction.md.

    Example:
        >>> overview().splitlines()[0]
        '### brittle-ggdo'
    """
    lines = []
    for name, study in STUDIES.items():
        origin = f"{study.paper} of the paper." if study.paper else "A study of our own."
        lines += [f"### {name}", "", f"{study.title}. {origin} [Result of the quick version](results/{name}.md).", ""]
        lines += [f"    lapwing reproduce {name} --quick    # {study.quick}"]
        lines += [f"    lapwing reproduce {name} --full     # {study.full}", ""]
        lines += [f"* {deviation}" for deviation in study.deviations] + [""]
    return "\n".join(lines)
