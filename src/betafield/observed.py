"""What a fitted model has seen, from the sums it stores; the data are not needed.

observed   the distinct places, with their trials and outcomes
binned     the share of successes along one feature, with its interval
left_out   how well models with the same parameters predict held-out trials
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from betafield import checks
from betafield._rows import groups
from betafield.bands import clopper_pearson
from betafield.estimators import SmoothBetaClassifier
from betafield.evidence import Evidence, Totals
from betafield.evidence.columns import of_trials, untallied
from betafield.field import Field
from betafield.methods import AnyField
from betafield.posteriors.base import blocks
from betafield.smooth import SmoothField
from betafield.sums import Part, Sums

if TYPE_CHECKING:
    from betafield.windows import Places

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FOLDS = 5
# With fewer whole trials, leaving out a fifth of them shows nothing.
FEWEST = 10
# Largest number of bins.
MOST_BINS = 100_000
# Number of points whose posteriors are in memory at once.
BLOCK = 1 << 14


class Observed(NamedTuple):
    """Distinct places, and the trials at each.

    Parameters
    ----------
    points : array of shape (n, d)
        The places, in the features' own units, sorted. Windows restore them from scaled units, so
        the last digit may differ from what was given.
    trials : array of shape (n,)
        Number of trials at each; the sum of their weights.
    counts : array of shape (n, K) or None
        Trials per class as they were observed; trials under contexts are not corrected. None if the
        counts were not kept; `why` gives the reason.
    names : tuple of str
        Names of the features.
    why : str
        Why there are no counts; empty if there are.
    """

    points: Floats
    trials: Floats
    counts: Floats | None
    names: tuple[str, ...]
    why: str = ""

    @property
    def successes(self) -> Floats | None:
        """Trials of the second of two classes; None with more classes or without counts."""
        if self.counts is None or self.counts.shape[1] != 2:
            return None
        return self.counts[:, 1]

    def trials_of(self, column: int, codes: Floats) -> Floats:
        """Return the trials at each level of a category, given by code.

        Examples
        --------
        >>> points = np.array([[0.1, 0.0], [0.2, 1.0], [0.3, 1.0]])
        >>> seen = Observed(points, np.array([4.0, 1.0, 2.0]), None, ("dose", "site"))
        >>> seen.trials_of(1, np.array([0.0, 1.0]))
        array([4., 3.])
        """
        return np.array([self.trials[self.points[:, column] == code].sum() for code in codes])


class Binned(NamedTuple):
    """Trials in bins along one feature; an empty bin has share NaN and interval [0, 1].

    Parameters
    ----------
    edges : array of shape (n_bins + 1,)
    centres : array of shape (n_bins,)
        The mean coordinate of the trials; the midpoint of an empty bin.
    trials, successes, share, low, high : arrays of shape (n_bins,)
        The share of successes, and the ends of its Clopper-Pearson interval.
    """

    edges: Floats
    centres: Floats
    trials: Floats
    successes: Floats
    share: Floats
    low: Floats
    high: Floats


class LeftOut(NamedTuple):
    """Predictions for held-out trials, and their outcomes; one row per place and fold.

    Parameters
    ----------
    predicted : array of shape (m,)
        The probability of success, learned from the other folds.
    successes, trials : arrays of shape (m,)
        The outcomes of the held-out trials.
    """

    predicted: Floats
    successes: Floats
    trials: Floats


def feature_names(model: Any) -> tuple[str, ...]:
    """Return the names of a model's features, or x0, x1, … if its data had none."""
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        return tuple(map(str, known))
    return tuple(f"x{i}" for i in range(model.n_features_in_))


# Places ------------------------------------------------------------------------------------


