"""LogisticGP: a Gaussian process of log-odds, by Laplace's approximation.

Algorithms 3.1, 3.2 and 5.1 of Rasmussen and Williams, Gaussian Processes for Machine Learning
(2006); comments give their line numbers. Four things are done differently, with the same results:

- Newton's steps are taken in a = K⁻¹f, from the residual of its equation, and halved until
  the objective does not fall: f is then K a, and no system in the nearly singular K is ever solved.
- The mean at new points is read off the last step, (L⁻¹ W½ k)ᵀ (L⁻¹ W½ z) with B = L Lᵀ and
  z = f + W⁻¹ ∇ log p(y | f), rather than as kᵀa: if many trials share a point, the terms of kᵀa
  are large and cancel, and the order of summation would decide the result.
- The diagonal of the posterior covariance Σ = (K⁻¹ + W)⁻¹ is read off B⁻¹, B = I + W½ K W½, because
  W½ Σ W½ = I − B⁻¹, which saves line 8 of 5.1.
- The derivative along every length scale is a sum of H_ij (x_ik − x_jk)², with one H for all,
  which saves a matrix per feature.

Matrix products use SciPy's BLAS, like the factorisations: NumPy has threads of its own, which would
compete with SciPy's while they wait for work.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.blas import dgemm, dsymv
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from betafield import checks, distorted, trials
from betafield.baselines.base import Floats, Labels, TwoClasses, blocks, both
from betafield.baselines.logit_normal import LogitNormal

# Starting points of the search: length scales as fractions of the features' ranges, and amplitude.
# From a single start, the search may take narrow peaks among many failures for a constant.
STARTS = ((0.1, 1.0), (0.5, 1.0))
# The search ends when a step gains less than this fraction of the log-likelihood.
GAIN = 1e-8
# Newton's method ends when the squared distance to the mode, in posterior standard deviations, is
# below this; the log-likelihood is then accurate to about 1e-9. Five or six steps are usual; 60
# were needed at amplitudes above 1,000.
DISTANCE, MOST_STEPS, MOST_HALVINGS = 1e-18, 500, 30
# The variance left by t trials is at least 4/t, and is computed as a difference from amplitude²,
# which must not be so large that only rounding errors remain. Log-odds of a tenth of this are
# certain in floating point. Amplitudes whose squares underflow would leave no variance at all.
LOWEST, HIGHEST = 1e-100, 1e4


class LogisticGP(TwoClasses):
    """Gaussian process classification with the logistic link and Laplace's approximation.

    P(success at x) = expit(f(x)), where f is a Gaussian process of mean 0 and covariance

        k(x, x') = amplitude² exp(−½ Σ_k ((x_k − x'_k) / ℓ_k)²).

    The posterior of f at the trials is approximated by the normal distribution with its mode and
    the curvature there; that of π is then `LogitNormal`. Length scales and amplitude maximise the
    approximate marginal likelihood. Time grows as t³ and memory as t².

    Contexts become features, after those of X: of the two coefficients per trial, those that are
    not the same for all trials. The effect of a context is thus learned rather than known.

    Parameters
    ----------
    length_scale : float, array of shape (D,) or None, default=None
        ℓ of all D features, including contexts, in their units. None: learned, one per feature.
    amplitude : float or None, default=None
        Prior standard deviation of the log-odds, up to 10,000. None: learned.
    length_scale_bounds : (low, high), default=(0.01, 100.0)
        Bounds of learned length scales, as multiples of the range of each feature.
    amplitude_bounds : (low, high), default=(0.01, 100.0)
        Bounds of a learned amplitude.

    Attributes
    ----------
    classes_ : array
        The two classes, sorted; the second is the success.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : array of str
        Their names, if X had names.
    n_trials_ : int
        Trials seen, t.
    length_scale_ : array of shape (D,)
        The length scales in use: of the features of X, then of the contexts that vary.
    amplitude_ : float
        The amplitude in use.
    log_marginal_likelihood_value_ : float
        Laplace's approximation of log P(y | X) at these values.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.baselines import LogisticGP
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> y = rng.uniform(size=200) < 0.2 + 0.6 * X[:, 0]
    >>> posterior = LogisticGP().fit(X, y).posterior([[0.1], [0.9]])
    >>> low, high = posterior.interval(0.95)
    >>> bool(np.all((low < [0.26, 0.74]) & (high > [0.26, 0.74])))
    True
    """

    n_trials_: int
    length_scale_: Floats
    amplitude_: float
    log_marginal_likelihood_value_: float
    _varying_: npt.NDArray[np.bool_]
    _points_: Floats
    _mode_: Mode

    def __init__(
        self,
        length_scale: Any = None,
        amplitude: float | None = None,
        *,
        length_scale_bounds: tuple[float, float] = (0.01, 100.0),
        amplitude_bounds: tuple[float, float] = (0.01, 100.0),
    ) -> None:
        self.length_scale = length_scale
        self.amplitude = amplitude
        self.length_scale_bounds = length_scale_bounds
        self.amplitude_bounds = amplitude_bounds

    def fit(self, X: Any, y: Any, context: Any = None) -> Self:
        """Learn from trials at X, of shape (t, d), with outcomes y. Forgets earlier trials.

        Parameters
        ----------
        X : array or dataframe of shape (t, d)
            The points of the trials.
        y : array of shape (t,)
            The outcome of each: two classes.
        context : array of shape (t, 2), (1, 2) or (2,), default=None
            Success probability of each trial at π = 0 and at π = 1, see `betafield.contexts`.
        """
        self._check_options()
        seen = self._observed(X, y)
        ends = _ends((0.0, 1.0) if context is None else context, len(seen.points))
        varying = np.ptp(ends, axis=0) > 0.0
        evidence = Evidence(np.column_stack([seen.points, ends[:, varying]]), seen.success)
        length_scale, amplitude = self._scales(evidence)
        _, mode = evidence.mode(length_scale, amplitude)
        self._note(seen)
        self.length_scale_, self.amplitude_ = length_scale, amplitude
        self.log_marginal_likelihood_value_ = mode.log_likelihood
        self._points_, self._varying_, self._mode_ = evidence.points, varying, mode
        return self

    def posterior(self, X: Any, context: Any = (0.0, 1.0)) -> LogitNormal:
        """Return the posterior of the success probability at each row of X.

        Parameters
        ----------
        X : array or dataframe of shape (m, d)
            The points to query.
        context : array of shape (2,) or (m, 2), default=(0, 1)
            The context for all rows, or for each. It matters only if contexts varied in training.
        """
        check_is_fitted(self)
        points = trials.points(self, X, reset=False)
        ends = _ends(context, len(points))
        asked = np.column_stack([points, ends[:, self._varying_]])
        mean, variance = np.empty((2, len(asked)))
        for block in blocks(len(asked), self.n_trials_):
            mean[block], variance[block] = self._latent(asked[block])
        return LogitNormal(mean, variance)

    def predict_proba(self, X: Any, context: Any = (0.0, 1.0)) -> Floats:
        """Return the posterior mean of each class's probability, of shape (m, 2)."""
        return both(self.posterior(X, context).mean())

    def predict(self, X: Any, context: Any = (0.0, 1.0)) -> Labels:
        """Return the class with the highest posterior mean; the first one in case of a tie."""
        return self._chosen(self.predict_proba(X, context))

    # Private.

    def _latent(self, asked: Floats) -> tuple[Floats, Floats]:
        """Return the mean and variance of f at points: algorithm 3.2, lines 4 to 6."""
        near = _covariance(asked, self._points_, self.length_scale_, self.amplitude_)
        near *= self._mode_.root
        explained = solve_triangular(
            self._mode_.factor, near.T, lower=True, overwrite_b=True, check_finite=False
        )
        variance = self.amplitude_**2 - np.einsum("ij,ij->j", explained, explained)
        return self._mode_.whitened @ explained, variance

    def _scales(self, evidence: Evidence) -> tuple[Floats, float]:
        """Return the length scales and the amplitude, given or learned."""
        D = evidence.points.shape[1]
        ranges = np.ptp(evidence.points, axis=0)
        ranges[ranges == 0.0] = 1.0
        given = np.full(D + 1, np.nan)
        given[:D] = _given_length_scale(self.length_scale, D)
        _require_finite(evidence.points, given[:D])
        given[D] = np.nan if self.amplitude is None else float(self.amplitude)
        free = np.isnan(given)
        if free.any():
            sizes = np.append(ranges, 1.0)
            bounds = sizes[:, None] * ([self.length_scale_bounds] * D + [self.amplitude_bounds])
            starts = [sizes * ([share] * D + [height]) for share, height in STARTS]
            given = _searched(evidence, given, starts, bounds)
        return given[:D], float(given[D])

    def _check_options(self) -> None:
        if self.amplitude is not None:
            rule = f"allowed are None and numbers from {LOWEST:g} to {HIGHEST:g}"
            checks.number("amplitude", self.amplitude, rule, low=LOWEST, high=HIGHEST)
        _check_bounds("length_scale_bounds", self.length_scale_bounds)
        ends = _check_bounds("amplitude_bounds", self.amplitude_bounds)
        rule = f"allowed are amplitudes from {LOWEST:g} to {HIGHEST:g}"
        good = (ends >= LOWEST) & (ends <= HIGHEST)
        checks.require_all(good, "amplitude_bounds", ends, rule)


