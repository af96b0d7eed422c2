"""Contexts with unknown rates: contexts as functions of the rates, and priors of the rates.

The coefficients of every named context are affine in each of its rates. A context with one or two
unknown rates is therefore determined by its coefficients at the corners, where each of these rates
is 0 or 1: at rates u they are

    b(u) = Σ_c Π_j u_j^(c_j) (1 − u_j)^(1 − c_j) · b(c),   c_j ∈ {0, 1},

a mean of the corners, which stays within [0, 1]. Corners are stored like any coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from betafield import bernstein, checks
from betafield.refusals import refused

Floats = npt.NDArray[np.float64]

# The most unknown rates of a model and characters of a name; the largest shape of a prior.
MOST, LETTERS, LARGEST = 2, 64, 1e12


class Rate(NamedTuple):
    """An unknown rate: its name and the shapes of its prior."""

    name: str
    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """Return the mean of the prior."""
        return self.alpha / (self.alpha + self.beta)


@dataclass(frozen=True, eq=False)
class Unknown:
    """An unknown rate with the prior Beta(alpha, beta), from experience or from a study.

    Pass it to a named context instead of a rate, alone or in a column next to numbers. The rate is
    then learned together with π, and `model.rates_` holds its posterior.

    One object is one rate, whichever trials it is used for. `partial_fit`, `merge` and files
    identify rates by name. The default name is that of the argument ("lapse", "sensitivity"); two
    rates of the same kind need different names. A model can have at most two unknown rates.

    Parameters
    ----------
    alpha, beta : float
        Shapes of the prior, positive. A validation study in which s of n cases were detected is
        Unknown(s + 1, n − s + 1): the uniform prior plus the counts.
    name : str, default=None
        Its key in `model.rates_`. None: the name of the argument.

    Examples
    --------
    About one answer in twenty is a lapse:

    >>> from betafield import contexts
    >>> lapse = contexts.Unknown(1.5, 30)
    >>> contexts.guess_lapse(guess=1 / 2, lapse=lapse)
    ContextFamily(1 row, lapse ~ Beta(1.5, 30))

    Two tests; the second was studied on 200 positives, of which it detected 184:

    >>> quick = contexts.Unknown(9, 3, name="quick test")
    >>> contexts.diagnostic([quick, contexts.Unknown(185, 17)], 0.98)
    ContextFamily(2 rows, quick test ~ Beta(9, 3), sensitivity ~ Beta(185, 17))
    """

    alpha: float
    beta: float
    name: str | None = None

    def __post_init__(self) -> None:
        rule = f"shapes of a Beta prior are needed, positive and at most {LARGEST:g}"
        for part in ("alpha", "beta"):
            value = getattr(self, part)
            is_shape = checks.is_number(value) and 0.0 < value <= LARGEST
            checks.require(is_shape, part, value, rule)
            object.__setattr__(self, part, float(value))
        is_name = self.name is None or (isinstance(self.name, str) and self._is_short(self.name))
        checks.require(is_name, "name", self.name, f"a name of 1 to {LETTERS} letters is needed")

    @staticmethod
    def _is_short(name: str) -> bool:
        return bool(name.strip()) and len(name) <= LETTERS

    def __repr__(self) -> str:
        name = "" if self.name is None else f", name={self.name!r}"
        return f"Unknown({self.alpha:g}, {self.beta:g}{name})"

    def __float__(self) -> NoReturn:
        raise TypeError(f"found {self!r} where a number is needed; this rate must be known")


@dataclass(frozen=True, eq=False)
class ContextFamily:
    """Contexts with unknown rates, one row per trial or one for all.

    The constructors of `betafield.contexts` return it. `context=` accepts it everywhere, and it
    can be indexed by rows, as cross-validation does.

    Parameters
    ----------
    rates : tuple of Rate
        Sorted by name.
    corners : array of shape (t, 2^r, p + 1)
        Coefficients at the corners; rate j is the j-th bit of the corner's index.
    sources : tuple of (Unknown, str)
        The `Unknown` objects and the names of their rates.

    Examples
    --------
    >>> from betafield import contexts
    >>> family = contexts.guess_lapse([1 / 2, 1 / 4], contexts.Unknown(1.5, 30))
    >>> family[:1]
    ContextFamily(1 row, lapse ~ Beta(1.5, 30))
    >>> family.at(lapse=0.1)
    array([[0.5 , 0.9 ],
           [0.25, 0.9 ]])
    """

    rates: tuple[Rate, ...]
    corners: Floats
    sources: tuple[tuple[Unknown, str], ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and coefficients."""
        return len(self.corners), self.corners.shape[-1]

    @property
    def ndim(self) -> int:
        """Two, like a table of contexts."""
        return 2

    def __len__(self) -> int:
        return len(self.corners)

    def __getitem__(self, rows: Any) -> ContextFamily:
        corners = self.corners[rows]
        corners = corners[None] if corners.ndim < self.corners.ndim else corners
        return ContextFamily(self.rates, corners, self.sources)

    def __repr__(self) -> str:
        rows = f"{len(self)} row{'s' if len(self) != 1 else ''}"
        told = ", ".join(f"{name} ~ Beta({a:g}, {b:g})" for name, a, b in self.rates)
        return f"ContextFamily({rows}, {told})"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        refuse("context", self)
        raise AssertionError

    def at(self, **rates: float) -> Floats:
        """Return the contexts (t, p + 1) at these rates, given by name."""
        known = [rate.name for rate in self.rates]
        if sorted(rates) != sorted(known):
            raise refused("rates", f"found {sorted(rates)}; the unknown ones are {known}")
        rule = "a probability within [0, 1] is needed"
        each = [checks.number(name, rates[name], rule, low=0.0, high=1.0) for name in known]
        return at(self.corners, np.array(each))

    def at_means(self) -> Floats:
        """Return the contexts (t, p + 1) at the means of the priors."""
        return at(self.corners, means(self.rates))

    def rows(self, t: int) -> ContextFamily:
        """Return the contexts of t trials; a single row is repeated."""
        shape = (t, *self.corners.shape[1:])
        return ContextFamily(self.rates, np.broadcast_to(self.corners, shape), self.sources)


