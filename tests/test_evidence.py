"""Sums of distorted trials, decoded as posteriors: against the exact mixture and integrals."""

from math import comb

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.distortions import affine, polynomial

from betafield import contexts, lattice
from betafield.evidence import Decoder, Totals, columns, decode, encode
from betafield.posteriors import Beta
from betafield.posteriors.reference import exact_mixture
from betafield.windows import Places

LEVELS = np.array([[0.025], [0.5], [0.975]])
POINTS = np.array([[0.05], [0.3], [0.5], [0.8], [0.99]])


@st.composite
def experiments(draw, rows=affine | polynomial, most=25):
    """Draw contexts (t, p + 1) of one degree, and possible outcomes."""
    drawn = draw(st.lists(st.tuples(rows, st.booleans()), min_size=1, max_size=most))
    degree = max(len(row) for row, _ in drawn) - 1
    context = np.array([contexts.elevate(row, degree) for row, _ in drawn])
    success = np.array([happened for _, happened in drawn])
    impossible = ~contexts.likelihood(context, success).any(axis=1)
    return context, success ^ impossible


def evidence_of(context, success, share="exact", weight=None, **polynomials):
    outcome = np.array([~success, success])
    return encode.distorted(outcome, weight, np.asarray(context, dtype=float), share, **polynomials)


def window_of(evidence, share="exact"):
    """Return the sums of a window with all of these trials, and their decoder."""
    span, on_lattice = (0, 0), np.zeros(0, dtype=np.int64)
    if evidence.shifts is not None:
        shifts = evidence.shifts
        span = shifts.span()
        on_lattice = np.zeros(span[1], dtype=np.int64)
        at = lattice.position(shifts.values) - span[0]
        units = lattice.weights(shifts.values, shifts.sizes()) * shifts.held[:, None]
        there = shifts.held > 0
        np.add.at(on_lattice, at[there, None] + np.arange(lattice.POINTS), units[there])
    counts = evidence.counts.sum(axis=1, dtype=np.int64)
    decoder = Decoder(2, share, len(counts), span, evidence.polynomials)
    return np.concatenate([counts, on_lattice])[None], decoder


def read(context, success, share="exact", prior=(1.0, 1.0), weight=None):
    """Return the posterior of a window with all of these trials."""
    sums, decoder = window_of(evidence_of(context, success, share, weight), share)
    return decoder.posterior(sums, np.array([prior[::-1]]))


def teaches(context):
    # Rounding, as of a higher degree, is not information.
    return np.ptp(context, axis=1) > 1e-14


def assert_same_distribution(ours, exact, tolerance=1e-6):
    np.testing.assert_allclose(ours.mean(), exact.mean(), rtol=0, atol=tolerance)
    np.testing.assert_allclose(ours.std(), exact.std(), rtol=0, atol=tolerance)
    np.testing.assert_allclose(ours.cdf(POINTS), exact.cdf(POINTS), rtol=0, atol=tolerance)
    # If there is almost no mass between two modes, a quantile is any point between them.
    found = ours.ppf(LEVELS)
    away = np.minimum(np.abs(found - exact.ppf(LEVELS)), np.abs(exact.cdf(found) - LEVELS))
    assert away.max() <= tolerance


@pytest.mark.parametrize("other", [(2.0, 3.01), (2.01, 3.015)], ids=["mean", "spread"])
def test_other_distributions_are_told_apart(other):
    assert_same_distribution(Beta([2.0], [3.0]), Beta([2.0], [3.0]))
    with pytest.raises(AssertionError):
        assert_same_distribution(Beta([2.0], [3.0]), Beta([other[0]], [other[1]]))


def integral(function, context, success, weight, prior=(1.0, 1.0)):
    """Return E[function(θ)] after weighted trials: a sum over log-odds, where it is smooth."""
    u = np.arange(-45.0, 45.0, 0.1)
    theta, other = 1 / (1 + np.exp(-u)), 1 / (1 + np.exp(u))
    density = prior[0] * np.log(theta) + prior[1] * np.log(other)
    for row, n in zip(contexts.likelihood(context, success), weight, strict=True):
        # In both θ and 1 − θ, because a likelihood may vanish at either end.
        p = len(row) - 1
        terms = [b * comb(p, k) * theta**k * other ** (p - k) for k, b in enumerate(row)]
        density += n * np.log(sum(terms))
    density = np.exp(density - density.max())
    return np.sum(density * function(theta)) / np.sum(density)


