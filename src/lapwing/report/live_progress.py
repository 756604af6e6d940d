"""``show_progress``: how far learning is, while it learns; one output that changes in a notebook, a line elsewhere."""

import math
import sys
from collections.abc import Callable
from html import escape
from typing import Any, TextIO

from lapwing.training.loop import Progress

WIDTH, HEIGHT = 260, 44


def show_progress(stream: TextIO | None = None) -> Callable[[Progress], None]:
    """A callback for ``lw.learn`` that shows where learning stands.

    In a notebook one output is replaced after every ``log_every`` steps: a bar, the latest numbers, and the largest
    angle so far as a curve. Elsewhere a line is printed, rewritten in a terminal.

    Args:
        stream: where lines go outside of a notebook; standard error unless given.

    Returns:
        The callback. Make a new one for each call of ``learn``.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("GridMaze-7", 5_000, seed=0)
        >>> model = lw.learn(data, dim=3, steps=40, log_every=20, callback=show_progress(sys.stdout))
        ... # doctest: +ELLIPSIS
        step 20 of at most 40: loss ..., largest angle ...
        step 40 of at most 40: loss ..., largest angle ...
    """
    display = _notebook_display() if stream is None else None
    angles: list[float] = []
    handle: Any = None

    def in_a_notebook(progress: Progress) -> None:
        nonlocal handle
        angles.append(progress.summary.get("angle", math.nan))
        content = {"text/html": _html(progress, angles), "text/plain": _line(progress)}
        if handle is None:
            handle = display(content, raw=True, display_id=True)  # type: ignore[misc]
        else:
            handle.update(content, raw=True)

    def in_a_line(progress: Progress) -> None:
        out = sys.stderr if stream is None else stream
        end = "\r" if out.isatty() and progress.step < progress.steps else "\n"
        print(_line(progress), end=end, file=out, flush=True)

    return in_a_line if display is None else in_a_notebook


def _notebook_display() -> Callable[..., Any] | None:
    """IPython's ``display`` where this is a kernel; IPython in a terminal has no outputs that change."""
    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    return display if getattr(shell, "kernel", None) is not None else None


def _line(progress: Progress) -> str:
    loss = f"loss {float(progress.metrics['loss'].mean()):.4g}"
    names = {"angle": "largest angle"}
    others = [f"{names.get(name, name)} {value:.4f}" for name, value in progress.summary.items()]
    return f"step {progress.step:,} of at most {progress.steps:,}: {', '.join([loss, *others])}"


def _html(progress: Progress, angles: list[float]) -> str:
    bar = f'<progress max="{progress.steps}" value="{progress.step}" style="width:{WIDTH}px"></progress>'
    return f'<div style="color:inherit;line-height:1.5">{bar}<br>{escape(_line(progress))}{_curve(angles)}</div>'


def _curve(angles: list[float]) -> str:
    """The angles on a logarithmic axis from 0.001 to 1, as a line; nothing before there are two."""
    points = [
        f"{WIDTH * number / (len(angles) - 1):.1f},{-HEIGHT / 3 * math.log10(min(max(angle, 1e-3), 1.0)):.1f}"
        for number, angle in enumerate(angles)
        if len(angles) > 1 and math.isfinite(angle)
    ]
    if len(points) < 2:
        return ""
    line = f'<polyline points="{" ".join(points)}" fill="none" stroke="#0072B2" stroke-width="2"/>'
    floor = f'<line x1="0" x2="{WIDTH}" y1="{HEIGHT}" y2="{HEIGHT}" stroke="currentColor" stroke-width="1"/>'
    label = "largest angle, from 1 down to 0.001 on a logarithmic axis"
    size = f'width="{WIDTH}" height="{HEIGHT + 2}" viewBox="0 -1 {WIDTH} {HEIGHT + 2}"'
    return f'<br><svg {size} role="img" aria-label="{label}">{floor}{line}</svg><br><small>{label}</small>'
