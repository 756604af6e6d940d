"""How far a result can be trusted: certificates, sampling noise, and named problems."""

from lapwing.diagnostics.certificate import Certificate, certificate_from_residuals
from lapwing.diagnostics.noise import sampling_angles
from lapwing.diagnostics.problems import Problem, ProblemError

__all__ = ["Certificate", "Problem", "ProblemError", "certificate_from_residuals", "sampling_angles"]