# Arguments -----------------------------------------------------------------------------------


def _ends(context: Any, n_rows: int) -> Floats:
    """Return the success probabilities at π = 0 and at π = 1, of shape (n_rows, 2)."""
    ends = distorted.known_context(context, n_rows)
    if ends is None:
        raise ValueError("context: found None; give the one to be read at, such as (0, 1)")
    if ends.shape[1] != 2:
        raise ValueError(
            f"context: found {ends.shape[1]} coefficients per row; two are needed, the success "
            "probability at π = 0 and at π = 1"
        )
    return ends


def _given_length_scale(length_scale: Any, D: int) -> Floats | float:
    """Return the length scales as given, NaN if they are to be learned."""
    if length_scale is None:
        return np.nan
    rule = (
        f"allowed are None, a positive number, and {D} of them, one for each feature and each "
        "coefficient of the contexts that varies"
    )
    values = checks.finite("length_scale", length_scale, rule)
    checks.require(values.shape in ((), (D,)), "length_scale", length_scale, rule)
    checks.require_all(values > 0.0, "length_scale", values, rule)
    return values


def _require_finite(points: Floats, length_scale: Floats) -> None:
    """Raise unless points are finite in units of the given length scales."""
    with np.errstate(over="ignore"):
        good = ~np.isinf(points / length_scale).any(axis=0)
    rule = "the points must be finite in units of it"
    checks.require_all(good, "length_scale", length_scale, rule)


