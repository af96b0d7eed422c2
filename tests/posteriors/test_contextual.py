"""Contextual posteriors against the recursion, Arb, closed forms, and under invariances."""

import math
import subprocess
import sys

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from betafield import contexts, lattice
from betafield.posteriors.beta import Beta
from betafield.posteriors.contextual import Contextual
from betafield.posteriors.quadrature import layout, tables
from betafield.posteriors.reference import exact_mixture

FIRST, COLUMNS = -170, 341
LEVELS = np.array([1e-6, 0.001, 0.025, 0.3, 0.5, 0.8, 0.975, 0.999])[:, None]
PRIORS = [(1.0, 1.0), (0.01, 0.01), (0.5, 0.5), (30.0, 30.0), (0.3, 7.0)]


def few(examples):
    """Limit the number of generated cases, unless the profile has fewer."""
    return settings(max_examples=min(examples, settings.default.max_examples))


def deposited(likelihood, prior, counts=None):
    """Return alpha, beta and a row of amounts: certain trials apart, others on the lattice."""
    counts = np.ones(len(likelihood)) if counts is None else counts
    low, high = likelihood.T
    mixed = (low > 0.0) & (high > 0.0)
    shifts = lattice.shift(likelihood[mixed])
    columns = lattice.position(shifts)[:, None] + np.arange(lattice.POINTS) - FIRST
    amounts = np.zeros(COLUMNS)
    np.add.at(amounts, columns, lattice.weights(shifts) / lattice.UNIT * counts[mixed][:, None])
    return prior[0] + counts[low == 0.0].sum(), prior[1] + counts[high == 0.0].sum(), amounts


def on_the_lattice(likelihood, prior, counts=None):
    alpha, beta, amounts = deposited(likelihood, prior, counts)
    return Contextual([alpha], [beta], amounts=[amounts], first=FIRST)


def with_shifts(likelihood, prior):
    low, high = likelihood.T
    mixed = (low > 0.0) & (high > 0.0)
    shifts = np.log(high[mixed]) - np.log(low[mixed])
    return Contextual(
        [prior[0] + (low == 0.0).sum()],
        [prior[1] + (high == 0.0).sum()],
        shifts=[shifts],
        trials=[np.ones(len(shifts))],
    )


def assert_same(post, truth, tolerance):
    """Expect equal moments, tails and quantiles, in standard deviations or probability."""
    std = truth.std()
    assert np.all(np.abs(post.mean() - truth.mean()) < tolerance * std)
    assert np.all(np.abs(post.std() / std - 1.0) < tolerance)
    points = truth.ppf(LEVELS)
    # Far out the density is low, so the same error of a probability moves a quantile farther.
    slack = np.where(LEVELS < 1e-3, 1000.0, 10.0) * tolerance * std
    assert np.all(np.abs(post.ppf(LEVELS) - points) < slack)
    assert np.abs(post.cdf(points) - truth.cdf(points)).max() < tolerance
    assert np.abs(post.prob_above(points) - truth.prob_above(points)).max() < tolerance
    for row, column in enumerate(points.T):
        inner = column[(column > 1e-9) & (column < 1.0 - 1e-9)][:, None]
        assert inner.size
        np.testing.assert_allclose(
            post.pdf(inner)[:, row], truth.pdf(inner)[:, row], rtol=100.0 * tolerance
        )


@pytest.mark.parametrize("other", [(2.0, 3.001), (2.001, 3.0015)], ids=["mean", "spread"])
def test_other_distributions_are_told_apart(other):
    assert_same(Beta([2.0], [3.0]), Beta([2.0], [3.0]), 1e-6)
    with pytest.raises(AssertionError):
        assert_same(Beta([2.0], [3.0]), Beta([other[0]], [other[1]]), 1e-6)


# Affine contexts against the recursion ------------------------------------------------------


def mixed(rng, t):
    return rng.uniform(size=(t, 2))


