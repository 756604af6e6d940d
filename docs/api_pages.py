"""Pages of the API reference, made from the public names of the package when the site is built.

A page for `lapwing` itself and one for each subpackage, with every name of its `__all__`.
"""

import importlib
import inspect
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import lapwing

PACKAGES = (
    "environments", "data", "operators", "objectives", "encoders", "diagnostics", "evaluation", "training",
    "applications", "plots", "report", "storage",
)  # fmt: skip


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the site."""
    pages = {"index.md": _page("lapwing", lapwing.__all__, lapwing)}
    for name in PACKAGES:
        package = importlib.import_module(f"lapwing.{name}")
        pages[f"{name}.md"] = _page(f"lapwing.{name}", getattr(package, "__all__", []), package)
    for name, content in pages.items():
        files.append(File.generated(config, f"api/{name}", content=content))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Sphinx roles that are left in docstrings read as plain code."""
    return re.sub(r":(?:func|class|meth|data|attr|mod):<code>~?", "<code>", html)


def _page(title: str, names: list[str], package: Any) -> str:
    blocks = [f"# `{title}`\n\n{inspect.getdoc(package) or ''}\n"]
    for name in sorted(names, key=str.lower):
        home = _home(name, getattr(package, name))
        if home is not None:
            blocks.append(f"::: {home}\n    options:\n      heading: {name}\n      toc_label: {name}\n")
    return "\n".join(blocks)


def _home(name: str, found: Any) -> str | None:
    """Where a name is defined; None for constants, which have no docstring of their own."""
    module = getattr(found, "__module__", None)
    if inspect.ismodule(found) or module is None or not module.startswith("lapwing"):
        return None
    return f"{module}.{getattr(found, '__qualname__', name)}"