def _check_bounds(name: str, bounds: Any) -> Floats:
    rule = "two positive numbers are needed, the lower one first"
    ends = checks.finite(name, bounds, rule, (2,), rule)
    checks.require(0.0 < ends[0] <= ends[1], name, bounds, rule)
    return ends


# Search --------------------------------------------------------------------------------------


def _searched(evidence: Evidence, given: Floats, starts: list[Floats], bounds: Floats) -> Floats:
    """Return the length scales and the amplitude with the highest likelihood found.

    L-BFGS-B runs on the logarithms of those that are not given, from every start.
    """
    free = np.isnan(given)
    low, high = np.log(bounds[free]).T

    def scales(logs: Floats) -> Floats:
        found = given.copy()
        found[free] = np.exp(logs)
        return found

    def loss(logs: Floats) -> tuple[float, Floats]:
        value, gradient = evidence.log_likelihood(scales(logs))
        return -value, -gradient[free]

    ends = [
        minimize(
            loss,
            np.log(start[free]).clip(low, high),
            method="L-BFGS-B",
            jac=True,
            bounds=list(zip(low, high, strict=True)),
            options={"ftol": GAIN},
        )
        for start in starts
    ]
    return scales(min(ends, key=lambda end: float(end.fun)).x)


class Evidence:
    """The approximate log marginal likelihood of trials, for any length scales and amplitude.

    Parameters
    ----------
    points : array of shape (t, D)
    success : array of t bools

    Examples
    --------
    Two trials so far apart that they are independent:

    >>> import numpy as np
    >>> far = Evidence(np.array([[0.0], [9.0]]), np.array([True, False]))
    >>> one = Evidence(np.array([[0.0]]), np.array([True]))
    >>> scales = np.array([1.0, 2.0])
    >>> bool(np.isclose(far.log_likelihood(scales)[0], 2 * one.log_likelihood(scales)[0]))
    True
    """

    def __init__(self, points: Floats, success: npt.NDArray[np.bool_]) -> None:
        self.points = points
        self.success = success
        # From the last mode found, which is close to the next one.
        self.dual = np.zeros(len(points))

    def mode(
        self, length_scale: Floats, amplitude: float, steps: int = MOST_STEPS
    ) -> tuple[Floats, Mode]:
        """Return the covariance of the trials and the mode of f, after at most this many steps."""
        K = _covariance(self.points, self.points, length_scale, amplitude)
        mode = _mode(K, self.success, self.dual, steps)
        self.dual = mode.dual
        return K, mode

    def log_likelihood(self, scales: Floats) -> tuple[float, Floats]:
        """Return the value and its derivatives by the logarithms of ℓ_1, …, ℓ_D and amplitude."""
        K, mode = self.mode(scales[:-1], float(scales[-1]))
        H = _slopes(K, mode)
        # Centred, to keep the terms that cancel in squared differences small.
        x = (self.points - self.points.mean(axis=0)) / scales[:-1]
        squares = (H.sum(axis=0) + H.sum(axis=1)) @ (x * x)
        along = squares - 2.0 * (x * dgemm(1.0, H.T, x, trans_a=True)).sum(axis=0)
        return mode.log_likelihood, np.append(along, 2.0 * H.sum())