def edges(rng, t):
    """Return contexts with B = 0, A + B = 1, A = 0, A < 0, and any."""
    low, high = rng.uniform(size=(2, t))
    kind = rng.integers(5, size=t)
    low = np.select([kind == 0], [0.0], low)
    high = np.select([kind == 1, kind == 2, kind == 3], [1.0, low, low * high], high)
    return np.column_stack([low, high])


def tiny(rng, t):
    return np.column_stack([10.0 ** rng.uniform(-17.0, 0.0, t), rng.uniform(size=t)])


def nearly_nothing(rng, t):
    low = rng.uniform(0.1, 0.9, size=t)
    return np.column_stack([low, low * (1.0 + 0.01 * rng.normal(size=t))])


def negative(rng, t):
    return np.column_stack([np.ones(t), rng.uniform(size=t)])


@pytest.mark.sampled
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("make", [mixed, edges, tiny, nearly_nothing, negative])
@pytest.mark.parametrize("numbers", [(1, 3, 20, 150), pytest.param((600,), marks=pytest.mark.long)])
def test_affine_contexts_are_those_of_the_recursion(make, prior, numbers):
    rng = np.random.default_rng(3)
    for t in numbers:
        context = make(rng, t)
        success = rng.uniform(size=t) < contexts.probability(context, rng.uniform())
        truth = exact_mixture(context, success, prior)
        likelihood = contexts.likelihood(context, success)
        assert_same(on_the_lattice(likelihood, prior), truth, 2e-7)
        assert_same(with_shifts(likelihood, prior), truth, 1e-8)


@pytest.mark.long
def test_thousands_of_trials():
    rng = np.random.default_rng(11)
    context = mixed(rng, 5000)
    success = rng.uniform(size=5000) < contexts.probability(context, 0.2)
    truth = exact_mixture(context, success)
    likelihood = contexts.likelihood(context, success)
    assert_same(on_the_lattice(likelihood, (1.0, 1.0)), truth, 5e-7)
    assert_same(with_shifts(likelihood, (1.0, 1.0)), truth, 1e-8)


@pytest.mark.parametrize("shift", [-40.0, -17.3, -1e-3, 0.0, 2.6, 40.0])
@pytest.mark.parametrize("trials", [1, 30, 1000])
def test_one_shift_on_the_lattice_and_off_it(shift, trials):
    likelihood = np.exp([[min(-shift, 0.0), min(shift, 0.0)]])
    free = Contextual([2.0], [3.0], shifts=[[shift]], trials=[[trials]])
    lattices = on_the_lattice(likelihood, (2.0, 3.0), np.array([float(trials)]))
    # The weights of equal trials are all rounded to the same side.
    assert_same(lattices, free, 2e-7 + 2e-9 * trials)


@pytest.mark.parametrize("trials", [5, 200, 10_000])
@pytest.mark.parametrize(("low", "high"), [(0.2, 0.9), (0.8, 0.1), (0.5, 1.0), (0.3, 0.31)])
def test_constant_context_is_a_truncated_beta(low, high, trials):
    """Under a uniform prior q = low + (high − low) π is a Beta truncated to [low, high]."""
    wins = int(trials * (low + 0.4 * (high - low)))
    one, zero = (np.log(high / low), np.log((1 - high) / (1 - low)) if high < 1 else -np.inf)
    losses = trials - wins
    if high < 1:
        post = Contextual([1.0], [1.0], shifts=[[one, zero]], trials=[[wins, losses]])
    else:
        post = Contextual([1.0], [1.0 + losses], shifts=[[one]], trials=[[wins]])
    whole = Beta([wins + 1.0], [losses + 1.0])
    p = np.linspace(0.02, 0.98, 25)[:, None]
    inside = whole.cdf(high) - whole.cdf(low)
    truth = (whole.cdf(low + (high - low) * p) - whole.cdf(low)) / inside
    np.testing.assert_allclose(post.cdf(p), truth, rtol=0, atol=1e-8)
    shifted = Beta([wins + 2.0], [losses + 1.0])
    mean = (wins + 1) / (trials + 2) * (shifted.cdf(high) - shifted.cdf(low)) / inside
    np.testing.assert_allclose(post.mean(), (mean - low) / (high - low), rtol=0, atol=1e-9)


