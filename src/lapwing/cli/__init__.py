"""The command line. Commands of other packages use the shared options and the terminal's tables from here."""

from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, LayoutsFolder, option

__all__ = ["Flag", "LayoutsFolder", "option", "terminal"]