def refuse(name: str, context: Any) -> None:
    """Raise for unknown rates if they must be known."""
    if isinstance(context, ContextFamily):
        names = ", ".join(f"{rate.name}=…" for rate in context.rates)
        raise refused(
            name,
            f"found rates that are not known, {context!r}; here they must be known, so "
            f"give numbers, such as context.at({names}) with the means of model.rates_",
        )


def require_none(rates: Sequence[Rate]) -> None:
    """Raise for guarantees with unknown rates."""
    if rates:
        names = ", ".join(rate.name for rate in rates)
        raise refused(
            "band",
            f"this model has learned from trials whose rates are not known ({names}); "
            "guarantees need known ones, and posterior(X).interval() allows for the unknown ones",
        )


# At rates ----------------------------------------------------------------------------------


def means(rates: Iterable[Rate]) -> Floats:
    """Return the means of the priors."""
    return np.array([rate.mean for rate in rates])


def shares(rates: Floats) -> Floats:
    """Return the weight (2^r,) of each corner at rates (r,)."""
    found = np.ones(1)
    for u in rates:
        found = np.concatenate([found * (1.0 - u), found * u])
    return found


def at(corners: Floats, rates: Floats) -> Floats:
    """Return coefficients (t, p + 1) at rates, given those (t, 2^r, p + 1) at the corners.

    If all corners are equal, so is the coefficient, to the last bit.

    Examples
    --------
    >>> at(np.array([[[0.5, 1.0], [0.5, 0.0]]]), np.array([0.1]))
    array([[0.5, 0.9]])
    """
    first = corners[:, 0]
    moved = first + sum(
        share * (corners[:, c] - first) for c, share in enumerate(shares(rates)) if c
    )
    return np.asarray(np.clip(moved, 0.0, 1.0))


