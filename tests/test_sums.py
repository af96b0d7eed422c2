"""Sums by place keep every trial, whatever its context."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield.evidence.encode import counted
from betafield.sums import Sums

# Undistorted, affine, affine and mirrored, polynomial.
CONTEXTS = {
    2: [[0.0, 1.0], [0.25, 1.0], [0.9, 0.1]],
    3: [[0.0, 0.5, 1.0], [0.25, 0.625, 1.0], [0.0, 0.75, 1.0]],
}


@given(
    chosen=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), min_size=1),
    coefficients=st.sampled_from(sorted(CONTEXTS)),
)
def test_all_trials_are_kept_under_their_contexts(chosen, coefficients):
    which, place, success = (np.array(each) for each in zip(*chosen, strict=True))
    context = np.array(CONTEXTS[coefficients])[which]
    points, outcomes = place[:, None] / 4, np.stack([~success, success])
    sums = Sums.of(points, 2, counted(outcomes, None, context))
    found = sums.plus(sums).distinct().rows()
    assert found.counts.sum() == 2 * len(chosen) == 2 * sums.totals.number()
    curve = np.linspace(0.0, 1.0, 7)
    seen = [[0.0, 1.0]] * len(found.points) if found.context is None else found.context
    for x, count, row in zip(found.points, found.counts.T, _at(seen, curve), strict=True):
        alike = (points == x).all(axis=1) & np.isclose(_at(context, curve), row).all(axis=1)
        assert count.tolist() == (2 * outcomes[:, alike].sum(axis=1)).tolist()


def _at(context, pi):
    """Return the success probability at each π, by de Casteljau's algorithm."""
    level = np.repeat(np.asarray(context)[:, :, None], len(pi), axis=2)
    while level.shape[1] > 1:
        level = (1.0 - pi) * level[:, :-1] + pi * level[:, 1:]
    return level[:, 0]


@pytest.mark.parametrize("rate", [0.0, 0.25])
def test_one_context_for_all(rate):
    context = np.tile([rate, 1.0], (3, 1))
    sums = Sums.of(np.arange(3.0)[:, None], 2, counted(np.eye(2, 3, dtype=bool), None, context))
    assert sums.size == 2


def test_fractions_beside_many_trials_are_those_of_all_at_a_place():
    """Otherwise, counted in coarser units, they would depend on how the trials arrived."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 1)) / 2.0, rng.integers(0, 2, 60)
    weight = rng.random(60)
    weight[:2] = 2.0**45
    at_once = Sums.of(X, 2, counted(np.stack([y == 0, y == 1]), weight, None))
    one_by_one = Sums(1, 2)
    for i in range(60):
        columns = np.stack([y[i : i + 1] == 0, y[i : i + 1] == 1])
        one_by_one = one_by_one.plus(
            Sums.of(X[i : i + 1], 2, counted(columns, weight[i : i + 1], None))
        )
    for sums in (at_once, one_by_one):
        points, counts, _, unit, *_ = sums.rows()
        for place in np.unique(X):
            exact = [sum(map(Fraction, weight[(X[:, 0] == place) & (y == k)])) for k in (0, 1)]
            found = [int(n) for n in counts[:, points[:, 0] == place].sum(axis=1)]
            assert found == [round(amount / Fraction(unit)) for amount in exact]


@pytest.mark.parametrize("weight", [0.5, 2.0**31 + 0.5, 2.0**45 + 0.5])
def test_totals_under_contexts_hold_any_weight(weight):
    seen = np.array([[True], [False]])
    found = counted(seen, np.array([weight]), np.array([[0.25, 0.75]])).totals
    size = int(weight * 2**32)
    assert found == (size, size, size // 4, size // 4)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=5))
def test_groups_are_those_of_all_trials_however_they_came(batches):
    def summed(group):
        columns = np.stack([np.ones(len(group), bool), np.zeros(len(group), bool)])
        seen = counted(columns, None, None)
        return Sums.of(np.zeros((len(group), 1)), 2, seen, np.array(group, dtype=float))

    whole = Sums(1, 2)
    for group in batches:
        whole = whole.plus(summed(group))
    expected = sorted({number for group in batches for number in group})
    assert whole.groups.tolist() == whole.distinct().groups.tolist() == expected
    # From the parts, as when a file is read.
    assert dataclasses.replace(whole, known=None).groups.tolist() == expected
