"""What a command says of a result that cannot be trusted: lines with advice, and the exit code."""

from lapwing.cli import terminal
from lapwing.representation import LaplacianRepresentation

UNTRUSTED = 3


def show_problems(model: LaplacianRepresentation, which: str = "") -> None:
    """Each problem of a result in a line, on standard error; whether it may be trusted at all comes first.

    ``which`` stands before each line where there are several results.
    """
    problems = model.problems()
    names = [problem.name for problem in problems if problem.untrusted]
    if names:
        terminal.fail(f"{which}this result must not be trusted: {', '.join(names)}")
    for problem in problems:
        terminal.note(f"{which}{problem}")


def exit_code(model: LaplacianRepresentation) -> int:
    """3 where a result must not be trusted, else 0; few steps that did not converge are what was asked for."""
    return UNTRUSTED if any(problem.untrusted for problem in model.problems()) else 0
