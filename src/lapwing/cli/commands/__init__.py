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
    "doctor": "doctor",
}


def run(words: Any) -> int:
    """Do what the words say; the exit code."""
    command = type(words).__name__.lower()
    module = importlib.import_module(f"lapwing.cli.commands.{HOMES[command]}")
    code: int | None = getattr(module, f"run_{command}")(words)
    return code or 0
