"""Runs the tutorials and stores their outputs in them: python docs/run_tutorials.py [NAME ...]

A tutorial is edited as any notebook, or as its JSON. What differs from run to run or from machine to machine (times,
versions, who ran it) is not stored.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

FOLDER = Path(__file__).parent / "tutorials"
# All of them take well below a minute; a cell that hangs is an error.
SECONDS_PER_CELL = 300


def run(path: Path) -> nbformat.NotebookNode:
    """Run a notebook in a kernel of its own.

    Args:
        path: the notebook; the file is not changed.

    Returns:
        The notebook with its outputs.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        # Sockets in a folder of its own, where there are such: no port is opened, and no two kernels meet.
        sockets = {} if sys.platform == "win32" else {"transport": "ipc", "ip": str(Path(folder) / "kernel")}
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=SECONDS_PER_CELL,
            startup_timeout=SECONDS_PER_CELL,
            record_timing=False,
            coalesce_streams=True,
            config=Config({"KernelManager": sockets}),
        )
        client.execute()
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        for output in cell.get("outputs", []):
            output.get("transient", {}).clear()
    return notebook


def main(names: list[str]) -> None:
    """Run the tutorials with these names, or all of them."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(run(path), path)
            print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
