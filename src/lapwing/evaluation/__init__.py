"""Scores of representations against the ground truth, the tabular (counting) baseline, and conformance of losses."""

from lapwing.evaluation.conformance import Conformance, Finding, check_loss
from lapwing.evaluation.scoring import Score, counting_score, relative_errors, score
from lapwing.evaluation.similarity import paper_cosines, subspace_cosines

__all__ = [
    "Conformance",
    "Finding",
    "Score",
    "check_loss",
    "counting_score",
    "paper_cosines",
    "relative_errors",
    "score",
    "subspace_cosines",
]
