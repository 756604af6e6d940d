"""Scores of representations against the ground truth, and the tabular (counting) baseline."""

from lapwing.evaluation.scoring import Score, counting_score, relative_errors, score
from lapwing.evaluation.similarity import paper_cosines, subspace_cosines

__all__ = ["Score", "counting_score", "paper_cosines", "relative_errors", "score", "subspace_cosines"]
