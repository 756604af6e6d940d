"""``lapwing certify``: which functions of somebody else are eigenfunctions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, LayoutsFolder, imported, is_data, option, read_data
from lapwing.errors import ArgumentError

NOT_CERTIFIED = 3


@dataclass(frozen=True)
class CertifyCommand:
    """Certify functions of your own or of a saved representation: which are eigenfunctions, as other data show it.

    Example: lapwing certify my_functions:tica held_out
    """

    functions: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODULE:NAME|MODEL")]
    """A function of observations, or an object with transform; the module may be a file in this folder. Or a folder of
    a saved representation."""
    data: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Data that the functions were not fitted to: a data folder or an OGBench file; or a world, solved exactly."""
    discounts: Annotated[tuple[float, ...], option("G...", "0.9 0.99 0.999")] = (0.9, 0.99, 0.999)
    """Of the lags with which residuals are measured; short ones, such as 0.1, for directed dynamics."""
    seed: int = 0
    """Of what is drawn from the data."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    json: Flag = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        """Print the verdicts.

        Returns:
            0 if every function is an eigenfunction, or one of a repeated eigenvalue; else 3.
        """
        from lapwing.cli.results import show_problems

        functions = self._functions()
        data: Any = read_data(self.data) if is_data(self.data) else lw.operator(self.data, layouts=self.layouts)
        with terminal.spinner(f"certifying {self.functions}"):
            found = lw.certify(functions, data, discounts=self.discounts, seed=self.seed)
        if self.json:
            terminal.print_json(found.as_dict())
            return 0 if found.all_trusted else NOT_CERTIFIED
        print(found)
        show_problems(found.model)
        return 0 if found.all_trusted else NOT_CERTIFIED

    def _functions(self) -> Any:
        from lapwing.storage.models import MANIFEST

        if (Path(self.functions) / MANIFEST).is_file():
            return lw.load(self.functions)
        if ":" not in self.functions:
            raise ArgumentError(
                f"name the functions as MODULE:NAME, such as my_functions:tica, or a folder of a saved representation; "
                f"got {self.functions!r}"
            )
        return imported(self.functions, "certify")