def _covariance(a: Floats, b: Floats, length_scale: Floats, amplitude: float) -> Floats:
    """Return k for all pairs of points, in the memory of one such array."""
    with np.errstate(over="ignore"):  # points infinitely far from all trials are just far
        a = np.nan_to_num(a / length_scale)
    K: Floats = cdist(a, b / length_scale, "sqeuclidean")
    K *= -0.5
    np.exp(K, out=K)
    K *= amplitude**2
    return K


# Laplace's approximation ---------------------------------------------------------------------


class Mode(NamedTuple):
    """The mode f of the posterior at the trials, and its curvature there.

    `dual` is a = K⁻¹f, `root` the diagonal of W½ with W = π(1 − π), `factor` the lower Cholesky
    factor L of B = I + W½ K W½ (entries above its diagonal are undefined), `whitened` L⁻¹ W½ z with
    z = f + W⁻¹ ∇ log p(y | f), to which Newton's step fits a Gaussian process.
    """

    f: Floats
    dual: Floats
    root: Floats
    factor: Floats
    log_likelihood: float
    whitened: Floats


def _mode(K: Floats, success: npt.NDArray[np.bool_], start: Floats, steps: int) -> Mode:
    """Find the mode by Newton's method: algorithm 3.1."""
    sign = np.where(success, 1.0, -1.0)
    a = start
    f = _times(K, a)
    if _gain(a, f, sign) < _gain(0.0 * a, 0.0 * f, sign):
        a, f = 0.0 * a, 0.0 * f
    for _ in range(steps):
        root = np.sqrt(expit(f) * expit(-f))  # line 4
        factor = _factor(K, root)  # line 5
        residual = sign * expit(-sign * f) - a  # ∇ log p(y | f) − K⁻¹f, as line 6 without W f
        solved = cho_solve((factor, True), root * _times(K, residual))
        da = residual - root * solved  # line 7
        df = _times(K, da)  # line 8
        if residual @ df < DISTANCE:
            break
        share = _share(a, f, da, df, sign)
        a, f = a + share * da, f + share * df
    else:
        _warn_of_too_few_steps(len(f), steps)
    log_likelihood = _gain(a, f, sign) - np.log(np.diag(factor)).sum()  # line 10
    return Mode(f, a, root, factor, log_likelihood, _whitened(factor, root, f, sign))


