"""For scikit-learn: the Laplacian representation as a transformer, in pipelines and searches."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.data.loading import from_arrays
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, MissingExtraError
from lapwing.operators.lagged import lagged_moments
from lapwing.training.learner import learn

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import Tags, check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtraError("lapwing.sklearn needs scikit-learn: pip install 'lapwing[sklearn]'") from error

__all__ = ["LaplacianTransformer"]

# Directions of held-out functions below this share of the largest are left out of the score.
RANK_TOLERANCE = 1e-8


class LaplacianTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns the smallest eigenvectors of the graph Laplacian from observations in the order of time.

    Rows are consecutive states. Where a new episode begins is told by ``groups``, or by a list of one array per episode
    in place of ``X``; without either, all rows are one episode. A search over parameters splits a list by episodes, and
    needs no routing of ``groups``.

    Args:
        n_components: how many components, the constant one included.
        preset: of :func:`lapwing.learn`.
        objective: of :func:`lapwing.learn`; None for the preset's.
        encoder: the kind of network; None to choose by the shape of observations.
        steps: gradient steps; None for the preset's.
        options: any other options of :func:`lapwing.learn`, by name.
        random_state: seed; None draws one from NumPy's global state, as in scikit-learn.

    Attributes:
        model_: the :class:`lapwing.LaplacianRepresentation`.
        eigenvalues_: (n_components,) one-step eigenvalues, ascending.
        n_features_in_: columns of ``X``.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("GridMaze-7", 20_000, seed=0)
        >>> episodes = [data.episode(number) for number in range(data.num_episodes)]
        >>> transformer = LaplacianTransformer(3, steps=50, random_state=0).fit(episodes)
        >>> transformer.transform(data.states()).shape == (data.num_states, 3)
        True
    """

    def __init__(
        self,
        n_components: int = 11,
        *,
        preset: str = "default",
        objective: str | None = None,
        encoder: str | None = None,
        steps: int | None = None,
        options: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        """Keep the parameters as they are."""
        self.n_components = n_components
        self.preset = preset
        self.objective = objective
        self.encoder = encoder
        self.steps = steps
        self.options = options
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, groups: "ArrayLike | None" = None) -> Self:
        """Learn from rows in the order of time.

        Args:
            X: (n, features) observations, (n, ...) images, or a list of such arrays, one per episode.
            y: not used.
            groups: (n,) the episode of each row; rows of an episode stand together.

        Returns:
            The transformer.
        """
        data = self._trajectories(X, groups, reset=True)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        options: dict[str, Any] = {"preset": self.preset, "objective": self.objective, "encoder": self.encoder}
        options |= {} if self.steps is None else {"steps": self.steps}
        self.model_ = learn(data, self.n_components, seed=seed, **options, **(self.options or {}))
        self.eigenvalues_ = self.model_.eigenvalues
        return self

    def transform(self, X: Any) -> Any:
        """Components of observations.

        Args:
            X: (n, features), (n, ...) images, or a list of such arrays.

        Returns:
            (n, n_components) values; a list of them for a list.
        """
        check_is_fitted(self)
        if _is_list_of_episodes(X):
            return [self.transform(rows) for rows in X]
        rows = self._checked(X, reset=False)
        values = self.model_.transform(rows)
        return values.astype(rows.dtype, copy=False)

    def score(self, X: Any, y: Any = None, groups: "ArrayLike | None" = None) -> float:
        """The variational score of the components on these observations: larger is better.

        The sum of the eigenvalues of the one-step operator restricted to the span of the components,
        ``tr(E[u u^T]^-1 E[u(s) u(s')^T])`` (generalised matrix Rayleigh quotient; McGibbon & Pande, 2015). On data that
        were not learned from, no functions are expected to exceed what the eigenvectors reach, the sum of their mu.
        Compare scores of the same number of components.

        Args:
            X: as for :meth:`fit`.
            y: not used.
            groups: as for :meth:`fit`.

        Returns:
            The score, at most ``n_components`` up to noise.
        """
        check_is_fitted(self)
        data = self._trajectories(X, groups, reset=False)
        if not data.num_transitions:
            raise ArgumentError("a score needs episodes of at least two states")

        def components(rows: NDArray[np.int64]) -> NDArray[np.float64]:
            return self.model_.transform(data.observations[rows]).astype(np.float64, copy=False)

        moments = lagged_moments(components, data, [1])
        product = (moments.products[0] + moments.products[0].T) / 2.0
        return float(np.trace(np.linalg.pinv(moments.grams[0], rcond=RANK_TOLERANCE, hermitian=True) @ product))

    def _trajectories(self, X: Any, groups: "ArrayLike | None", reset: bool) -> Trajectories:
        if _is_list_of_episodes(X):
            if groups is not None:
                raise ArgumentError("groups are for one array of all rows; a list has an array for each episode")
            episodes = [self._checked(rows, reset and not number) for number, rows in enumerate(X)]
            return from_arrays(episodes)
        rows = self._checked(X, reset, ensure_min_samples=2)
        if groups is None:
            return from_arrays([rows])
        labels = np.asarray(groups)
        if labels.shape != (len(rows),):
            raise ArgumentError(f"groups must name the episode of each of {len(rows)} rows, got shape {labels.shape}")
        starts = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]]))
        if len(np.unique(labels)) < len(starts):
            raise ArgumentError("rows of the same group must stand together, in the order of time; sort them first")
        return from_arrays(rows, lengths=np.diff([*starts, len(rows)]))

    def _checked(self, X: Any, reset: bool, **checks: Any) -> NDArray[Any]:
        return validate_data(self, X, reset=reset, dtype=(np.float64, np.float32), allow_nd=True, **checks)

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.dim)

    def __sklearn_tags__(self) -> Tags:
        """What scikit-learn's checks and searches may expect."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _is_list_of_episodes(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(np.ndim(rows) >= 2 for rows in X)
