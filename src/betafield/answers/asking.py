"""Questions about the whole field: one mixin with one method per question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from betafield import cautions, checks
from betafield.answers.curves import Curves
from betafield.methods import AnyField

if TYPE_CHECKING:
    from betafield.answers.importance import PartialDependence
    from betafield.posteriors import LatentNormal, Sampled
    from betafield.posteriors.contrasts import Difference

Floats = npt.NDArray[np.float64]


class Answers(Curves):
    """An estimator that answers questions about the field as a whole."""

    def draws(self, X: Any, size: int = 2000, random_state: Any = None) -> Floats:
        """Return fields drawn from the joint posterior, at each row of X.

        All draws are equally likely, and each is a whole field. Compute any number from every draw,
        such as an average, a difference or the place where a level is crossed, and you have the
        posterior of that number. The same seed gives the same fields at any points, whether you ask
        for them together or separately, in any order.

        With a process, hyper-parameters are drawn too, and draws are weighted by the exact
        likelihood of the trials. With four or more features, or hundreds of levels, they are not,
        and draws have the distribution of `posterior`. With windows, each point has the
        distribution of `posterior`, and points are correlated as far as windows reach.

        Parameters
        ----------
        X : array or dataframe of shape (m, d)
            The points.
        size : int, default=2000
            Number of fields.
        random_state : int, numpy Generator or RandomState, default=None
            The seed. None: different fields each time.

        Returns
        -------
        array of shape (size, m), or (size, m, n_classes) with three or more classes
            The success probability of every field at every row.

        Examples
        --------
        The probability that success is more likely at 0.8 than at 0.2:

        >>> import numpy as np
        >>> from betafield import SmoothBetaClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(200, 1))
        >>> model = SmoothBetaClassifier().fit(X, rng.uniform(size=200) < X[:, 0])
        >>> low, high = model.draws([[0.2], [0.8]], random_state=0).T
        >>> float((high > low).mean().round(2))
        1.0
        """
        from betafield.answers import draws
        from betafield.process.noise import Seed

        size = checks.whole("size", size, low=1, rule="a whole number from 1 on is needed")
        seed = Seed.of(checks.generator("random_state", random_state))
        field, points = self.asked(X)
        cautions.at_points(field, points)
        return draws.fields(field, size, seed).at(points)

    def average(self, X: Any, weights: Any = None, by: Any = None) -> LatentNormal | Sampled:
        """Return the posterior of the average of π over the rows of X.

        If the rows are points spread over an area, it is the average over the area; if they are the
        members of a population, or groups weighted by size, it is that over the population; if
        they are ages with the weights of a standard population, it is the age-standardised rate.
        The errors at neighbouring rows are largely the same and do not average out, so intervals
        are much wider than they would be for independent rows.

        Parameters
        ----------
        X : array or dataframe of shape (m, d)
            The points.
        weights : array of shape (m,), default=None
            The weight of each row, 0 or more. None: equal weights.
        by : array of shape (m,), default=None
            The area of each row: the result has one average per area, in the order of
            `numpy.unique(by)`. None: one average over all rows.

        Returns
        -------
        LatentNormal or Sampled
            One row, or one per area; each component is normal on the log-odds scale. For distorted
            trials and for monotone fields it is a set of draws, which are the same every time.

        Examples
        --------
        >>> import numpy as np
        >>> from betafield import SmoothBetaClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(500, 1))
        >>> model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, rng.uniform(size=500) < X[:, 0])
        >>> grid = np.linspace(0, 1, 101)[:, None]
        >>> whole = model.average(grid)
        >>> low, high = whole.interval(0.95)
        >>> bool(low[0] < 0.5 < high[0])
        True
        >>> left, right = model.average(grid, by=grid[:, 0] > 0.5).mean()
        >>> bool(0.2 < left < 0.3 and 0.7 < right < 0.8)
        True
        """
        from betafield.answers import area

        field, points = self._asked_two("average", "X", X)
        cautions.at_points(field, points)
        return area.average(field, points, weights, by)

    def contrast(self, X1: Any, X2: Any, weights1: Any = None, weights2: Any = None) -> Difference:
        """Return the posterior of the average of π over X1 minus that over X2.

        Each side is averaged over its rows first, as in `average`, so the two may have different
        numbers of rows; rows are never compared one by one. Errors that both sides share cancel,
        so the interval is not that of two independent averages.

        Parameters
        ----------
        X1, X2 : array or dataframe of shape (m, d)
            The points of either side.
        weights1, weights2 : array of shape (m,), default=None
            The weight of each row, 0 or more. None: equal weights.

        Returns
        -------
        Difference
            The difference, within [−1, 1]: `mean`, `interval`, `prob_above(0)` and so on. Its
            `odds_ratio()` is the posterior of the odds ratio of the two averages.

        Examples
        --------
        >>> import numpy as np
        >>> from betafield import SmoothBetaClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(500, 1))
        >>> model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, rng.uniform(size=500) < X[:, 0])
        >>> more = model.contrast([[0.6]], [[0.4]])
        >>> more.mean().round(1), more.prob_above(0.0).round(1)
        (array([0.2]), array([1.]))
        >>> bool(more.odds_ratio().interval(0.95)[0][0] > 1.0)
        True
        """
        from betafield.answers import area

        field, first = self._asked_two("contrast", "X1", X1)
        field, second = self._asked_two("contrast", "X2", X2)
        points = np.concatenate([first, second])
        cautions.at_points(field, points)
        both = np.zeros((2, len(points)))
        both[0, : len(first)] = area.normalised(
            "weights1", area.shares("weights1", weights1, len(first))
        )
        both[1, len(first) :] = area.normalised(
            "weights2", area.shares("weights2", weights2, len(second))
        )
        return area.contrast(area.averages_of(field, points, both))

    @property
    def importance_(self) -> Floats:
        """The share of the field's variance that is lost if a feature is unknown.

        Shares of all features add up to 1; they are all 0 if the field is constant. See
        `betafield.answers.importance`.
        """
        from betafield.answers import importance

        return importance.importance(self.field_)

    def partial_dependence(self, feature: Any = None, grid: Any = None) -> PartialDependence:
        """Return how π changes along one feature, averaged over the places of the trials.

        Parameters
        ----------
        feature : str or int, default=None
            Its name or index; None: the only one.
        grid : list, default=None
            Values of the feature, or levels of a category. None: 25 values over the domain, or all
            observed levels.

        Returns
        -------
        PartialDependence
            `values`, and the `posterior` of the average at each of them.

        Examples
        --------
        >>> import numpy as np
        >>> from betafield import SmoothBetaClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(400, 2))
        >>> model = SmoothBetaClassifier().fit(X, rng.uniform(size=400) < X[:, 0])
        >>> along = model.partial_dependence(0, grid=[0.2, 0.8])
        >>> low, high = along.posterior.interval(0.95)
        >>> bool(high[0] < low[1])
        True
        >>> bool(model.importance_[0] > 0.8)
        True
        """
        from betafield.answers import importance

        field = self.field_
        if len(field.classes) > 2:
            raise ValueError(
                f"partial_dependence: this model has {len(field.classes)} classes, but this needs "
                "two; average predict_proba(X) over rows instead"
            )
        return importance.partial_dependence(field, feature, grid)

    def _asked_two(self, method: str, name: str, X: Any) -> tuple[AnyField, Floats]:
        """Return the field and the points, for questions about two classes."""
        field, points = self.asked(X, name)
        if len(field.classes) > 2:
            raise ValueError(
                f"{method}: this model has {len(field.classes)} classes, but this needs two; "
                "average draws(X), of shape (size, m, n_classes), over rows instead"
            )
        checks.require(len(points), name, points.shape, "at least one row is needed")
        return field, points
