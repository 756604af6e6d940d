"""What each command of the command line does; called with words already parsed."""

import importlib
from typing import Any

# The module of each command; only the one that is called is imported.
HOMES = {
    "worlds": "experience",
    "collect": "experience",
    "audit": "experience",
    "solve": "representations",
    "learn": "learning",
    "score": "representations",
    "report": "pictures",
    "plot": "pictures",
    "reproduce": "lapwing_paper.command",
    "doctor": "doctor",
}


def run(words: Any) -> int:
    """Do what the words say; the exit code."""
    command = type(words).__name__.lower()
    home = HOMES[command]
    module = importlib.import_module(home if "." in home else f"lapwing.cli.commands.{home}")
    code: int | None = getattr(module, f"run_{command}")(words)
    return code or 0