def observed(model: SmoothBetaClassifier) -> Observed:
    """Return what a fitted model has seen, by distinct place.

    This covers all trials except those that carry no information, because the coefficients of their
    context are all equal: no model keeps them. Outcomes under contexts are as they were observed.
    Windows with `sharing="exact"` keep only the likelihoods of such trials, so there are trials but
    no counts.

    Examples
    --------
    >>> from betafield import SmoothBetaClassifier
    >>> model = SmoothBetaClassifier().fit([[1], [3], [1], [2]], [0, 1, 1, 1])
    >>> seen = observed(model)
    >>> seen.points.ravel().tolist(), seen.trials.tolist(), seen.successes.tolist()
    ([1.0, 2.0, 3.0], [2.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    """
    require_model(model)
    field, names = model.field_, feature_names(model)
    if isinstance(field, SmoothField):
        points, counts = _kept(field.sums)
        return Observed(points, counts.sum(axis=1), counts, names)
    places = _places(field)
    if field.totals.distorted and field.sharing == "exact":
        axes, (trials,) = _joined(places.axes, _sizes(field, places)[None])
        return Observed(_points(field, axes), trials, None, names, _LIKELIHOODS)
    k = len(field.classes)
    axes, sums = _joined(places.axes, places.counts[: 2 * k])
    counts = untallied(sums.T, k).astype(np.float64)
    return Observed(_points(field, axes), counts.sum(axis=1), counts, names)


_LIKELIHOODS = (
    "windows keep trials under contexts as likelihoods, with sharing='exact', and not as outcomes"
)


def _kept(sums: Sums) -> tuple[Floats, Floats]:
    """Return the distinct points, sorted, and the trials per class at each, ignoring contexts."""
    rows = sums.rows()
    axes, counts = _joined(np.ascontiguousarray(rows.points.T), rows.counts)
    return np.ascontiguousarray(axes.T), counts.T * rows.unit


def _places(field: Field) -> Places:
    """Return all places, in scaled units, in new arrays; a place may appear several times."""
    from betafield.windows import Forest
    from betafield.windows.base import concatenate

    if not isinstance(field.windows, Forest):
        raise TypeError(
            "model: its trials are on workers; `model.compute()` gives a local one that has them"
        )
    return concatenate(field.places())


def require_model(model: Any) -> None:
    """Raise unless this is a fitted SmoothBetaClassifier."""
    if not isinstance(model, SmoothBetaClassifier):
        raise TypeError(f"model: found {type(model).__name__}; a SmoothBetaClassifier is needed")
    check_is_fitted(model)


def _points(field: Field, axes: Floats) -> Floats:
    """Return places in the features' own units, kept within given bounds despite rounding."""
    points = field.units.restored(axes)
    if field.options.bounds is not None:
        numeric = field.features.numeric
        points[:, numeric] = points[:, numeric].clip(*field.bounds[numeric].T)
    return np.ascontiguousarray(points)


def _sizes(field: Field, places: Places) -> Floats:
    """Return the number of trials at each place."""
    return Evidence(None, places.counts, places.shifts, Totals(), field.polynomials).weights(2)


def _joined(axes: Floats, amounts: npt.NDArray[Any]) -> tuple[Floats, npt.NDArray[Any]]:
    """Return the distinct points (d, n), sorted, and the sums (c, n) of their amounts."""
    order, starts = groups(axes)
    kind = np.float64 if amounts.dtype.kind == "f" else np.int64
    return axes[:, order[starts]], np.add.reduceat(amounts[:, order], starts, axis=1, dtype=kind)


# Bins --------------------------------------------------------------------------------------


def binned(
    seen: Observed,
    feature: int | str = 0,
    n_bins: int = 20,
    *,
    level: float = 0.95,
    class_index: int = 1,
) -> Binned:
    """Return the share of successes in bins of equal width along one feature.

    A feature with at most `n_bins` different values has one bin per value. The intervals are those
    of Clopper and Pearson: with S of n trials, the quantiles of Beta(S, n − S + 1) and of
    Beta(S + 1, n − S); the same formula is used for fractional weights.

    Parameters
    ----------
    seen : Observed
    feature : int or str, default=0
        Number or name of the feature.
    n_bins : int, default=20
    level : float, default=0.95
        Level of the intervals.
    class_index : int, default=1
        The class that counts as success.

    Examples
    --------
    >>> from betafield import SmoothBetaClassifier
    >>> model = SmoothBetaClassifier(bandwidth=1.0)
    >>> model = model.fit_counts([[0.0], [0.1], [1.0]], [3, 1, 9], [4, 5, 9])
    >>> bins = binned(observed(model), n_bins=2)
    >>> bins.edges.tolist(), bins.successes.tolist(), bins.trials.tolist()
    ([0.0, 0.5, 1.0], [4.0, 9.0], [9.0, 9.0])
    """
    checks.instance("seen", seen, Observed, "what `observed` returns is needed")
    if seen.counts is None:
        raise ValueError(f"seen: it has no counts, because {seen.why}")
    class_index = checks.whole("class_index", class_index, 0, seen.counts.shape[1] - 1)
    n_bins = checks.whole("n_bins", n_bins, high=MOST_BINS)
    where = seen.points[:, checks.feature_index("feature", seen.names, feature)]
    edges = _edges(where, n_bins)
    bin_of = np.searchsorted(edges[1:-1], where, side="right")
    trials, successes, place = (
        np.asarray(np.bincount(bin_of, amounts, len(edges) - 1), dtype=np.float64)
        for amounts in (seen.trials, seen.counts[:, class_index], seen.trials * where)
    )
    some = trials > 0
    middle = 0.5 * (edges[1:] + edges[:-1])
    centres = np.divide(place, trials, out=middle, where=some)
    share = np.divide(successes, trials, out=np.full(len(trials), np.nan), where=some)
    return Binned(
        edges, centres, trials, successes, share, *share_interval(successes, trials, level)
    )