def widened(corners: Floats, own: Sequence[Rate], every: Sequence[Rate]) -> Floats:
    """Return corners (t, 2^r, p + 1) of some of the rates as corners of all of them."""
    place = [list(every).index(rate) for rate in own]
    numbers = np.arange(2 ** len(every))
    chosen = sum(((numbers >> j) & 1) << i for i, j in enumerate(place))
    return corners[:, np.broadcast_to(chosen, numbers.shape)]


def together(*some: Iterable[Rate]) -> tuple[Rate, ...]:
    """Return all rates, sorted by name; raise for too many, and for one with two priors."""
    found: dict[str, Rate] = {}
    for rate in (rate for each in some for rate in each):
        if found.setdefault(rate.name, rate) != rate:
            a, b = (f"Beta({r.alpha:g}, {r.beta:g})" for r in (found[rate.name], rate))
            raise refused(
                "context",
                f"found {a} and {b} for the unknown rate {rate.name!r}; one rate has one "
                "prior, so make them equal, or give each a name: Unknown(alpha, beta, name=…)",
            )
    if len(found) > MOST:
        raise refused(
            "context",
            f"found {len(found)} unknown rates, {', '.join(sorted(found))}; at most "
            f"{MOST} can be learned; use one Unknown for rates that are the same, or numbers",
        )
    return tuple(found[name] for name in sorted(found))


# From arguments ----------------------------------------------------------------------------


def made(
    make: Callable[..., Floats], check: Callable[..., Any] | None = None, /, **arguments: Any
) -> Any:
    """Return the context that a constructor makes: an array, or a family if a rate is unknown.

    `make` must be affine in each rate; `check` is called with unknown rates at their means.
    """
    check = make if check is None else check
    columns = {name: _column(values) for name, values in arguments.items()}
    named = _named(columns)
    if not named:
        check(**arguments)
        return make(**arguments)
    rates = together(Rate(name, u.alpha, u.beta) for u, name in named.items())
    where = {u: [rate.name for rate in rates].index(name) for u, name in named.items()}

    def with_rates(values: Floats) -> dict[str, Any]:
        return {k: _known(v, where, values) for k, v in columns.items()}

    check(**with_rates(means(rates)))
    r = len(rates)
    bits = [np.array([c >> j & 1 for j in range(r)], dtype=np.float64) for c in range(2**r)]
    corners = [np.atleast_2d(make(**with_rates(each))) for each in bits]
    return ContextFamily(rates, np.stack(corners, axis=1), tuple(named.items()))


def require_known(**arguments: Any) -> None:
    """Raise for an unknown rate in an argument that must be known."""
    for name, values in arguments.items():
        if found := _unknown(_column(values)):
            raise refused(
                name,
                f"found {found[0]!r}; this is not a rate and must be known. The rates that "
                "may be unknown are those of guess_lapse, diagnostic, background, attenuated, "
                "randomized_response and pooled",
            )


def require_different(**arguments: Any) -> None:
    """Raise if the same unknown rate is given for two arguments that are multiplied."""
    each = [set(_unknown(_column(values))) for values in arguments.values()]
    if found := set.intersection(*each):
        names = " and ".join(arguments)
        raise refused(names, f"found {found.pop()!r} for both; they must be two rates")


def _column(values: Any) -> Any:
    """Return an argument, as a list if it is a column with unknown rates."""
    if isinstance(values, Unknown) or not isinstance(values, list | tuple | np.ndarray):
        return values
    is_mixed = any(isinstance(each, Unknown) for each in np.ravel(np.array(values, dtype=object)))
    return list(values) if is_mixed else values


def _unknown(values: Any) -> list[Unknown]:
    each = values if isinstance(values, list) else [values]
    return [value for value in each if isinstance(value, Unknown)]


def _named(columns: dict[str, Any]) -> dict[Unknown, str]:
    """Return all unknown rates with their names; raise if two objects would share a name."""
    found: dict[Unknown, str] = {}
    for argument, values in columns.items():
        for unknown in _unknown(values):
            found.setdefault(unknown, unknown.name or argument)
    _require_named(found)
    return found


def _require_named(found: dict[Unknown, str]) -> None:
    """Raise if two objects would share a default name."""
    for name in set(found.values()):
        same = [u for u, theirs in found.items() if theirs == name]
        if len(same) > 1 and any(u.name is None for u in same):
            raise refused(
                name,
                f"found {len(same)} different Unknown for it; use one object if they are "
                "one rate, and give each a name if not: Unknown(alpha, beta, name=…)",
            )


