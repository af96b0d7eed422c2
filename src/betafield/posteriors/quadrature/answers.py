"""Answers for all rows, one by one: the two kernels that `Contextual` calls."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel
from betafield.posteriors.quadrature.layout import (
    ABOVE,
    MOMENTS,
    NODES,
    PDF,
    POLYNOMIAL,
    PPF,
    SMALL,
)
from betafield.posteriors.quadrature.log_density import prepared
from betafield.posteriors.quadrature.moments import bernstein, mean_and_variance, of_polynomial
from betafield.posteriors.quadrature.nodes import build
from betafield.posteriors.quadrature.tails import add_up, density, quantile, tail

Floats = npt.NDArray[np.float64]


@kernel
def _room(columns: int, shifts: int, polynomials: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return work arrays (terms, nodes, small, state) that are reused for each row."""
    terms = np.empty((4, max(columns, shifts, polynomials)))
    return terms, np.empty((9, NODES)), np.empty(SMALL), np.empty(8)


@kernel
def answer_moments(
    alpha: Floats,
    beta: Floats,
    amounts: Floats,
    first: int,
    factors: Floats,
    trials: Floats,
    repeats: Floats,
    polys: Floats,
    table: Floats,
    what: int,
    values: Floats,
    out: Floats,
) -> None:
    """Write moments (k, m): mean and variance, of polynomials too, or E binom θ^k (1−θ)^(p−k)."""
    terms, nodes, small, state = _room(amounts.shape[1], trials.shape[1], repeats.shape[1])
    for row in range(alpha.size):
        parts = amounts[row], first, factors[row], trials[row], repeats[row]
        prepared(alpha[row], beta[row], *parts, polys, terms, state)
        stretches = build(terms, polys, table, nodes, small, state)
        if what == MOMENTS:
            out[0, row], out[1, row] = mean_and_variance(nodes, small, state, stretches)
        elif what == POLYNOMIAL:
            moments = of_polynomial(nodes, small, state, stretches, values[:, row])
            out[0, row], out[1, row] = moments
        else:
            bernstein(nodes, small, state, stretches, values[:, 0], out[:, row])


@kernel
def answer_points(
    alpha: Floats,
    beta: Floats,
    amounts: Floats,
    first: int,
    factors: Floats,
    trials: Floats,
    repeats: Floats,
    polys: Floats,
    table: Floats,
    what: int,
    values: Floats,
    out: Floats,
) -> None:
    """Write (k, m) densities, tails or quantiles at (k, m) values."""
    terms, nodes, small, state = _room(amounts.shape[1], trials.shape[1], repeats.shape[1])
    for row in range(alpha.size):
        parts = amounts[row], first, factors[row], trials[row], repeats[row]
        prepared(alpha[row], beta[row], *parts, polys, terms, state)
        stretches = build(terms, polys, table, nodes, small, state)
        ends = add_up(nodes, small, table, state, stretches)
        for k in range(values.shape[0]):
            value = values[k, row]
            if what == PDF:
                out[k, row] = density(
                    terms, polys, nodes, small, table, state, stretches, ends[0], value
                )
            elif what == PPF:
                out[k, row] = quantile(nodes, small, table, stretches, ends, value)
            else:
                out[k, row] = tail(nodes, small, table, stretches, ends, value, what == ABOVE)
