"""``lapwing audit``: what is in a data set, and what is wrong with it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, read_data


@dataclass(frozen=True)
class AuditCommand:
    """Audit a data set: coverage, components, episode ends, asymmetry, hidden resets.

    Example: lapwing audit data
    """

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Folder that `lapwing collect` or Trajectories.save wrote, or an OGBench file (.npz)."""
    discount: float = 0.9
    """Discount of the lags that training would draw."""
    json: Flag = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Print the audit and its warnings."""
        result = lw.audit(read_data(self.data), self.discount)
        if self.json:
            terminal.print_json(result.as_dict())
            return
        terminal.print_facts(f"Audit of {self.data}", result.rows())
        for warning in result.warnings:
            terminal.note(warning)