# Narrow posteriors against Arb --------------------------------------------------------------


def log_likelihood(rates, counts, theta):
    """Return log θ³ (1−θ) Π (l₀ (1−θ) + l₁ θ)^count, in Arb."""
    theta = arb(theta)
    value = 3 * theta.log() + (1 - theta).log()
    for (l0, l1), count in zip(rates.tolist(), counts.tolist(), strict=True):
        value += count * (arb(l0) * (1 - theta) + arb(l1) * theta).log()
    return value


def weighed(rates, counts, low, high, peak):
    """Return Gauss's nodes between low and high, and their masses relative to that at `peak`."""
    ctx.prec = 120
    nodes, weights = np.polynomial.legendre.leggauss(120)
    theta, top = low + (high - low) * (nodes + 1.0) / 2.0, log_likelihood(rates, counts, peak)
    logs = [float(log_likelihood(rates, counts, x) - top) for x in theta.tolist()]
    return theta, np.exp(logs) * weights * (high - low)


@pytest.mark.parametrize("trials", [10_000, 1_000_000, 10_000_000])
@pytest.mark.parametrize("theta", [0.03, 0.6])
def test_narrow_posteriors_are_those_of_arb(trials, theta):
    rates = np.array([[0.2, 0.9], [0.7, 0.65], [0.05, 0.4], [0.9, 0.3]])
    wins = np.round(trials / 4 * contexts.probability(rates, theta))
    rates, counts = np.concatenate([rates, 1 - rates]), np.append(wins, trials / 4 - wins)
    free = Contextual([4.0], [2.0], shifts=[np.log(rates[:, 1] / rates[:, 0])], trials=[counts])
    deposit = on_the_lattice(rates, (4.0, 2.0), counts)
    # Only to choose the range: there is nothing beyond 9 standard deviations.
    mean, std = free.mean()[0], free.std()[0]
    low, high, point = max(mean - 9 * std, 0.0), mean + 9 * std, mean - 0.7 * std
    x, mass = weighed(rates, counts, low, high, mean)
    true_mean = (mass * (x - mean)).sum() / mass.sum()  # relative to `mean`
    true_std = np.sqrt((mass * (x - mean - true_mean) ** 2).sum() / mass.sum())
    below = weighed(rates, counts, low, point, mean)[1].sum() / mass.sum()
    # The slope of a trial on the lattice has an error of some 1e-8; a deviation is 1/√n.
    for post, tolerance in ((free, 2e-8), (deposit, 1e-7 + 3e-8 * np.sqrt(trials))):
        assert abs(post.mean()[0] - mean - true_mean) < tolerance * true_std
        assert post.std()[0] == pytest.approx(true_std, rel=tolerance)
        assert post.cdf(point)[0] == pytest.approx(below, abs=tolerance)
        assert abs(post.ppf(below)[0] - point) < 5 * tolerance * true_std


# Polynomials --------------------------------------------------------------------------------


def counted(context, success, prior):
    """Return a row of polynomials: each distinct likelihood once, and how often it occurs."""
    rows = contexts.likelihood(context, success)
    distinct, repeats = np.unique(rows, axis=0, return_counts=True)
    return Contextual([prior[0]], [prior[1]], polynomials=distinct, repeats=[repeats.astype(float)])


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(
    "rows",
    [
        [contexts.pooled(5)],
        [contexts.pooled(12)],
        [[0.05, 0.95, 0.95, 0.95], [0.1, 0.3, 0.9, 0.9]],
        [[0.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.5, 0.0]],
        [[0.5, 0.0, 0.5]],
    ],
    ids=["pools of 5", "pools of 12", "errors", "zeros", "two modes"],
)
@pytest.mark.sampled
def test_polynomials_are_those_of_the_recursion(rows, prior):
    rng = np.random.default_rng(5)
    for t in (1, 12, 80):
        context = np.array(rows)[rng.integers(len(rows), size=t)]
        success = rng.uniform(size=t) < contexts.probability(context, 0.15)
        assert_same(counted(context, success, prior), exact_mixture(context, success, prior), 1e-7)