def _edges(where: Floats, n_bins: int) -> Floats:
    """Return the edges of bins of equal width, or of one bin per value if there are few values."""
    values = np.unique(where)
    if len(values) > n_bins:
        return np.linspace(values[0], values[-1], n_bins + 1)
    inner = 0.5 * (values[1:] + values[:-1])
    return np.concatenate([values[:1], inner, values[-1:]])


def share_interval(
    successes: npt.ArrayLike, trials: npt.ArrayLike, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the limits of the Clopper-Pearson intervals of shares; [0, 1] without trials.

    Examples
    --------
    >>> low, high = share_interval([0, 5], [10, 10])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.1871], [0.3085, 0.8129])
    """
    level = checks.share("level", level)
    n = checks.finite("trials", trials)
    won = checks.finite("successes", successes)
    checks.shaped("successes", won, n.shape, f"as many as trials are needed, {n.shape}")
    rule = "from 0 to all of the trials are possible"
    checks.require_all((won >= 0.0) & (won <= n), "successes", won, rule)
    low, high = clopper_pearson(won, n, 1.0 - level)
    share = won / np.maximum(n, 1e-300)
    return np.minimum(low, share), np.maximum(high, share)  # which rounding may exclude


# Left out ----------------------------------------------------------------------------------


def why_not_left_out(model: SmoothBetaClassifier) -> str | None:
    """Return why this model's trials cannot be held out; None if they can."""
    require_model(model)
    if len(model.classes_) > 2:
        return f"the model has {len(model.classes_)} classes; calibration is for two"
    if model.field_.totals.distorted:
        return "the model has learned from contexts, so outcomes do not show π"
    if model.n_trials_ < FEWEST:
        return f"there are {model.n_trials_:g} trials; {FEWEST} are needed at least"
    return None


