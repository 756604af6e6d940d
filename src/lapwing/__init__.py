"""The Laplacian representation of a reinforcement-learning environment, exact or from experience."""

import ast
import importlib
import importlib.abc
import importlib.util
import sys
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

# The module of each public name, read from the stub file, the one place that lists them. A name is imported on first
# use, so that `import lapwing` is quick and loads neither JAX nor SciPy.
_HOMES = {
    alias.name: f"lapwing.{alias.name}" if node.module == "lapwing" else str(node.module)
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}

__all__ = sorted(_HOMES)


class _AfterGymnasium(importlib.abc.MetaPathFinder):
    """Registers the worlds right after Gymnasium is imported, so that `import lapwing` need not import it."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                _register_worlds()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _register_worlds() -> None:
    from lapwing.environments.gymnasium_env import register_worlds

    register_worlds()


if "gymnasium" in sys.modules:
    _register_worlds()
else:
    sys.meta_path.insert(0, _AfterGymnasium())


def __getattr__(name: str) -> Any:
    """Import a public name, or a subpackage such as ``lapwing.plots``, when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lapwing' has no attribute {name!r}")
    module = importlib.import_module(_HOMES[name])
    globals()[name] = module if module.__name__ == f"lapwing.{name}" else getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    """The public names, for completion."""
    return __all__