# Exact sharing.


@settings(max_examples=100)
@given(experiments(), st.sampled_from([(1.0, 1.0), (0.5, 2.0), (3.0, 0.25)]))
@example((np.array([[0.5, 0.0, 0.5]] * 20), np.ones(20, dtype=bool)), (1.0, 1.0))
@example((np.array([[0.0, 1e-12], [1 - 1e-12, 1.0]]), np.array([True, False])), (1.0, 1.0))
@example((np.array([[1e-9, 2e-9]] * 9), np.arange(9) < 5), (1.0, 1.0))
def test_exact_sums_are_the_likelihood_of_all_trials(experiment, prior):
    context, success = experiment
    assert_same_distribution(
        read(context, success, prior=prior), exact_mixture(context, success, prior)
    )


@settings(max_examples=60)
@given(experiments(most=12), st.data())
def test_exact_sums_raise_likelihoods_to_their_weights(experiment, data):
    context, success = experiment
    sizes = st.sampled_from([0.5, 1.0, 2.0, 0.1, 3.7])
    weight = np.array(data.draw(st.lists(sizes, min_size=len(success), max_size=len(success))))
    ours = read(context, success, weight=weight)
    mean = integral(lambda t: t, context, success, weight)
    spread = integral(lambda t: (t - mean) ** 2, context, success, weight) ** 0.5
    assert ours.mean()[0] == pytest.approx(mean, abs=1e-6)
    assert ours.std()[0] == pytest.approx(spread, abs=1e-6)


@settings(max_examples=20)
@given(experiments(rows=affine, most=8), st.integers(1, 600))
def test_many_trials_of_a_kind_are_as_right_as_one(experiment, times):
    context, success = (np.repeat(part, times, axis=0)[:800] for part in experiment)
    assert_same_distribution(read(context, success), exact_mixture(context, success))


def test_a_context_of_equal_coefficients_teaches_nothing():
    context = np.array([[0.4, 0.4], [0.1, 0.6], [1.0, 1.0]])
    evidence = evidence_of(context, np.array([False, True, True]))
    assert evidence.rows.tolist() == [1]
    assert evidence.totals.number() == 1
    assert evidence.present(3).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("context", "success", "counts"),
    [
        ((0.0, 1.0), True, [0, 1]),
        ((0.0, 1.0), False, [1, 0]),
        ((0.0, 0.3), True, [0, 1]),
        ((0.3, 1.0), False, [1, 0]),
        ((1.0, 0.0), True, [1, 0]),
        ((1.0, 0.0), False, [0, 1]),
        ((0.3, 0.0), True, [1, 0]),
        ((0.0, 0.25, 0.5, 0.75, 1.0), True, [0, 1]),
    ],
)
def test_outcomes_impossible_at_one_end_are_beta_counts(context, success, counts):
    evidence = evidence_of([context], np.array([success]))
    assert evidence.shifts is None
    assert evidence.polynomials == ()
    assert evidence.counts.sum(axis=1).tolist() == counts
    sums, decoder = window_of(evidence)
    assert isinstance(decoder.posterior(sums, np.ones((1, 2))), Beta)


def test_an_affine_context_of_higher_degree_is_kept_as_affine():
    row = contexts.elevate((0.2, 0.7), 5)
    evidence = evidence_of([row], np.array([True]))
    assert evidence.polynomials == ()
    assert evidence.shifts.values[0] == pytest.approx(np.log(0.7 / 0.2))