def _known(values: Any, where: dict[Unknown, int], rates: Floats) -> Any:
    """Return an argument with numbers instead of unknown rates."""
    if isinstance(values, Unknown):
        return float(rates[where[values]])
    if not isinstance(values, list):
        return values
    return [float(rates[where[v]]) if isinstance(v, Unknown) else v for v in values]


# Combining contexts ------------------------------------------------------------------------


def by_row(which: Any, contexts: Any, checked: Callable[[Any], Floats]) -> Any:
    """Return per row the context of its label; `checked` validates those of known rates."""
    checks.instance("contexts", contexts, Mapping, "a mapping of labels to contexts is needed")
    labels = checks.cells("which", which)
    if labels.ndim != 1:
        raise refused("which", f"found shape {labels.shape}; one label per row is needed")
    names = list(contexts)
    number = {name: i for i, name in enumerate(names)}
    known = checks.spelled(names)
    each = [_one(names[i], contexts[names[i]], checked) for i in range(len(names))]
    is_known = np.array([label in number for label in labels.tolist()], dtype=np.bool_)
    checks.require_all(is_known, "which", labels, f"there are contexts for {known}")
    return chosen(np.array([number[label] for label in labels.tolist()], dtype=np.intp), each)


def _one(name: Any, context: Any, checked: Callable[[Any], Floats]) -> Any:
    """Return the single context of a label."""
    try:
        found = context if isinstance(context, ContextFamily) else checked(context)
    except (TypeError, ValueError) as error:
        raise type(error)(f"contexts[{name!r}]: {error}") from error
    if found.ndim > 2 or (found.ndim == 2 and len(found) != 1):
        raise ValueError(
            f"contexts[{name!r}]: found {len(found)} rows; one context per label is needed"
        )
    return found


def chosen(which: npt.NDArray[np.intp], each: Sequence[Any]) -> Any:
    """Return per row one of several contexts: arrays (p + 1,) or (1, p + 1), or families."""
    if not any(isinstance(one, ContextFamily) for one in each):
        degree = max(one.shape[-1] for one in each) - 1
        rows = [np.atleast_2d(bernstein.elevated(one, degree)) for one in each]
        return np.concatenate(rows)[which]
    each = _one_name(list(each))
    families = [one for one in each if isinstance(one, ContextFamily)]
    sources = {u: name for family in families for u, name in family.sources}
    _require_named(sources)
    rates = together(*(family.rates for family in families))
    corners = np.concatenate(raised([_corners(one, rates) for one in each]))
    return ContextFamily(rates, corners[which], tuple(sources.items()))


def _one_name(each: list[Any]) -> list[Any]:
    """Return contexts in which an object used for several arguments has its first name."""
    first: dict[Unknown, str] = {}
    return [_renamed(one, first) if isinstance(one, ContextFamily) else one for one in each]


def _renamed(family: ContextFamily, first: dict[Unknown, str]) -> ContextFamily:
    names = {name: first.setdefault(u, name) for u, name in family.sources}
    if all(old == new for old, new in names.items()):
        return family
    renamed = [rate._replace(name=names[rate.name]) for rate in family.rates]
    rates = together(renamed)
    corners = widened(family.corners, renamed, rates)
    return ContextFamily(rates, corners, tuple((u, names[name]) for u, name in family.sources))


def _corners(context: Any, rates: tuple[Rate, ...]) -> Floats:
    """Return a context at the corners of all rates."""
    if isinstance(context, ContextFamily):
        return widened(context.corners, context.rates, rates)
    return np.repeat(np.atleast_2d(context)[:, None], 2 ** len(rates), axis=1)


def raised(parts: Sequence[Floats]) -> list[Floats]:
    """Return contexts, with coefficients along the last axis, all raised to the highest degree."""
    degree = max(part.shape[-1] for part in parts) - 1
    return [bernstein.elevated(part, max(degree, 1)) for part in parts]
