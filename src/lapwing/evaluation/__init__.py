"""Scores against the ground truth, and the tabular baseline."""

from lapwing.evaluation.score import relative_errors

__all__ = ["relative_errors"]
