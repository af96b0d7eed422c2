"""How a trial was distorted: its success probability as a known function of π.

A context is a row of p + 1 numbers in [0, 1], the Bernstein coefficients b of

    P(success) = Σ_k b_k binom(p, k) π^k (1−π)^(p−k).

For p = 1, the affine case Aπ + B, these are the success probabilities if π = 0 and if π = 1,
(B, A + B). An undistorted trial has the context (0, 1). If all arguments are numbers, the result
is one context (p+1,) for all trials; if an argument is a column, it is one context per trial,
(t, p+1).

Bernstein coefficients in [0, 1] keep every probability within [0, 1], and make every formula, for
success and for failure, a sum of non-negative terms. Coefficients of powers do neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import bernstein, checks, families, formulas, powers
from betafield.families import ContextFamily, Unknown
from betafield.formulas import stacked
from betafield.rates import coefficient, numbers, outcomes, require, require_rate, spelled
from betafield.refusals import Refused, refused

__all__ = [
    "ContextFamily",
    "Unknown",
    "affine",
    "attenuated",
    "background",
    "by_row",
    "checked",
    "diagnostic",
    "elevate",
    "guess_lapse",
    "is_affine",
    "likelihood",
    "mirrored",
    "polynomial",
    "pooled",
    "probability",
    "randomized_response",
]

Floats = npt.NDArray[np.float64]

# Tolerance for rounding in the user's arithmetic: 0.1 + 0.2 + 0.7 is not 1.
_ROUNDING = 1e-12


# Named distortions -------------------------------------------------------------------------


def affine(gain: Any, offset: Any) -> Floats:
    """Context of a success probability that is scaled by a gain and shifted by an offset.

    P(success) = gain · π + offset, within [0, 1] for every π. The gain may be negative. All
    named contexts except `pooled` and `polynomial` are special cases.

    Parameters
    ----------
    gain, offset : number or column of t numbers
        A and B, with 0 ≤ B ≤ 1 and 0 ≤ A + B ≤ 1.

    Returns
    -------
    array of shape (2,), or (t, 2) if an argument is a column
        (B, A + B).

    Examples
    --------
    A sensor fires in a fifth of the trials if there is nothing to see, and in seven tenths of them
    if there is something:

    >>> from betafield import contexts
    >>> contexts.affine(gain=0.5, offset=0.2)
    array([0.2, 0.7])
    """
    families.require_known(gain=gain, offset=offset)
    gain, offset = numbers(gain=gain, offset=offset)
    ends = stacked(offset, offset + gain)
    require(
        (ends >= -_ROUNDING) & (ends <= 1.0 + _ROUNDING),
        lambda at: checks.refusal(
            "gain and offset",
            f"success probability is {spelled(ends, at)} at π = {at[-1]} (gain "
            f"{spelled(gain, at)}, offset {spelled(offset, at)}); they must keep it within [0, 1]",
            at[:-1],
        ),
    )
    return ends.clip(0.0, 1.0)


def guess_lapse(guess: Any, lapse: Any = 0.0) -> Any:
    """Context of a task that can be solved by luck and failed by inattention.

    P(success) = guess + (1 − guess − lapse) π, as in psychophysics. With n alternatives the guess
    rate is 1/n; the lapse rate is how often an observer who knows the answer gives a wrong one.

    Parameters
    ----------
    guess, lapse : number or column of t numbers
        Rates within [0, 1], together at most 1.

    Returns
    -------
    array of shape (2,), or (t, 2) if an argument is a column
        (guess, 1 − lapse).

    Examples
    --------
    Two alternatives in the first block and four in the second; one answer in fifty is a lapse:

    >>> from betafield import contexts
    >>> contexts.guess_lapse(guess=[1 / 2, 1 / 4], lapse=0.02)
    array([[0.5 , 0.98],
           [0.25, 0.98]])
    """
    return families.made(formulas.guess_lapse, formulas.require_room, guess=guess, lapse=lapse)


def diagnostic(sensitivity: Any, specificity: Any) -> Any:
    """Context of a test that misses some cases and gives some false positives.

    P(positive) = (1 − specificity) + (sensitivity + specificity − 1) π, where π is the true
    prevalence.

    Parameters
    ----------
    sensitivity : number or column of t numbers
        Probability of a positive test if the condition is present, within [0, 1].
    specificity : number or column of t numbers
        Probability of a negative test if it is absent, within [0, 1].

    Returns
    -------
    array of shape (2,), or (t, 2) if an argument is a column
        (1 − specificity, sensitivity).

    Examples
    --------
    >>> from betafield import contexts
    >>> contexts.diagnostic(sensitivity=0.8, specificity=0.75)
    array([0.25, 0.8 ])
    """
    return families.made(formulas.diagnostic, sensitivity=sensitivity, specificity=specificity)


def attenuated(factor: Any) -> Any:
    """Context of a success that is made rarer by a known factor: fatigue, attention, position.

    P(success) = factor · π.

    Parameters
    ----------
    factor : number or column of t numbers
        Within [0, 1]; 1 means no distortion, 0 makes success impossible.

    Returns
    -------
    array of shape (2,), or (t, 2) if the argument is a column
        (0, factor).

    Examples
    --------
    A rested patient, and one who is so tired that every second attempt fails:

    >>> from betafield import contexts
    >>> contexts.attenuated([1.0, 0.5])
    array([[0. , 1. ],
           [0. , 0.5]])
    """
    return families.made(formulas.attenuated, factor=factor)


def background(rate: Any) -> Any:
    """Context of a response that also occurs without treatment (Abbott's control mortality).

    P(response) = rate + (1 − rate) π, where π is the probability that the treatment causes it.

    Parameters
    ----------
    rate : number or column of t numbers
        Probability of a response without treatment, within [0, 1].

    Returns
    -------
    array of shape (2,), or (t, 2) if the argument is a column
        (rate, 1).

    Examples
    --------
    A fifth of the insects would have died untreated:

    >>> from betafield import contexts
    >>> contexts.background(0.2)
    array([0.2, 1. ])
    """
    return families.made(formulas.background, rate=rate)


def randomized_response(truth: Any, yes: Any = 0.5) -> Any:
    """Context of a survey with randomised responses, which protects its respondents (Warner).

    Respondents tell the truth with probability `truth`, and otherwise let a coin answer, which
    says yes with probability `yes`: P(yes) = (1 − truth) · yes + truth · π.

    Parameters
    ----------
    truth, yes : number or column of t numbers
        Within [0, 1].

    Returns
    -------
    array of shape (2,), or (t, 2) if an argument is a column
        ((1 − truth) · yes, 1 − (1 − truth) (1 − yes)).

    Examples
    --------
    >>> from betafield import contexts
    >>> contexts.randomized_response(truth=0.5)
    array([0.25, 0.75])
    """
    families.require_different(truth=truth, yes=yes)
    return families.made(formulas.randomized_response, truth=truth, yes=yes)


def pooled(size: Any, sensitivity: Any = 1.0, specificity: Any = 1.0) -> Any:
    """Context of one test on a pool of samples, positive if any of them is.

    P(positive) = (1 − specificity) + (sensitivity + specificity − 1) (1 − (1−π)^size), where π is
    the probability that one sample is positive. Smaller pools are written with the degree of the
    largest one, which does not change the function.

    Parameters
    ----------
    size : whole number or column of t whole numbers
        Samples in the pool, 1 or more.
    sensitivity, specificity : number or column of t numbers
        Rates of the test on the pool, within [0, 1].

    Returns
    -------
    array of shape (n + 1,), or (t, n + 1) if an argument is a column
        n is the largest size; for a pool of n, (1 − specificity, sensitivity, …, sensitivity).

    Examples
    --------
    >>> from betafield import contexts
    >>> contexts.pooled(3, sensitivity=0.9, specificity=0.75)
    array([0.25, 0.9 , 0.9 , 0.9 ])
    >>> contexts.pooled([1, 2])
    array([[0. , 0.5, 1. ],
           [0. , 1. , 1. ]])
    """
    families.require_known(size=size)
    return families.made(
        formulas.pooled, size=size, sensitivity=sensitivity, specificity=specificity
    )


def polynomial(coefficients: Any) -> Floats:
    """Context of any other distortion that is a polynomial of π.

    P(success) = c_0 + c_1 π + … + c_p π^p, which must stay within [0, 1] for π in [0, 1].

    Some such polynomials have Bernstein coefficients outside [0, 1]. They are elevated to the
    lowest degree, up to 100, at which all coefficients lie within. Only a polynomial that touches
    0 or 1 inside [0, 1], or nearly does, has no such degree.

    Parameters
    ----------
    coefficients : array-like of shape (p + 1,) or (t, p + 1)
        Coefficients of the powers of π, the lowest first: one row for all trials or one per trial.

    Returns
    -------
    array of shape (n + 1,) or (t, n + 1), n ≥ p

    Examples
    --------
    Success requires both of two events, π², or at least one of them, 2π − π²:

    >>> from betafield import contexts
    >>> contexts.polynomial([[0, 0, 1], [0, 2, -1]])
    array([[0., 0., 1.],
           [0., 1., 1.]])
    """
    return powers.as_context(coefficients)


def by_row(which: Any, contexts: Mapping[Any, Any]) -> Any:
    """Contexts of trials from several laboratories, tests or blocks, assigned row by row.

    Parameters
    ----------
    which : column of t labels
        The laboratory, test or block of each trial.
    contexts : mapping of labels to contexts
        One context per label, with known or unknown rates. If one `Unknown` object occurs in
        several of them, they share one rate.

    Returns
    -------
    array of shape (t, n + 1), or `ContextFamily` of t rows if a rate is unknown

    Examples
    --------
    Laboratory A validated its test on 100 positives, of which it found 91; B knows its rates:

    >>> from betafield import contexts
    >>> found = contexts.Unknown(92, 10, name="sensitivity in A")
    >>> tests = {"A": contexts.diagnostic(found, 0.98), "B": contexts.diagnostic(0.85, 0.97)}
    >>> contexts.by_row(["A", "B", "A"], tests)
    ContextFamily(3 rows, sensitivity in A ~ Beta(92, 10))
    """
    return families.by_row(which, contexts, checked)


# Operations on any context -----------------------------------------------------------------


def probability(context: Any, p: Any) -> Floats:
    """Return the success probability under a context if π = p.

    Σ_k b_k binom(n, k) p^k (1−p)^(n−k), by de Casteljau's algorithm, in which nothing cancels.

    Parameters
    ----------
    context : array-like of shape (..., n + 1)
    p : array-like that broadcasts against the context without its last axis
        Within [0, 1].

    Examples
    --------
    >>> from betafield import contexts
    >>> contexts.probability(contexts.background(0.2), [0.0, 0.5, 1.0])
    array([0.2, 0.6, 1. ])
    """
    values, points = checked(context), checks.array("p", p)
    require_rate("p", points)
    _require_broadcast(values.shape[:-1], points.shape)
    return bernstein.value(values, points)


def likelihood(context: Any, success: Any) -> Floats:
    """Return the Bernstein coefficients of the likelihood of an outcome, as a function of π.

    They are b after a success and 1 − b after a failure.

    Parameters
    ----------
    context : array-like of shape (p + 1,) or (t, p + 1)
    success : bool or array-like of t bools

    Examples
    --------
    >>> from betafield import contexts
    >>> contexts.likelihood([0.25, 1.0], [True, False])
    array([[0.25, 1.  ],
           [0.75, 0.  ]])
    """
    values, happened = checked(context), outcomes(success)
    if () not in (values.shape[:-1], happened.shape) and values.shape[:-1] != happened.shape:
        raise refused(
            "success",
            f"found {len(happened)} rows where context has shape {values.shape}; "
            "one outcome per row is needed",
        )
    return np.where(happened[..., None], values, 1.0 - values)


def mirrored(context: Any) -> Floats:
    """Return the context for learning 1 − π from failures instead of π from successes.

    1 − P(success) as a function of 1 − π: coefficients 1 − b, reversed. Gain A and offset B
    become A and 1 − A − B.

    Parameters
    ----------
    context : array-like of shape (..., p + 1)

    Examples
    --------
    Survival under a background mortality of a fifth:

    >>> from betafield import contexts
    >>> contexts.mirrored(contexts.background(0.2))
    array([0. , 0.8])
    """
    return 1.0 - checked(context)[..., ::-1]


def is_affine(context: Any) -> npt.NDArray[np.bool_]:
    """Return which of the rows (t, p + 1) are straight lines, whatever their degree.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import contexts
    >>> contexts.is_affine(np.array([[0.0, 0.5, 1.0], [0.0, 1.0, 1.0]])).tolist()
    [True, False]
    """
    values = checked(context)
    checks.shaped("context", values, (None, None), "rows of coefficients (t, p + 1) are needed")
    return bernstein.is_line(values)


def elevate(context: Any, degree: int) -> Floats:
    """Return the Bernstein coefficients of the same function in a higher degree.

    From degree n to n + 1: b'_k = k/(n+1) b_(k−1) + (1 − k/(n+1)) b_k, averages of neighbours.

    Parameters
    ----------
    context : array-like of shape (..., p + 1)
    degree : int
        p or more.

    Returns
    -------
    array of shape (..., degree + 1)

    Examples
    --------
    >>> from betafield import contexts
    >>> contexts.elevate([0.0, 1.0], 4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    values = checked(context)
    now = values.shape[-1] - 1
    rule = (
        f"the context has degree {now}, and can only be raised, up to {max(now, bernstein.HIGHEST)}"
    )
    checks.whole("degree", degree, low=now, high=max(now, bernstein.HIGHEST), rule=rule)
    return bernstein.elevated(values, degree)


def checked(context: Any) -> Floats:
    """Return a context, or a column of them, as a float64 array of shape (..., p + 1).

    Raises
    ------
    ValueError
        If a coefficient is NaN or outside [0, 1]; the message says which, and what it means.

    Examples
    --------
    >>> from betafield import contexts
    >>> contexts.checked([[0, 1], [0.5, 1.2]])
    Traceback (most recent call last):
        ...
    ValueError: context row 1, column 1 (success probability at π = 1): found 1.2;
    it must be within [0, 1]
    """
    families.refuse("context", context)
    values = np.array(checks.array("context", context))
    if not values.ndim or not values.shape[-1]:
        raise refused(
            "context",
            f"found an array of shape {values.shape}; at least one coefficient is needed, "
            "such as (0, 1), the success probability at π = 0 and at π = 1",
        )
    require((values >= 0.0) & (values <= 1.0), lambda at: _wrong_coefficient(values, at))
    return values


# Coefficients ------------------------------------------------------------------------------


def _require_broadcast(trials: tuple[int, ...], points: tuple[int, ...]) -> None:
    try:
        np.broadcast_shapes(trials, points)
    except ValueError:
        raise refused(
            "p",
            f"found shape {points}, which does not broadcast against contexts of shape {trials}",
        ) from None


def _wrong_coefficient(context: Floats, at: tuple[int, ...]) -> Refused:
    said = f"found {spelled(context, at)}; it must be within [0, 1]"
    return coefficient("context", said, at, _meaning(at[-1], context.shape[-1] - 1))


def _meaning(column: int, degree: int) -> str:
    ends = {0: "success probability at π = 0", degree: "success probability at π = 1"}
    return ends.get(column, f"Bernstein coefficient {column} of degree {degree}")
