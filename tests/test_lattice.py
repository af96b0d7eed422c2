"""Weights on the lattice against the function that they represent, in high precision."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from betafield import lattice

SHIFTS = st.floats(-lattice.EDGE, lattice.EDGE)


def softplus(u):
    return (1 + arb(u).exp()).log()


@pytest.fixture(autouse=True)
def precision():
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


@given(shift=SHIFTS, u=st.floats(-60, 60))
def test_shares_stand_for_the_trial(shift, u):
    shares = lattice.weights(np.array([shift]))[0].tolist()
    first = int(lattice.position(np.array([shift]))[0])
    points = [(first + j) * lattice.STEP for j in range(lattice.POINTS)]
    shared = sum(w * softplus(arb(u) + s) for w, s in zip(shares, points, strict=True))
    error = float(abs(shared / lattice.UNIT - softplus(arb(u) + shift)))
    assert error < 1e-8


@given(shift=SHIFTS, size=st.floats(1e-6, 1e6))
def test_a_trial_counts_for_its_size(shift, size):
    shares = lattice.weights(np.array([shift]), np.array([size]))
    assert shares.sum() == np.rint(size * lattice.UNIT)


@given(st.integers(-160, 160))
def test_a_shift_on_the_lattice_has_one_point(point):
    shift = np.array([point * lattice.STEP])
    shares = lattice.weights(shift)[0]
    assert np.flatnonzero(shares).tolist() == [point - lattice.position(shift)[0]]


@given(low=st.floats(1e-300, 1), high=st.floats(1e-300, 1))
def test_shifts_turn_round_with_the_trial(low, high):
    row = np.array([[low, high]])
    assert lattice.shift(row) == -lattice.shift(row[:, ::-1])
    assert abs(lattice.shift(row)[0]) <= lattice.EDGE