@pytest.mark.parametrize("t", [4, 40, 400, pytest.param(3000, marks=pytest.mark.long)])
def test_two_modes_apart(t):
    """Equally many successes and failures imply that π is near 0 or near 1, and not between."""
    success = np.arange(t) % 2 == 0
    context = np.tile([0.5, 0.0, 0.5], (t, 1))
    truth = exact_mixture(context, success, (3.0, 3.05))
    assert_same(counted(context, success, (3.0, 3.05)), truth, 1e-7)


def test_all_parts_together():
    rng = np.random.default_rng(8)
    pools, affine = np.tile(contexts.pooled(4), (30, 1)), mixed(rng, 60)
    positive = rng.uniform(size=30) < contexts.probability(pools, 0.3)
    success = rng.uniform(size=60) < contexts.probability(affine, 0.3)
    everything = np.concatenate([pools, contexts.elevate(affine, 4)])
    truth = exact_mixture(everything, np.append(positive, success), (2.0, 1.0))
    likelihood = contexts.likelihood(affine, success)
    alpha, beta, amounts = deposited(likelihood[:40], (2.0, 1.0))
    last = likelihood[40:]
    post = Contextual(
        [alpha],
        [beta],
        amounts=[amounts],
        first=FIRST,
        shifts=[np.log(last[:, 1] / last[:, 0])],
        trials=[np.ones(20)],
        polynomials=contexts.likelihood(pools[:2], [True, False]),
        repeats=[[positive.sum(), (~positive).sum()]],
    )
    assert_same(post, truth, 1e-7)


# Betas --------------------------------------------------------------------------------------

SHAPES = np.array([0.01, 0.5, 1.0, 3.0, 30.0, 1e3, 1e6, 1e9])
ALPHA, BETA = (grid.ravel() for grid in np.meshgrid(SHAPES, SHAPES))


def test_no_trials_leave_a_beta():
    post, truth = Contextual(ALPHA, BETA), Beta(ALPHA, BETA)
    assert np.all(np.abs(post.mean() - truth.mean()) < 1e-10 * truth.std() + 3e-16)
    np.testing.assert_allclose(post.std(), truth.std(), rtol=1e-10)
    points = truth.ppf(LEVELS)
    np.testing.assert_allclose(post.cdf(points), truth.cdf(points), rtol=0, atol=1e-8)
    slack = np.where(LEVELS < 1e-3, 1e-5, 1e-7) * truth.std() + 3e-16
    assert np.all(np.abs(post.ppf(LEVELS) - points) < slack)


