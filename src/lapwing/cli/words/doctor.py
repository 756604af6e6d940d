"""Help: ``lapwing doctor``."""

from dataclasses import dataclass

from lapwing.cli.words.options import Flag, Runnable


@dataclass(frozen=True)
class Doctor(Runnable):
    """Say what is installed, which devices JAX sees, and whether a tiny run works; advice where something is amiss.

    Example: lapwing doctor
    """

    json: Flag = False
    """Print JSON instead of tables."""
