"""The methods that studies compare, as settings of a run: ours and the paper's, in the paper's units."""

from typing import Any

Settings = dict[str, Any]

DIM = 11

ALLO_DEFAULT, ALLO_PAPER, GGDO_PAPER = "ALLO (default preset)", "ALLO (paper preset)", "GGDO (paper preset)"

# The coefficients that the paper chose for its twelve worlds, in the units of its authors' code.
PAPER_GGDO_BARRIER = 2.0
PAPER_BARRIER_RATE = 0.01
PAPER_ALLO_BARRIER = 0.5

PLAIN: Settings = {"refine": "none", "oversampling": 0, "stop_when_converged": False}
"""Options of the default preset without refinement, extra components and early stop."""


def ggdo_barrier(coefficient: float, dim: int = DIM) -> float:
    """The ``b`` of our :func:`lapwing.ggdo` that is the paper's GGDO with this coefficient.

    The paper's experiments weigh the penalty with ``coefficient d^2 / sum_jk min(c_j, c_k)``, a mean over pairs that
    shrinks it by ``6 d / ((d + 1)(2 d + 1))``, 0.239 for d = 11; and their graph term lacks its half. Modes with
    ``lambda >= 2 b`` vanish: for the paper's coefficient 2 all above 0.478.

    Args:
        coefficient: the barrier coefficient of the authors' code.
        dim: number of components, ``d``.

    Returns:
        The barrier in the units of the paper's own equations.

    Example:
        >>> round(2 * ggdo_barrier(2.0), 3)
        0.478
    """
    return coefficient / 2.0 * 6.0 * dim / ((dim + 1) * (2 * dim + 1))


def allo_settings(barrier: float = PAPER_ALLO_BARRIER, rate: float = PAPER_BARRIER_RATE, **options: Any) -> Settings:
    """ALLO as in the paper's experiments; without the half of the graph term, ``b`` and its rate are twice ours.

    Args:
        barrier: ``b`` at the start, in the paper's units.
        rate: of the growth of ``b``, in the paper's units.
        options: further options of :func:`lapwing.learn`.

    Returns:
        Options of :func:`lapwing.learn`.
    """
    return {"objective": "allo", "barrier": barrier / 2.0, "barrier_rate": rate / 2.0, **options}


def ggdo_settings(barrier: float = PAPER_GGDO_BARRIER, rate: float = 0.0, **options: Any) -> Settings:
    """GGDO as in the paper's experiments, see :func:`ggdo_barrier`.

    Args:
        barrier: ``b`` at the start, in the paper's units.
        rate: of the growth of ``b``, in the paper's units.
        options: further options of :func:`lapwing.learn`.

    Returns:
        Options of :func:`lapwing.learn`.
    """
    return {"objective": "ggdo", "barrier": ggdo_barrier(barrier), "barrier_rate": ggdo_barrier(rate), **options}


def paper_run(options: Settings, transitions: int, steps: int, log_points: int = 50) -> Settings:
    """Settings of a run with the paper's preset: sampled pairs, three layers, raw input, Adam at 1e-3.

    Args:
        options: of :func:`lapwing.learn`, besides steps and logging.
        transitions: size of the data set.
        steps: gradient steps.
        log_points: points of the learning curve.

    Returns:
        Settings of the task ``learn``.
    """
    every = max(1, steps // log_points)
    return {"preset": "paper", "transitions": transitions, "options": {"steps": steps, "log_every": every, **options}}


def exact_run(options: Settings, transitions: int = 0) -> Settings:
    """Settings of a run with the default preset, from the exact operator or from counted transitions.

    Args:
        options: of :func:`lapwing.learn`.
        transitions: size of the data set; 0 for the exact operator.

    Returns:
        Settings of the task ``learn``.
    """
    return {"preset": "default", "transitions": transitions, "options": options}
