"""``lapwing export``: a saved network as a file for other libraries."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.arguments import Flag, option


@dataclass(frozen=True)
class ExportCommand:
    """Write the network of a saved representation for other libraries: ONNX, or PyTorch source with its weights.

    Example: lapwing export runs/rooms model.onnx
    """

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a saved representation."""
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """File that ends in .onnx, or in .py for PyTorch."""
    weights: Annotated[Path | None, option("FILE", "the name of the source, .safetensors")] = None
    """File of the weights of a PyTorch module."""
    json: Flag = False
    """Print the names of the files as JSON."""

    def run(self) -> None:
        """Write the files and print their names."""
        written = lw.load(self.model).export(self.file, self.weights)
        if self.json:
            terminal.print_json({"files": [str(path) for path in written]})
        else:
            print("\n".join(map(str, written)))
