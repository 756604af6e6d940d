"""``lapwing check-loss``: whether another implementation of ALLO has the optimum that it should have."""

from dataclasses import dataclass
from typing import Annotated

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, imported, option
from lapwing.errors import ArgumentError

DOES_NOT_CONFORM = 3

FunctionName = Annotated[str | None, option("[MODULE:]NAME", "none")]


@dataclass(frozen=True)
class CheckLossCommand:
    """Check a loss of your own against ALLO's exact optimum: order, norms, multipliers, gradients, dual update.

    Example: lapwing check-loss my_port:loss --update update --eigenvalues eigenvalues
    """

    loss: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODULE:NAME")]
    """The loss, or an Objective; the module may be a file in this folder."""
    update: FunctionName = None
    """The update of the duals; of the same module unless another is named."""
    init: FunctionName = None
    """The first duals, and the state of an optimiser that the update has."""
    eigenvalues: FunctionName = None
    """The read-out of the eigenvalues."""
    gradient: FunctionName = None
    """The gradient of a loss that JAX cannot trace."""
    json: Flag = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        """Print the findings, and advice about those that failed.

        Returns:
            0 if the loss conforms, else 3.
        """
        module, colon, _ = self.loss.rpartition(":")
        if not colon:
            raise ArgumentError(f"name the loss as MODULE:NAME, such as my_port:loss; got {self.loss!r}")
        functions = {}
        for name in ("update", "init", "eigenvalues", "gradient"):
            given = getattr(self, name)
            if given is not None:
                functions[name] = imported(given if ":" in given else f"{module}:{given}", f"--{name}")
        loss = imported(self.loss, "check-loss")
        with terminal.spinner(f"checking {self.loss}"):
            found = lw.check_loss(loss, **functions)
        if self.json:
            terminal.print_json(found.as_dict())
            return 0 if found.conforms else DOES_NOT_CONFORM
        title = f"{self.loss} on 13 states, gradients: {found.gradients}"
        terminal.print_table(title, ["check", "result", "measured"], found.rows())
        for advice in found.advice():
            terminal.note(advice)
        if not found.conforms:
            terminal.fail(f"{self.loss} does not conform to ALLO: {', '.join(one.name for one in found.failures)}")
            return DOES_NOT_CONFORM
        unchecked = ", ".join(one.name for one in found.unchecked)
        print(f"{self.loss} conforms to ALLO" + (f"; not checked: {unchecked}" if unchecked else ""))
        return 0