def left_out(model: SmoothBetaClassifier, n: int = 20_000, random_state: int = 0) -> LeftOut | None:
    """Return out-of-fold predictions for a model's own trials.

    The trials are split at random into five folds. Trials of the same place may go to different
    folds, because new trials may also come where earlier ones were; trials of a group, or of an
    overdispersed row, stay together. For each fold, a model with the same parameters and units
    learns from the other four and predicts this one. Length scales, widths and weights estimated
    from all trials are kept: they are few numbers, and estimating them takes most of the time of a
    fit. The fractional part of a place's weights goes to one fold.

    Parameters
    ----------
    model : SmoothBetaClassifier
        Fitted, with two classes, without contexts; it is not changed.
    n : int, default=20_000
        The largest number of places at which trials are predicted; models learn from all trials.
    random_state : int, default=0
        Seed for the folds and the places.

    Returns
    -------
    LeftOut or None
        None if `why_not_left_out` gives a reason.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1_000, 1))
    >>> model = SmoothBetaClassifier(bandwidth=0.1).fit(X, rng.uniform(size=1_000) < X[:, 0])
    >>> predicted, successes, trials = left_out(model)
    >>> int(trials.sum()), bool(abs(predicted.mean() - successes.mean()) < 0.01)
    (1000, True)
    """
    n, rng = checks.whole("n", n), checks.generator("random_state", random_state)
    if why_not_left_out(model) is not None:
        return None
    learner = _Learner.of(model.field_)
    asked = np.zeros(len(learner.points), dtype=np.bool_)
    asked[rng.permutation(len(asked))[:n]] = True
    folds = _dealt(learner.counts, rng, learner.together)
    parts = [_predicted(learner, fold, asked) for fold in folds]
    return LeftOut(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _dealt(counts: Ints, rng: np.random.Generator, together: Ints | None = None) -> list[Ints]:
    """Return the counts of each fold; they add up to `counts`.

    `together` has one number per place; places with the same number go to the same fold.
    """
    if together is not None:
        fold_of = (rng.permutation(int(together.max()) + 1) % FOLDS)[together]
        return [np.where(fold_of == fold, counts, 0) for fold in range(FOLDS)]
    left, folds = counts.copy(), []
    fractions = rng.integers(FOLDS, size=counts[2:].shape)
    for fold in range(FOLDS):
        taken = np.empty_like(left)
        taken[:2] = rng.binomial(left[:2], 1.0 / (FOLDS - fold))
        taken[2:] = np.where(fractions == fold, counts[2:], 0)
        left[:2] -= taken[:2]
        folds.append(taken)
    return folds


class _Learner(NamedTuple):
    """A field, and the distinct places of its trials, some of which can be left out.

    `points` (n, d) and `places` are the same places, in the features' own units and in those of the
    field; `counts` (c, n) are in the layout of `evidence.columns`.
    """

    field: AnyField
    points: Floats
    places: Floats
    counts: Ints
    group: Floats | None = None

    @classmethod
    def of(cls, field: AnyField) -> _Learner:
        """Return a learner with all trials of the field."""
        if isinstance(field, SmoothField):
            (part,) = field.sums.distinct().parts[0]
            return cls(field, part.points, part.points, part.counts, part.group)
        places = _places(field)
        axes, counts = _joined(places.axes, places.counts)
        return cls(field, field.units.restored(axes), axes.T, counts)

    @property
    def together(self) -> Ints | None:
        """The group or row number of every place, which folds must not split; None if they may."""
        if self.group is not None:
            return np.unique(self.group, return_inverse=True)[1]
        is_apart = isinstance(self.field, SmoothField) and self.field.sums.is_apart
        return np.arange(len(self.points)) if is_apart else None

    def taught(self, counts: Ints) -> AnyField:
        """Return the field with the estimates from all trials, but only these counts."""
        from betafield.windows import Places

        there = counts.any(axis=0)
        totals = of_trials(*(int(part.sum()) for part in (counts[:2], counts[2:])))
        places, counts = self.places[there], counts[:, there]
        if isinstance(self.field, SmoothField):
            group = None if self.group is None else self.group[there]
            part = Part(places, counts, np.empty((len(places), 0)), group)
            is_apart = self.field.sums.is_apart
            return self.field.with_only(Sums(places.shape[1], 2, totals, {0: (part,)}, is_apart))
        return self.field.with_only(Places(np.ascontiguousarray(places.T), counts), totals)

    def expected(self, points: Floats) -> Floats:
        """Return the prior probabilities of success."""
        if isinstance(self.field, SmoothField):
            return np.full(len(points), 0.5)
        shapes = np.broadcast_to(self.field.shapes(points), (len(points), 2))
        return np.asarray(shapes[:, 1] / shapes.sum(axis=1))


def _predicted(learner: _Learner, fold: Ints, asked: npt.NDArray[np.bool_]) -> LeftOut:
    """Return the predictions of the other folds for this one, at the places asked for."""
    asked = asked & fold.any(axis=0)
    ended = untallied(fold[:, asked].T, 2).astype(np.float64)
    predicted = _chances(learner, learner.counts - fold, learner.points[asked])
    return LeftOut(predicted, ended[:, 1], ended.sum(axis=1))


def _chances(learner: _Learner, counts: Ints, points: Floats) -> Floats:
    """Return the probabilities of success at these points, learned from these counts only."""
    if not counts.any():
        return learner.expected(points)
    field, chances = learner.taught(counts), np.empty(len(points))
    for block in blocks(len(points), BLOCK):
        chances[block] = field.mean(points[block])
    return chances