@pytest.mark.parametrize("p", [0, 1, 2, 7, 40])
def test_bernstein_moments_are_those_of_betas(p):
    alpha, beta = (shapes[(ALPHA < 2e3) & (BETA < 2e3)] for shapes in (ALPHA, BETA))
    post = Contextual(alpha, beta)
    truth = stats.betabinom.pmf(np.arange(p + 1), p, alpha[:, None], beta[:, None])
    np.testing.assert_allclose(post.moments(p), truth, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(post.moments(p).sum(axis=1), 1.0, rtol=1e-12)


def test_first_bernstein_moment_is_the_mean():
    post = Contextual([1.0], [2.0], shifts=[[0.8, -0.3]], trials=[[20.0, 9.0]])
    np.testing.assert_allclose(post.moments(1)[:, 1], post.mean(), rtol=1e-14)
    first, second = post.mean(), post.var() + post.mean() ** 2
    np.testing.assert_allclose(post.moments(2)[:, 2], second, rtol=1e-12)
    np.testing.assert_allclose(post.moments(2)[:, 1], 2 * (first - second), rtol=1e-12)


def test_density_at_the_ends():
    post = Contextual([0.5, 1.0, 2.0], [1.0, 1.0, 0.5])
    np.testing.assert_allclose(post.pdf(0.0), [np.inf, 1.0, 0.0], rtol=1e-9)
    np.testing.assert_allclose(post.pdf(1.0), [0.5, 1.0, np.inf], rtol=1e-9)
    pools = Contextual([1.0], [1.0], polynomials=[[0.0, 1.0, 1.0]], repeats=[[1.0]])
    np.testing.assert_allclose(pools.pdf([0.0, 0.5, 1.0][:1]), [0.0])
    np.testing.assert_allclose(pools.pdf(1.0), [1.5], rtol=1e-8)  # ∝ 1 − (1−π)², of mean 2/3


def test_quantiles_nearer_to_the_ends_than_any_float():
    post = Contextual([1e-3], [1e-3])
    assert post.ppf(0.2) == 0.0
    assert post.ppf(0.8) == 1.0
    np.testing.assert_allclose(post.cdf(1e-300), Beta([1e-3], [1e-3]).cdf(1e-300), rtol=1e-7)


# Invariances, and properties of every distribution --------------------------------------------

shapes = st.sampled_from([0.01, 0.5, 1.0, 2.0, 30.0, 1e5])


@st.composite
def posteriors(draw, rows=1):
    """Draw arguments of rows with trials of every kind, from none to millions."""
    alpha = np.array(draw(st.lists(shapes, min_size=rows, max_size=rows)))
    beta = np.array(draw(st.lists(shapes, min_size=rows, max_size=rows)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    amounts = np.zeros((rows, COLUMNS))
    for row in range(rows):
        t, scale = draw(st.sampled_from([0, 1, 5, 60])), draw(st.sampled_from([1.0, 40.0, 1e5]))
        likelihood = np.exp(-rng.exponential(size=(t, 2)) * rng.uniform(0.0, 8.0))
        amounts[row] = scale * deposited(likelihood, (1.0, 1.0))[2]
    k = draw(st.integers(0, 2))
    polynomials = rng.uniform(size=(k, 4)) * (rng.uniform(size=(k, 4)) < 0.7)
    polynomials[:, 1] += 0.1
    return {
        "alpha": alpha,
        "beta": beta,
        "amounts": amounts,
        "first": FIRST,
        "shifts": rng.normal(size=(rows, 2)) * 5.0,
        "trials": rng.integers(0, 20, size=(rows, 2)).astype(float),
        "polynomials": polynomials if k else None,
        "repeats": rng.integers(0, 20, size=(rows, k)).astype(float) if k else None,
    }


def mirrored(arguments):
    """Return the arguments for 1 − θ: φ(u + s) − φ(u) becomes φ(u − s) − φ(u), plus a constant."""
    other = dict(arguments)
    other["alpha"], other["beta"] = arguments["beta"], arguments["alpha"]
    other["amounts"] = arguments["amounts"][:, ::-1]
    other["first"] = -(FIRST + COLUMNS - 1)
    other["shifts"] = -arguments["shifts"]
    if arguments["polynomials"] is not None:
        other["polynomials"] = arguments["polynomials"][:, ::-1]
    return other


def answers(post):
    points = np.array([1e-9, 0.1, 0.5, 0.83, 1.0 - 1e-6])[:, None]
    grid = [post.cdf(points), post.prob_above(points), post.pdf(points), post.ppf(LEVELS)]
    return np.concatenate([post.mean()[None], post.var()[None], post.moments(3).T, *grid])


def test_other_posteriors_answer_otherwise():
    one, same, other = (
        Contextual([2.0], [3.0], shifts=[[s]], trials=[[1.0]]) for s in (0.5, 0.5, 0.6)
    )
    assert np.array_equal(answers(one), answers(same))
    assert np.mean(answers(one) != answers(other)) > 0.9


@few(25)
@given(posteriors(rows=3))
def test_rows_do_not_know_each_other(arguments):
    post = Contextual(**arguments)
    together = answers(post)
    for row in range(3):
        np.testing.assert_array_equal(answers(post[row]), together[:, row : row + 1])
    np.testing.assert_array_equal(answers(post[[2, 0]]), together[:, [2, 0]])


@few(25)
@given(posteriors(), st.integers(0, 30), st.integers(0, 30))
def test_columns_of_zeros_change_nothing(arguments, before, after):
    wider = dict(arguments, first=FIRST - before)
    wider["amounts"] = np.pad(arguments["amounts"], [(0, 0), (before, after)])
    np.testing.assert_array_equal(answers(Contextual(**wider)), answers(Contextual(**arguments)))


@few(60)
@given(posteriors())
def test_mirrored_arguments_mirror_the_posterior(arguments):
    post, other = Contextual(**arguments), Contextual(**mirrored(arguments))
    std = post.std()
    # Numbers are rounded to 1e-16 near 1, whatever the standard deviation.
    slack = 1e-9 * std + 4e-16
    assert np.all(np.abs(post.mean() - (1.0 - other.mean())) < slack)
    np.testing.assert_allclose(other.std(), std, rtol=1e-8, atol=1e-15)
    points = np.arange(1, 16)[:, None] / 16
    np.testing.assert_allclose(post.cdf(points), other.prob_above(1.0 - points), atol=1e-9)
    halves = np.array([[0.25], [0.5], [0.75]])
    assert np.all(np.abs(post.ppf(halves) - (1.0 - other.ppf(1.0 - halves))) < 1e-7 * std + 4e-16)


@few(60)
@given(posteriors())
def test_tails_and_quantiles_are_those_of_a_distribution(arguments):
    post = Contextual(**arguments)
    q = np.concatenate([[0.0], np.logspace(-20, -2, 30), np.linspace(0.01, 1.0, 60)])[:, None]
    p = post.ppf(q)
    assert p[0] == 0.0
    assert p[-1] == 1.0
    assert np.all(np.diff(p, axis=0) >= 0.0)
    points = np.sort(np.concatenate([p[:, 0], np.linspace(0.0, 1.0, 41)]))[:, None]
    lower, upper = post.cdf(points), post.prob_above(points)
    assert lower.min() >= 0.0
    assert upper.min() >= 0.0
    assert max(lower.max(), upper.max()) <= 1.0
    assert np.all(np.diff(lower, axis=0) >= -1e-13)
    assert np.all(np.diff(upper, axis=0) <= 1e-13)
    np.testing.assert_allclose(lower + upper, 1.0, rtol=1e-8)
    low, high = post.interval(1e-9)
    assert low <= high
    assert np.isfinite([post.mean(), post.var()]).all()


@few(60)
@given(posteriors())
def test_cdf_takes_quantiles_back(arguments):
    post = Contextual(**arguments)
    q = np.array([1e-9, 1e-3, 0.2, 0.5, 0.7, 0.99])[:, None]
    p = post.ppf(q)
    below, above = post.cdf(np.nextafter(p, -1.0)), post.cdf(np.nextafter(p, 2.0))
    assert np.all(below <= q * (1 + 1e-7) + 1e-14)
    assert np.all(above >= q * (1 - 1e-7) - 1e-14)


def test_samples_follow_the_cdf():
    post = Contextual([1.0, 2.0], [1.0, 0.5], shifts=[[1.5], [-2.0]], trials=[[40.0], [7.0]])
    draws = post.sample(20_000, random_state=3)
    assert draws.shape == (20_000, 2)
    for row in range(2):
        fit = stats.kstest(draws[:, row], lambda p, row=row: post[row].cdf(p[:, None])[:, 0])
        assert fit.pvalue > 0.01


def test_arguments_broadcast_like_arrays():
    post = Contextual([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    grid = post.cdf([[0.2], [0.6]])
    assert grid.shape == (2, 3)
    np.testing.assert_array_equal(post.cdf([0.2, 0.6, 0.2]), [grid[0, 0], grid[1, 1], grid[0, 2]])
    assert post.ppf(np.full((2, 4, 1), 0.5)).shape == (2, 4, 3)


def test_no_rows():
    post = Contextual([], [])
    assert post.mean().shape == post.ppf(0.5).shape == post.sample(random_state=0).shape == (0,)
    assert post.moments(2).shape == (0, 3)
    assert repr(post) == "<Contextual, shape 0>"


def test_importing_compiles_nothing():
    code = "import sys, betafield.posteriors.contextual; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": [0.0]}, "alpha row 0: found 0.0; shapes must be positive and finite"),
        ({"beta": [1.0, 2.0]}, "beta: found 2 rows; alpha has 1"),
        ({"amounts": [1.0]}, r"amounts: found shape \(1,\); \(1, columns\) is needed"),
        (
            {"amounts": [[np.nan]]},
            "amounts row 0, column 0: found NaN; every value must be a finite",
        ),
        (
            {"amounts": [[1.0]], "first": 300},
            "first: found 300; with 1 columns a whole number from -256 to 256",
        ),
        ({"shifts": [[1.0]]}, "trials: found 0 columns; shifts count 1"),
        (
            {"shifts": [[np.inf]], "trials": [[1.0]]},
            "shifts row 0, column 0: found inf; every value must be a finite",
        ),
        ({"repeats": [[1.0]]}, "repeats: found 1 columns; polynomials count 0"),
        (
            {"polynomials": [[0.0, 0.0]], "repeats": [[1.0]]},
            r"polynomials row 0: found array\(\[0., 0.\]\); one coefficient",
        ),
        (
            {"polynomials": [[0.0, -1.0]], "repeats": [[1.0]]},
            "polynomials row 0, column 1: found -1.0; coe",
        ),
        ({"polynomials": [1.0], "repeats": [[1.0]]}, r"polynomials: found shape \(1,\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Contextual(**({"alpha": [1.0], "beta": [1.0]} | arguments))


def test_no_number_of_polynomials_is_learned_anew_at_every_question():
    """The arrays that kernels need of polynomials are cached."""
    rng = np.random.default_rng(0)
    for n in (1, 10, 5_000):
        polynomials = np.sort(rng.random((n, 4)), axis=1)
        first = tables.powers(polynomials)
        assert tables.powers(polynomials.copy()) is first


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=5, max_size=5).filter(any), min_size=1, max_size=9)
)
def test_polynomials_are_prepared_alone_as_among_others(rows):
    rows = np.array(rows)
    among = tables.powers(rows)
    for k, row in enumerate(rows):
        assert tables.powers(row[None]).tobytes() == among[k].tobytes()


@given(st.lists(st.floats(1e-3, 1), min_size=3, max_size=8))
def test_prepared_polynomials_are_what_numpy_says(row):
    head = tables.powers(np.array([row]))[0]
    p = len(row) - 1
    weights = np.array([math.comb(p, k) * b for k, b in enumerate(row)])
    assert head[:4].tolist() == [0, 0, p, p]
    nearest = np.abs(np.angle(np.roots(weights[::-1]))).min()
    assert head[4] == pytest.approx(max(nearest, math.pi / p), abs=0.03)  # of equal roots
    assert head[5 : 6 + p] == pytest.approx(weights / weights.max(), rel=1e-12)
    slope = (np.arange(p + 1) @ weights) / weights.sum()  # at u = 0
    assert head[-layout.KNOWN_SLOPES :][layout.CELLS + 1] == pytest.approx(slope, rel=1e-12)
