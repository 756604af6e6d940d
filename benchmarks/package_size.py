"""Size and shape of the package: modules, lines, names used twice, documentation, and the work of one `lapwing learn`.

    python benchmarks/package_size.py [--source DIR] [--learn]

With `--source` another checkout's `src` is measured, so that two commits can be compared; run it with that checkout's
Python, because `--learn` imports the package. `--learn` runs one `lapwing learn Rooms-16` and counts the modules that
were executed and how often transitions were counted, an eigenproblem was solved and components were certified.
"""

import argparse
import ast
import collections
import contextlib
import io
import json
import sys
import tempfile
import tokenize
from pathlib import Path
from typing import Any

NODES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

# Functions that do the work, under the names they have had: (name, file name).
COUNTED = {
    "transitions counted": {("counts", "container.py"), ("_counted", "trajectories.py")},
    "eigenproblems solved": {("smallest_eigenpairs", "eigensolver.py")},
    "certificates made": {("certify", "certificates.py"), ("certificate_from_residuals", "certificate.py")},
}


def code_lines(text: str) -> int:
    """Lines that are neither blank, comment nor docstring."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for statement in node.body if isinstance(node, NODES) else []:
            if isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str):
                documented |= set(range(statement.lineno, (statement.end_lineno or 0) + 1))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    used: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            used |= set(range(token.start[0], token.end[0] + 1))
    return len(used - documented)


def is_documented(node: ast.FunctionDef) -> bool:
    """Whether a function has Args where it has arguments, and Returns where it returns something."""
    docstring = ast.get_docstring(node) or ""
    arguments = [one.arg for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    wants_arguments = bool(set(arguments) - {"self", "cls"})
    wants_returns = node.returns is not None and ast.unparse(node.returns) != "None"
    return ("Args:" in docstring or not wants_arguments) and (
        "Returns:" in docstring or "Yields:" in docstring or not wants_returns
    )


def shape(source: Path) -> dict[str, Any]:
    """Counts over the source files of all packages below a folder."""
    found: dict[str, Any] = {}
    names: collections.Counter[str] = collections.Counter()
    classes: collections.Counter[str] = collections.Counter()
    public = documented = 0
    for package in sorted(path for path in source.iterdir() if (path / "__init__.py").exists()):
        texts = {path: path.read_text() for path in sorted(package.rglob("*.py"))}
        found[package.name] = {
            "modules": len(texts),
            "lines": sum(text.count("\n") for text in texts.values()),
            "code lines": sum(code_lines(text) for text in texts.values()),
            "modules at the root": len(list(package.glob("*.py"))),
        }
        for path, text in texts.items():
            names[path.name] += path.name != "__init__.py"
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef):
                    classes[node.name] += 1
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    public, documented = public + 1, documented + is_documented(node)
    found["file names used more than once"] = sorted(name for name, count in names.items() if count > 1)
    found["class names used more than once"] = sorted(name for name, count in classes.items() if count > 1)
    found["public functions with Args and Returns"] = f"{documented} of {public} ({documented / public:.0%})"
    return found


def work_of_learning() -> dict[str, int]:
    """Modules executed and expensive calls made by one command, counted with a profile hook."""
    made: collections.Counter[str] = collections.Counter()
    homes = {key: what for what, keys in COUNTED.items() for key in keys}

    def hook(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name in {
            "counts",
            "_counted",
            "smallest_eigenpairs",
            "certify",
        }:
            what = homes.get((frame.f_code.co_name, Path(frame.f_code.co_filename).name))
            made[what or "other"] += 1

    try:
        from lapwing.cli.main import main
    except ImportError:  # version 0.1
        from lapwing.cli import main
    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(hook)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                main(["learn", "Rooms-16", "--dim", "11", "--out", f"{folder}/run"])
        finally:
            sys.setprofile(None)
    modules = sum(name.split(".")[0] == "lapwing" for name in sys.modules)
    return {"modules executed": modules, **{what: made[what] for what in COUNTED}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parents[1] / "src")
    parser.add_argument("--learn", action="store_true")
    arguments = parser.parse_args()
    result = shape(arguments.source)
    if arguments.learn:
        sys.path.insert(0, str(arguments.source))
        result["one lapwing learn Rooms-16"] = work_of_learning()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
