"""Questions about curves: thresholds and slopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from betafield import checks
from betafield.learned import Learned

if TYPE_CHECKING:
    from betafield.answers.threshold import Threshold
    from betafield.posteriors import Sampled


class Curves(Learned):
    """An estimator that answers where a probability reaches a level, and how steep it is."""

    def threshold(
        self,
        level: float,
        feature: Any = None,
        at: Any = None,
        under: Any = None,
        anchored: bool = False,
        *,
        size: int = 2000,
        random_state: Any = None,
    ) -> Threshold:
        """Return the posterior of where the probability first reaches a level along a feature.

        Fields are drawn from the joint posterior (`draws`). Each gives a curve along the feature,
        which is made monotone (isotonic regression); the place where it first crosses the level is
        a draw of the threshold. A falling curve crosses the level downwards. `monotonic_cst` says
        whether curves rise or fall; without it, the direction is the overall direction of the
        posterior mean.

        Parameters
        ----------
        level : float
            The probability, between 0 and 1.
        feature : str or int, default=None
            The feature, by name or number. None: the only one.
        at : mapping of str to float or row of X, default=None
            Values at which the other features are fixed. None: the curve is the average over the
            places of the trials.
        under : context of shape (p + 1,), default=None
            The context to which the level refers, such as 75 % right answers if some are guesses.
            None: the level refers to π.
        anchored : bool, default=False
            Whether the curve is known to start at 0 and end at 1 (a falling curve: at 1 and at 0).
            This adds five artificial failures and five successes at the ends of the domain; with
            several features it needs `at`. Use it for staircases and other adaptive designs, which
            hardly visit the ends. A warning is given if the trials contradict it.
        size : int, default=2000
            Number of draws.
        random_state : int, numpy Generator or RandomState, default=None
            The seed. None: different draws each time.

        Returns
        -------
        Threshold
            With `median()`, `interval()`, `prob_below(x)`, `slope()`, `draws`, and the share of
            draws that do not reach the level.

        Examples
        --------
        >>> import numpy as np
        >>> from betafield import SmoothBetaClassifier
        >>> rng = np.random.default_rng(0)
        >>> dose = rng.uniform(0, 10, size=(500, 1))
        >>> died = rng.uniform(size=500) < 1 / (1 + np.exp(-(dose[:, 0] - 4)))
        >>> model = SmoothBetaClassifier(bounds=[(0, 10)]).fit(dose, died)
        >>> half = model.threshold(0.5, random_state=0)
        >>> low, high = half.interval(0.95)
        >>> low < 4 < high, abs(half.median() - 4) < 0.5
        (True, True)
        """
        from betafield.answers.thresholds import threshold
        from betafield.process.noise import Seed

        size = checks.whole("size", size, low=1, rule="a whole number from 1 on is needed")
        seed = Seed.of(checks.generator("random_state", random_state))
        return threshold(self.field_, level, feature, at, under, anchored, size, seed)

    def slope(
        self, X: Any, feature: Any = None, *, size: int = 2000, random_state: Any = None
    ) -> Sampled | dict[str, Sampled]:
        """Return the posterior of the slope of π at each row of X, per unit of a feature.

        Slopes are differences of drawn fields over 1/64 of the domain, in the units in which the
        model is smooth, about each point; at an end of the domain over half of that.

        Parameters
        ----------
        X : array or dataframe of shape (m, d)
            The points.
        feature : str or int, default=None
            The feature. None: the only one, or each of several.
        size : int, default=2000
            Number of draws.
        random_state : int, numpy Generator or RandomState, default=None
            The seed. None: different draws each time.

        Returns
        -------
        Sampled, or dict of str to Sampled
            One distribution per row; for several features, a dict by their names.

        Examples
        --------
        >>> import numpy as np
        >>> from betafield import SmoothBetaClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(2_000, 1))
        >>> model = SmoothBetaClassifier().fit(X, rng.uniform(size=2_000) < 0.2 + 0.6 * X[:, 0])
        >>> low, high = model.slope([[0.5]], random_state=0).interval(0.95)
        >>> bool(low[0] < 0.6 < high[0])
        True
        """
        from betafield.answers.thresholds import slopes
        from betafield.process.noise import Seed

        size = checks.whole("size", size, low=1, rule="a whole number from 1 on is needed")
        seed = Seed.of(checks.generator("random_state", random_state))
        field, points = self.asked(X)
        return slopes(field, points, feature, size, seed)