def test_polynomials_that_differ_by_a_factor_are_counted_together():
    # Half of the successes of a pool of two carry the same information on π as all of them.
    context = np.array([[0.0, 1.0, 1.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    evidence = evidence_of(context, np.array([True, True, True]))
    assert sorted(evidence.polynomials) == [(0.0, 1.0, 1.0), (1.0, 0.0, 1.0)]
    again = evidence_of(context[:1], np.array([True]), known=evidence.polynomials)
    assert again.polynomials == evidence.polynomials


# Mean sharing.


@settings(max_examples=100)
@given(experiments(rows=affine), st.sampled_from([(1.0, 1.0), (0.5, 2.0)]))
def test_mean_sums_are_trials_that_all_have_the_mean_context(experiment, prior):
    context, success = experiment
    there = teaches(context)
    # Without any trials there is no mean.
    mean = context[there].mean(axis=0) if there.any() else np.array([0.0, 1.0])
    assert_same_distribution(
        read(context, success, "mean", prior), exact_mixture(mean, success[there], prior)
    )


@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize("share", ["exact", "mean"])
@pytest.mark.parametrize(
    "context", [(1e-9, 2e-9), (1e-5, 3e-5), (1 - 1e-12, 1.0), (0.0, 1e-12), (1 - 3e-5, 1 - 1e-5)]
)
@pytest.mark.parametrize("last", [False, True])
def test_contexts_near_certainty_are_read_right(context, share, n, last):
    success = np.arange(n) % 2 == (n - 1) % 2 if last else np.arange(n) % 2 == n % 2
    assert_same_distribution(
        read(np.array([context] * n), success, share), exact_mixture(context, success), 1e-5
    )


# Sums add up.


def as_dict(evidence):
    """Return the sums by meaning, whatever their order."""
    sums, decoder = window_of(evidence)
    counts = np.zeros(4, dtype=np.int64)
    counts[: min(4, decoder.width)] = sums[0, : min(4, decoder.width)]
    found = {("count", i): n for i, n in enumerate(counts.tolist())}
    for i, row in enumerate(decoder.polynomials):
        found[row] = tuple(sums[0, columns.OTHERS + 2 * i :][:2].tolist())
    for j, n in enumerate(sums[0, decoder.width :].tolist()):
        found["point", decoder.span[0] + j] = n
    return {key: n for key, n in found.items() if np.any(n)}


def test_other_evidence_has_other_sums():
    context = [(0.25, 1.0), (0.0, 1.0), (0.1, 0.9)]
    found = as_dict(evidence_of(context, np.array([True, False, True])))
    assert found
    assert found == as_dict(evidence_of(context[::-1], np.array([True, False, True])))
    assert found != as_dict(evidence_of(context, np.array([True, True, True])))
    assert found != as_dict(evidence_of([(0.25, 1.0)] * 3, np.array([True, False, True])))


@settings(max_examples=60)
@given(experiments(), st.data())
def test_the_sums_of_two_sets_of_trials_are_the_sums_of_all(experiment, data):
    context, success = experiment
    t = len(success)
    sizes = st.sampled_from([1.0, 2.0, 3.0, 0.5, 0.1, 2.7])
    weight = np.array(data.draw(st.lists(sizes, min_size=t, max_size=t)))
    mine = np.array(data.draw(st.lists(st.booleans(), min_size=t, max_size=t)))
    parts = [
        evidence_of(context[rows], success[rows], weight=weight[rows])
        for rows in (mine, ~mine)
        if rows.any()
    ]
    together = evidence_of(context, success, weight=weight)
    added = {}
    for part in map(as_dict, parts):
        for key, n in part.items():
            added[key] = np.add(added[key], n).tolist() if key in added else np.array(n).tolist()
    added = {key: n for key, n in added.items() if np.any(n)}
    assert added == {key: np.array(n).tolist() for key, n in as_dict(together).items()}
    assert together.totals == Totals().plus(parts[0].totals).plus(
        parts[1].totals if len(parts) > 1 else Totals()
    )


@pytest.mark.parametrize("share", ["exact", "mean"])
def test_a_whole_weight_adds_what_as_many_trials_add(share):
    rng = np.random.default_rng(0)
    context, success = rng.uniform(size=(50, 2)), rng.uniform(size=50) < 0.5
    weight = rng.integers(1, 5, size=50)
    one = evidence_of(context, success, share, weight.astype(float))
    many = evidence_of(np.repeat(context, weight, axis=0), np.repeat(success, weight), share)
    np.testing.assert_array_equal(window_of(one, share)[0], window_of(many, share)[0])
    assert one.totals == many.totals


def test_evidence_says_how_many_trials_each_row_stands_for():
    context = contexts.elevate([(0.0, 1.0), (0.2, 0.9), (0.0, 1.0)], 2)
    context = np.vstack([context, [0.0, 1.0, 1.0]])
    weight = np.array([2.0, 0.75, 3.5, 1.25])
    evidence = evidence_of(context, np.ones(4, dtype=bool), weight=weight)
    np.testing.assert_allclose(evidence.weights(2), weight[evidence.rows], rtol=1e-9)


def test_a_window_holds_as_many_trials_as_were_deposited():
    context = np.vstack([contexts.elevate([(0.0, 1.0), (0.2, 0.9)], 2), [0.0, 1.0, 1.0]])
    evidence = evidence_of(context, np.array([True, False, True]), weight=np.array([2, 0.5, 1.5]))
    sums, decoder = window_of(evidence)
    assert decoder.size(sums).tolist() == [4.0]


# Totals.


def test_seen_tells_what_distortion_leaves_of_a_trial():
    context = np.array([[0.2, 1.0], [0.4, 1.0], [0.9, 0.3]])
    seen = evidence_of(context, np.array([True, True, False])).totals
    # Lower ends 0.2, 0.4 and 0.3; upper ends 1, 1 and 0.9.
    assert seen.number() == 3
    assert seen.share() == pytest.approx(1 - 0.3, abs=1e-9)


def test_seen_is_exact_for_numbers_beyond_floats():
    context, held = np.array([[0.1, 0.7]]), 2**33 - 1
    one, all_ = (
        encode.distorted(np.array([[0], [n]]), None, context, "exact").totals for n in (1, held)
    )
    assert all_ == Totals(*(held * part for part in one))


# Leaving out.


def predicted(context, success, i, share):
    """Return log P(outcome i | all other trials), by integration."""
    rest = np.arange(len(success)) != i
    others = context[rest]
    if share == "mean" and rest.any():
        others = np.broadcast_to(others.mean(axis=0), others.shape)
    row = context[i] if success[i] else 1 - context[i]
    chance = lambda theta: contexts.probability(row, theta)
    return np.log(integral(chance, others, success[rest], np.ones(rest.sum())))


@pytest.mark.parametrize("share", ["exact", "mean"])
@settings(max_examples=40)
@given(st.data())
def test_a_trial_left_out_is_predicted_by_the_others(share, data):
    rows = affine if share == "mean" else affine | polynomial
    context, success = data.draw(experiments(rows=rows, most=10))
    context, success = context[teaches(context)], success[teaches(context)]
    if not len(success):
        return
    evidence = evidence_of(context, success, share)
    sums, decoder = window_of(evidence, share)
    if decoder.is_plain:
        return
    # Each at its own place, and all within each other's window.
    axes = evidence.rows[None].astype(float)
    out = decoder.left_out(Places(axes, evidence.counts, evidence.shifts))
    t = len(success)
    scores = decoder.log_scores(out, np.repeat(sums, t, axis=0), np.ones((t, 2)))
    found = np.empty(t)
    found[evidence.rows[out.place]] = scores
    expected = np.array([predicted(context, success, i, share) for i in range(t)])
    # Up to a factor of the likelihood that does not depend on the others.
    alone = [decoder.log_scores(*alone_in_its_window(out, i)) for i in range(len(out.place))]
    factor = np.empty(t)
    factor[evidence.rows[out.place]] = np.concatenate(alone)
    factor -= [predicted(context[[i]], success[[i]], 0, share) for i in range(t)]
    np.testing.assert_allclose(found - factor, expected, rtol=0, atol=1e-6)


def alone_in_its_window(out, i):
    """Return the trial, and the sums of a window that contains nothing else."""
    one = decode.LeftOut(np.zeros(1, dtype=np.int64), *(part[i : i + 1] for part in out[1:]))
    return one, one.own.copy(), np.ones((1, 2))


def test_of_a_place_of_many_trials_one_is_left_out_and_all_are_scored():
    outcome = np.array([[3], [5]])
    evidence = encode.distorted(outcome, None, np.array([[0.2, 0.9]]), "exact")
    sums, decoder = window_of(evidence)
    out = decoder.left_out(
        Places(np.zeros((1, len(evidence.rows))), evidence.counts, evidence.shifts)
    )
    assert sorted(out.weight.tolist()) == [3.0, 5.0]
    np.testing.assert_array_equal(out.own.sum(axis=1), [lattice.UNIT] * 2)
    assert decoder.size(sums).tolist() == [8.0]


# Many polynomials.


def test_as_many_polynomials_as_trials_are_counted_apart():
    rng = np.random.default_rng(0)
    context = rng.uniform(size=(1500, 3))
    success = rng.uniform(size=1500) < contexts.probability(context, 0.3)
    assert_same_distribution(read(context, success), exact_mixture(context, success))


def test_too_many_polynomials_are_refused():
    context = np.array([[0.0, k / 8, 1.0] for k in range(1, 5) if k != 4])
    known = evidence_of(context, np.ones(3, dtype=bool), most=3).polynomials
    with pytest.raises(ValueError, match=r"found 4 distinct polynomials.*at most 3 can be counted"):
        evidence_of([[0.0, 0.9, 1.0]], np.array([True]), known=known, most=3)
