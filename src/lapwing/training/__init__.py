"""Learning: one step, one scanned loop, many seeds, and the representation that comes out."""

from lapwing.training.engine import NetworkCollapsedError

__all__ = ["NetworkCollapsedError"]
