"""The paper as a client of lapwing: its studies, its theory and its published numbers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lapwing_paper.reproduction import reproduce

__all__ = ["reproduce"]


def __getattr__(name: str) -> Any:
    """Import on first use: `lapwing --help` imports this package only for the arguments of a command."""
    if name != "reproduce":
        raise AttributeError(f"module 'lapwing_paper' has no attribute {name!r}")
    from lapwing_paper.reproduction import reproduce

    return reproduce
