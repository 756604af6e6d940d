"""Options that several commands share, and how an option is shown in help."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

ObservationMode = Literal["xy", "one_hot", "pixels"]


def option(metavar: str, default: str) -> object:
    """How an option that may be left out is shown in help: its metavar, and its default in words."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


# A line below the field says what it is for in its command.
LayoutsFolder = Annotated[Path | None, option("DIR", "what LAPWING_LAYOUTS names")]
Observation = Annotated[ObservationMode | None, option("{xy,one_hot,pixels}", "xy")]
Slip = Annotated[float | None, option("P", "0")]
PolicyFile = Annotated[Path | None, option("FILE.npy", "uniform")]
Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]


class Runnable:
    """A command whose work is a function of its name in ``lapwing.cli.commands``."""

    def run(self) -> int | None:
        """Do the work; the exit code."""
        from lapwing.cli import commands

        return commands.run(self)
