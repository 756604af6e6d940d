"""Figures of representations: eigenvectors on their world, spectra, learning curves, comparisons."""

from lapwing.plots.drift import drift_figure
from lapwing.plots.fields import draw_field, draw_world, field_places, field_values
from lapwing.plots.figures import (
    COLOURS,
    LINE_STYLES,
    PRINT,
    SCREEN,
    Style,
    draw_curves,
    draw_spectra,
    representation_figure,
    save_figure,
    worlds_figure,
)
from lapwing.plots.observation_maps import observations_figure
from lapwing.plots.option_maps import draw_option, options_figure
from lapwing.plots.time_series import draw_over_time, sample_episodes, trajectories_figure
from lapwing.plots.value_maps import Marks, value_maps

__all__ = [
    "COLOURS",
    "LINE_STYLES",
    "PRINT",
    "SCREEN",
    "Marks",
    "Style",
    "draw_curves",
    "draw_field",
    "draw_option",
    "draw_over_time",
    "draw_spectra",
    "draw_world",
    "drift_figure",
    "field_places",
    "field_values",
    "observations_figure",
    "options_figure",
    "representation_figure",
    "sample_episodes",
    "save_figure",
    "trajectories_figure",
    "value_maps",
    "worlds_figure",
]