def _times(K: Floats, vector: Floats) -> Floats:
    """Return K @ vector; K equals its transpose, which is in LAPACK's order."""
    return np.asarray(dsymv(1.0, K.T, vector))


def _factor(K: Floats, root: Floats) -> Floats:
    """Return the Cholesky factor of B = I + W½ K W½, in the memory of B."""
    B = K * root
    B *= root[:, None]
    B[np.diag_indices_from(B)] += 1.0
    return np.asarray(cho_factor(B.T, lower=True, overwrite_a=True, check_finite=False)[0])


def _whitened(factor: Floats, root: Floats, f: Floats, sign: Floats) -> Floats:
    """Return L⁻¹ W½ z = L⁻¹ (W½ f + W^-½ ∇ log p(y | f)).

    The second term is ± exp(∓ f/2). It overflows only if the mode misses an outcome by log-odds of
    1,400, which costs more than 2,000 trials together do at f = 0.
    """
    z = root * f + sign * np.exp(-0.5 * sign * f)
    return np.asarray(solve_triangular(factor, z, lower=True, check_finite=False))


def _warn_of_too_few_steps(t: int, steps: int) -> None:
    warnings.warn(
        f"{t} trials: {steps} of Newton's steps did not reach the mode; a smaller amplitude "
        "or a longer length scale would need fewer",
        ConvergenceWarning,
        stacklevel=2,
    )


def _gain(a: Floats, f: Floats, sign: Floats) -> float:
    """Return Ψ = log p(y | f) − ½ fᵀK⁻¹f, the objective that the mode maximises."""
    return float(-np.logaddexp(0.0, -sign * f).sum() - 0.5 * (a @ f))


def _share(a: Floats, f: Floats, da: Floats, df: Floats, sign: Floats) -> float:
    """Return how much of a step to take: all, a half, a quarter, … until Ψ does not fall."""
    before, share = _gain(a, f, sign), 1.0
    rounding = 1e-12 * (1.0 + abs(before))
    for _ in range(MOST_HALVINGS):
        if _gain(a + share * da, f + share * df, sign) >= before - rounding:
            break
        share *= 0.5
    return share


def _slopes(K: Floats, mode: Mode) -> Floats:
    """Return H = K ∘ G, with ∂ log Z = Σ_ij G_ij ∂K_ij: algorithm 5.1.

    G = ½ a aᵀ − ½ R + w aᵀ, R = W½ B⁻¹ W½, w = s₂ − R K s₂. Sums of H with symmetric weights are
    those of algorithm 5.1; H itself is not symmetric.
    """
    a, root = mode.dual, mode.root
    inverse: Floats = dpotri(mode.factor, lower=True)[0].T  # B⁻¹ on and above the diagonal
    diagonal = np.diag(inverse)
    s2 = 0.5 * (1.0 - diagonal) * np.tanh(0.5 * mode.f)  # line 9, as 1 − 2π = −tanh(f/2)
    w = s2 - root * cho_solve((mode.factor, True), root * _times(K, s2))  # line 14
    H = np.triu(inverse)
    H[np.diag_indices_from(H)] *= 0.5
    H *= -root  # − ½ R: the upper triangle stands for the lower one too
    H *= root[:, None]
    H += np.outer(0.5 * a + w, a)
    H *= K
    return H
