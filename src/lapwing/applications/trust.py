"""Refuse what is not a representation, and warn of components that a certificate does not trust."""

import warnings
from collections.abc import Iterable

from lapwing.checks import shown
from lapwing.diagnostics.certificate import NOT_CONVERGED, TOO_FEW_DATA
from lapwing.errors import ArgumentError, UntrustedWarning
from lapwing.representation import LaplacianRepresentation


def check_model(model: LaplacianRepresentation, smallest: int = 1) -> None:
    """Refuse anything but a representation of enough dimensions.

    Args:
        model: what was given.
        smallest: how many dimensions are needed; with 2 there is a component that is not constant.
    """
    if not isinstance(model, LaplacianRepresentation):
        raise ArgumentError(f"expected a LaplacianRepresentation from solve, learn or load, got {shown(model)}")
    if model.dim < smallest:
        raise ArgumentError("this representation has only its constant component, which tells nothing; use dim >= 2")


def warn_of_untrusted(
    model: LaplacianRepresentation, components: Iterable[int], consequence: str, stacklevel: int = 3
) -> None:
    """Warn (:class:`UntrustedWarning`) of components that have not converged or rest on too few data.

    Args:
        model: where it has no certificate, nothing is known and there is no warning.
        components: numbers of components, counted from 1.
        consequence: what may be wrong, as the beginning of the message.
        stacklevel: which caller the warning is shown at; 3 is that of the function that calls this one.
    """
    if model.residuals is None or model.orthonormality_error is None:
        return
    verdicts = model.certificate().verdicts
    poor = [
        f"{number} ({verdicts[number - 1]})"
        for number in components
        if verdicts[number - 1] in (NOT_CONVERGED, TOO_FEW_DATA)
    ]
    if poor:
        warnings.warn(f"{consequence}: {', '.join(poor)}", UntrustedWarning, stacklevel=stacklevel)
