"""SmoothBetaClassifier: validates, delegates, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from betafield import cautions, success
from betafield.answers.asking import Answers
from betafield.teachable import Teachable

if TYPE_CHECKING:
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]


class SmoothBetaClassifier(Answers, Teachable, ClassifierMixin, BaseEstimator):
    """A smooth probability learned from yes/no trials, with a posterior at every point.

    By default (`method="auto"`) a Gaussian process describes what is smooth, and windows of its
    residuals describe what is not; they are weighted by how well they predict held-out trials.
    What is learned depends only on the trials by place and on the options.

    If `bandwidth` is given, windows alone are used: the Smooth Beta Process of Rolland et al.
    (2019). With n trials within Δ of x, S of them successes, the success probability π(x) has the
    posterior

        π̃(x) ~ Beta(α(x) + S, β(x) + n − S),

    and with three or more classes the Dirichlet distribution of the window's counts per class. If
    no trial is near, the posterior is the prior.

    If trials were distorted in a known way, pass a `context` (see `betafield.contexts`): the
    posterior is then that of π, the probability without the distortion.

    Parameters
    ----------
    bandwidth : float, "theory", "loo" or "auto", default="auto"
        Δ, the width of the windows, in scaled units. "theory": L^(−2/(d+2)) t^(−1/(d+2)).
        "loo": the width with the best leave-one-out log score. Any value except "auto" implies
        `method="windows"`; with that method, "auto" means "loo".
    method : {"auto", "process", "windows"}, default="auto"
        "auto": a process and windows of its residuals. "process": the process alone. "windows":
        the paper's method.
    lipschitz : float, default=1.0
        L, how fast π may change, in scaled units; for "theory".
    metric : {"euclidean", "chebyshev", "manhattan"}, default="euclidean"
        Distance between scaled points, for windows and bands.
    scale : "auto", "range", "rank", "log", "std", None, or one per feature, default="auto"
        For a process, the units in which π is smooth: the features' own ("range"), ranks,
        logarithms, or one of these per feature, ["log", "range"]; "auto" weights them per feature
        by evidence, and `weights_["units"]` shows which are in use.
        For windows, the unit of each feature: the width of its bounds ("range"), its standard
        deviation ("std"), 1 (None), or one number per feature; "auto" means "range". A constant
        feature adds no distance.
    bounds : array of shape (d, 2), default=None
        The domain, (low, high) per feature. None: the range of all trials seen; for windows, that
        of the first data.
    pos_label : label, default=None
        The class that counts as success, to which π and its posterior refer. None: the second of
        `classes_`.
    prior : (alpha, beta), callable or Prior, default=(1.0, 1.0)
        For windows: shapes of the prior, the same everywhere or X → (α, β) with one value per row
        of X. With three or more classes: one shape per class, or two equal ones for all.
    sharing : {"exact", "mean"}, default="exact"
        For windows: how trials under different contexts are combined. "exact": by the likelihood
        of each. "mean": as if all had the mean context of the window (the paper's CSBP; affine
        contexts only).
    monotonic_cst : mapping of str to int or array of int of shape (d,), default=None
        Along which features π never falls (1) or never rises (-1). 0, or a feature that is not
        named, means no constraint. Not available with windows. See `betafield.monotone`.
    categorical_features : "from_dtype", None or list, default="from_dtype"
        Which columns of X are categories. Each level has its own effect: a smooth deviation from
        what all levels share, as large as levels are found to differ. "from_dtype": columns of a
        dataframe that are text, categories or booleans. A list: names or indices of columns, or one
        boolean per column. None: no column.
    interactions : list of tuples of columns, default=()
        Categories whose combinations have their own effects, in addition to those of the levels.
    missing : {"error", "drop", "level"}, default="error"
        What to do with rows in which a feature is missing. "error": refuse them. "drop": leave them
        out, with a warning. "level": treat a missing category as a level of its own.
    periodic : mapping of str or int to float, default=None
        Features, by name or number, that repeat after a period: {"hour": 24}. There is no jump
        where a period ends; values are wrapped into [0, period), which is their domain.
    geographic : tuple of two str or int, default=None
        Which features are longitude and latitude, in degrees: ("lon", "lat"). Distances are along
        great circles, and neither the date line nor a pole is a border.
    n_jobs : int, default=None
        Threads for queries. None: 1; -1: all cores.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    pos_label_ : label
        Which of two classes is the success.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Their names, if X had names.
    n_trials_ : int or float
        Number of trials seen, t; the sum of the weights.
    weights_ : structured array
        The components in use, in order of decreasing `weight`. For a process: its `link`, the
        `units` of the features, the feature whose `levels` have their own effects, its `form`
        ("free", "additive": a sum of functions of one feature each, or "quadratic"), and its
        `length_scales` as fractions of the domain. For windows of residuals: how distances are
        scaled, the categories whose `levels` they keep apart, the width, and `tau`, the variance
        of what the process misses within them. For the paper's windows: the `width` and, if it
        was learned, its leave-one-out `score`.
    components_ : list of str
        The components in words, one sentence per kind: what it is, its weight, and how far it
        reaches along each feature in the feature's own units. Like `weights_`, with three or more
        classes those of the first.
    length_scales_ : array of shape (d,)
        How far the influence of a trial reaches along each feature, in its own units; with windows,
        the width. Infinite for a constant feature, NaN for a category.
    relevance_ : array of shape (d,)
        Inverse length scales as fractions of the domain, scaled to 1 for the most relevant
        feature; with windows 1. 0 for a constant feature, NaN for a category.
    rates_ : dict
        For contexts with unknown rates: the posterior of each rate by name, as the Beta
        distribution (one row) with its mean and variance.
    settled_ : bool
        Whether all of this was learned from all trials seen so far; see `settle`.
    bandwidth_ : float
        Δ in use, in scaled units. Only with windows.
    scale_ : array of shape (d,)
        The length of one scaled unit in the units of the feature; inf for a constant feature.
    units_ : dict
        The units in which the process measures each feature, with their weights, by name:
        {"dose": {"log": 0.9, "range": 0.1}, "hour": {"period": 1.0}, "site": {"levels": 1.0}}. Not
        available with windows.
    bounds_ : array of shape (d, 2)
        The domain.
    windows_ : Forest
        The sums of the trials, by place, in scaled units.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> rng = np.random.default_rng(0)
    >>> difficulty = rng.uniform(size=(10_000, 1))
    >>> success = rng.uniform(size=10_000) < 1 - difficulty[:, 0]
    >>> model = SmoothBetaClassifier().fit(difficulty, success)
    >>> posterior = model.posterior([[0.2], [0.5]])
    >>> posterior.mean().round(1).tolist()
    [0.8, 0.5]
    >>> low, high = posterior.interval(0.95)
    >>> bool(np.all((low < [0.8, 0.5]) & (high > [0.8, 0.5])))
    True
    """

    def __init__(
        self,
        bandwidth: float | str = "auto",
        *,
        method: str = "auto",
        lipschitz: float = 1.0,
        metric: str = "euclidean",
        scale: Any = "auto",
        bounds: Any = None,
        pos_label: Any = None,
        prior: Any = (1.0, 1.0),
        sharing: str = "exact",
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        interactions: Any = (),
        missing: str = "error",
        periodic: Any = None,
        geographic: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.method = method
        self.lipschitz = lipschitz
        self.metric = metric
        self.scale = scale
        self.bounds = bounds
        self.pos_label = pos_label
        self.prior = prior
        self.sharing = sharing
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.interactions = interactions
        self.missing = missing
        self.periodic = periodic
        self.geographic = geographic
        self.n_jobs = n_jobs

    # Queries.

    def posterior(self, X: Any) -> Posterior:
        """Return the posterior of the success probability at each row of X.

        For two classes it is a `LatentNormal` of the probability of `pos_label_`; with windows a
        `Beta`, or a `Contextual` if trials were distorted. For more classes it is a `Dirichlet`.
        """
        field, points = self.asked(X)
        cautions.at_points(field, points)
        return field.posterior(points)

    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior mean for each of `classes_`, of shape (m, n_classes)."""
        field, points = self.asked(X)
        cautions.at_points(field, points)
        return success.by_class(field.classes, field.mean(points))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the highest posterior mean; the first one in case of a tie."""
        field, points = self.asked(X)
        best = np.argmax(success.by_class(field.classes, field.mean(points)), axis=1)
        return np.asarray(np.sort(field.classes)[best])

    def band(
        self, X: Any, lipschitz: float, level: float = 0.95, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """Return intervals (low, high) that contain π(x) with a probability of at least `level`.

        This holds for any number of trials and any π with |π(x) − π(y)| ≤ L · distance; neither
        the prior nor the model matters. If there are no trials, the interval is [0, 1]. See
        `betafield.bands` for the reasons.

        The guarantee is conditional on the points of the trials, and assumes independent outcomes.
        Neither these points nor X may have been chosen by looking at outcomes. For a point that
        was chosen in this way, such as the best one, use `simultaneous=True`; if the trials were
        placed in this way, there is no guarantee.

        Parameters
        ----------
        X : array or dataframe of shape (m, d)
            The points.
        lipschitz : float
            L, how fast π may change, in scaled units, like the model's own `lipschitz`.
        level : float, default=0.95
            The probability, over repetitions of the trials, that an interval contains π(x).
        simultaneous : bool, default=False
            Whether `level` is the probability that the intervals at all x are right at once.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(10_000, 1))
        >>> y = rng.uniform(size=10_000) < 1 - X[:, 0]
        >>> model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, y)
        >>> low, high = model.band([[0.2], [0.5]], lipschitz=1.0)
        >>> bool(np.all((low < [0.8, 0.5]) & (high > [0.8, 0.5])))
        True
        """
        from betafield import bands

        field, points = self.asked(X)
        return field.band(points, *bands.checked(lipschitz, level, simultaneous))

    def save(self, path: Any) -> None:
        """Write the model to one file, which `betafield.load` reads.

        The file contains options, arrays and a checksum, but no code. It is written next to an
        existing file and then replaces it, so that a crash leaves one of the two. A prior that is
        a function cannot be saved.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> model = SmoothBetaClassifier(bandwidth=0.5).fit([[0], [1]], ["no", "yes"])
        >>> with TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/doses.beta")
        ...     again = load(f"{folder}/doses.beta")
        >>> again.predict([[0.1], [0.9]]).tolist()
        ['no', 'yes']
        """
        from betafield import state

        state.save(self.field_, path)


def load(path: Any) -> SmoothBetaClassifier:
    """Return the model that `SmoothBetaClassifier.save` wrote to a file.

    The model answers, learns and merges exactly as the saved one would, bit for bit. Files may come
    from anyone: nothing in them is run, and every value is checked before it is used.

    Raises
    ------
    ValueError
        If the file is not a betafield file, has a newer format version, is truncated or damaged,
        or does not hold a consistent model.
    OSError
        If the file cannot be read.
    """
    from betafield import state

    return SmoothBetaClassifier.of(state.load(path))
