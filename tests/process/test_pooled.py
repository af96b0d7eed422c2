"""Levels of categories: the block arrowhead matrix against dense matrices, in generated cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from betafield.process import law
from betafield.process.basis import Prior, basis
from betafield.process.blocks import Column
from betafield.process.design import design
from betafield.process.fit import Problem, settled
from betafield.process.laplace import mode, slopes
from betafield.process.links import LINKS
from betafield.process.rows import Rows


def cases():
    return st.tuples(
        st.integers(0, 2**32 - 1),
        st.integers(0, 2),  # features
        st.lists(st.integers(1, 6), min_size=1, max_size=3),  # levels per column
        st.sampled_from(LINKS),
        st.booleans(),  # contexts
    )


def problem_of(case):
    seed, d, counts, link, is_distorted = case
    rng = np.random.default_rng(seed)
    r = 40
    codes = [rng.integers(0, L, r) / max(L - 1, 1) for L in counts]
    n = rng.integers(1, 6, r)
    k = rng.binomial(n, rng.uniform(0.1, 0.9, r))
    context = np.tile([0.1, 0.95] if is_distorted else [0.0, 1.0], (r, 1))
    columns = tuple(Column(L, is_smooth=d > 0) for L in counts)
    x = np.column_stack([rng.random((r, d)), *codes])
    rows = Rows(x, n, k, context, columns=columns)
    prior = Prior(link.scale, float(n.sum()), columns=columns)
    theta = Problem(rows, link, prior).centre + rng.normal(
        0, 0.3, 1 + d + sum(column.parameters for column in columns)
    )
    return Problem(rows, link, prior), theta


def dense(problem, theta):
    """Return Φ̃ written out column by column."""
    functions, x = basis(theta, problem.prior), problem.rows.x
    return functions, explicit(functions, x)


def explicit(functions, x):
    d, m = len(functions.margin), len(functions.J)
    U = np.ones((len(x), m))
    for a in range(d):
        angle = np.pi * (x[:, a] + functions.margin[a]) / (1 + 2 * functions.margin[a])
        U = U * np.cos(angle[:, None] * functions.J[:, a])
    P = np.zeros((len(x), len(functions.root)))
    P[:, :m] = U * functions.root[:m]
    for k, column in enumerate(functions.layout.columns):
        effect, first = functions.layout.effects[k], functions.layout.first[k]
        for row in range(len(x)):
            level = round(x[row, d + k] * max(column.size - 1, 1))
            at = first + level * len(effect.low)
            P[row, at : at + len(effect.low)] = U[row, effect.low] * effect.root
    return P


@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_block_arrow_equals_dense_matrices(case):
    problem, theta = problem_of(case)
    functions, P = dense(problem, theta)
    found = mode(theta, *problem)
    m = len(functions.root)
    np.testing.assert_allclose(
        design(functions, problem.rows.x).values(found.b), P @ found.b, atol=1e-10
    )
    M = np.eye(m) + P.T @ (found.reading.information[:, None] * P)
    S = np.linalg.inv(M)
    y = np.random.default_rng(case[0]).normal(size=m)
    np.testing.assert_allclose(found.curvature.solve(y), S @ y, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.curvature.form(y), y @ M @ y, rtol=1e-9)
    np.testing.assert_allclose(
        found.curvature.half_log_determinant, 0.5 * np.linalg.slogdet(M)[1], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(found.b, P.T @ found.reading.score, atol=1e-6)  # the mode
    evidence = found.reading.log - 0.5 * found.b @ found.b - 0.5 * np.linalg.slogdet(M)[1]
    np.testing.assert_allclose(found.evidence, evidence, rtol=1e-9, atol=1e-8)
    slope = slopes(found, problem.rows)
    G, R = functions.slope, np.eye(m) - S
    np.testing.assert_allclose(slope.leverages, np.sum((P @ S) * P, axis=1), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(slope.moves, (G * found.b) @ S, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(slope.information, 0.5 * G @ (R * R) @ G.T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(slope.S.times(y), S @ y, rtol=1e-7, atol=1e-9)
    drift = P.T @ (-0.5 * slope.leverages * found.reading.slope)
    gradient = (0.5 * G * (found.b**2 - np.diag(R))).sum(axis=1) + slope.moves @ drift
    np.testing.assert_allclose(slope.gradient, gradient, rtol=1e-6, atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_gradient_is_that_of_the_evidence(case):
    """By differences, for the logit without contexts, whose information is the observed one."""
    problem, theta = problem_of((*case[:3], LINKS[0], False))
    found = slopes(mode(theta, *problem), problem.rows).gradient
    for i, step in enumerate(1e-4 * np.eye(len(theta))):
        if basis(theta + step, problem.prior).J.shape != basis(theta - step, problem.prior).J.shape:
            continue
        ends = [basis(theta + s * step, problem.prior) for s in (-1, 1)]
        if any(
            a.low.tolist() != b.low.tolist()
            for a, b in zip(ends[0].layout.effects, ends[1].layout.effects, strict=True)
        ) or not np.array_equal(ends[0].margin, ends[1].margin):
            continue
        up, down = (mode(theta + s * step, *problem).evidence for s in (1, -1))
        assert found[i] == pytest.approx((up - down) / 2e-4, abs=2e-4, rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_variances_of_seen_and_unseen_levels(case):
    problem, theta = problem_of(case)
    fit = settled(problem, theta)
    surface, rng = law.surface(fit), np.random.default_rng(case[0])
    d = problem.rows.d
    x = problem.rows.x[:8].copy()
    x[:, :d] = rng.random((8, d))
    P = explicit(fit.mode.basis, x)
    W = fit.mode.reading.information
    all_rows = explicit(fit.mode.basis, problem.rows.x)
    S = np.linalg.inv(np.eye(len(fit.mode.b)) + all_rows.T @ (W[:, None] * all_rows))
    wide = S + 3 * fit.slopes.moves.T @ fit.covariance @ fit.slopes.moves
    found = law.latent(surface, x)
    np.testing.assert_allclose(found.narrow, np.sum((P @ S) * P, axis=1), rtol=1e-6)
    np.testing.assert_allclose(found.wide, np.sum((P @ wide) * P, axis=1), rtol=1e-6)
    np.testing.assert_allclose(found.mean, P @ surface.b, rtol=1e-6, atol=1e-9)
    column = fit.mode.basis.layout
    for k, effect in enumerate(column.effects):  # an unseen level has new functions
        new = x.copy()
        new[:, d + k] = -1.0
        first = column.first[k]
        Q = P.copy()
        Q[:, first : first + column.columns[k].size * len(effect.low)] = 0.0
        psi = P[:, effect.low] / fit.mode.basis.root[effect.low] * effect.root
        expected = np.sum((Q @ S) * Q, axis=1) + np.sum(psi**2, axis=1)
        np.testing.assert_allclose(law.latent(surface, new).narrow, expected, rtol=1e-6)


@given(cases())
@settings(max_examples=20, deadline=None)
def test_covariances_of_points_equal_dense_matrices(case):
    problem, theta = problem_of(case)
    at = mode(theta, *problem)
    found, (functions, P) = slopes(at, problem.rows), dense(problem, theta)
    S = found.S.widened(found.moves, np.eye(len(theta)))
    M = np.eye(P.shape[1]) + P.T @ (at.reading.information[:, None] * P)
    whole = np.linalg.inv(M) + found.moves.T @ found.moves
    some = problem.rows.x[::3]
    both = design(functions, some), design(functions, problem.rows.x)
    np.testing.assert_allclose(both[0].covariances(both[1], S), P[::3] @ whole @ P.T, atol=1e-8)
