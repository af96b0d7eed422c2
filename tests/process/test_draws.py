"""Fields drawn from the joint posterior, against quadrature, slice sampling and closed forms."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from betafield import SmoothBetaClassifier, contexts, load
from betafield.posteriors import LatentNormal
from betafield.process import ensemble
from betafield.process.basis import Prior
from betafield.process.design import matrix
from betafield.process.draws import Fields, drawn, proposed, systematic
from betafield.process.fit import Problem, settled
from betafield.process.likelihood import log_likelihoods, read
from betafield.process.links import LOGIT, SOFT
from betafield.process.noise import Noise, Seed
from betafield.process.rows import gather
from betafield.process.sampling import effective, log_targets, tempered, truncated

SEED = Seed((1, 2, 3))


def trials(n, seed=0, d=1):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, rng.random(n) < 0.15 + 0.7 * np.sin(2.5 * X[:, 0]) ** 2


def one_member(rows, link, theta):
    """Return the ensemble's central member, for a process with these hyper-parameters."""
    fit = settled(Problem(rows, link, Prior(link.scale, float(rows.n.sum()))), np.asarray(theta))
    return next(iter(ensemble.of_fit(fit, 0)))


# Exact answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("link", [LOGIT, SOFT])
@pytest.mark.parametrize("context", [None, np.array([0.5, 0.98])])
def test_a_field_at_one_place_has_the_law_of_quadrature(link, context):
    """With all trials at one place, f there is one number, whose posterior is an integral."""
    rows = gather(np.array([[0.5]]), np.array([12]), np.array([11]), context)
    member = one_member(rows, link, [np.log(link.scale), np.log(0.5)])
    size = 40_000
    each = drawn((member,), size, np.random.default_rng(0))[0]
    phi = matrix(member.mode.basis, rows.x)[0]
    found = link.value((phi @ each.b)[each.copies])
    s = np.sqrt(phi @ phi)
    f = np.linspace(-12 * s, 12 * s, 20_001)
    log = log_likelihoods(f[None], rows, link) + stats.norm.logpdf(f / s)
    density = np.exp(log - log.max())
    density /= integrate.simpson(density, x=f)
    mean = integrate.simpson(density * link.value(f), x=f)
    var = integrate.simpson(density * (link.value(f) - mean) ** 2, x=f)
    # Importance weights leave an effective sample of at least a tenth of the draws.
    assert found.mean() == pytest.approx(mean, abs=5 * np.sqrt(var / (0.1 * size)))
    assert found.std() == pytest.approx(np.sqrt(var), rel=0.05)
    cdf = integrate.cumulative_simpson(density, x=f, initial=0.0)
    for q in (0.025, 0.25, 0.5, 0.75, 0.975):
        exact = link.value(np.array([f[np.searchsorted(cdf, q)]]))[0]
        assert (found <= exact).mean() == pytest.approx(q, abs=0.03)


def slice_sampled(rows, link, phi, steps, rng):
    """Return coefficients by elliptical slice sampling (Murray, Adams, MacKay 2010)."""
    b, out = np.zeros(phi.shape[1]), []

    def log(b):
        return log_likelihoods((phi @ b)[:, None], rows, link)[0]

    for _ in range(steps):
        other, level = rng.standard_normal(len(b)), log(b) + np.log(rng.random())
        angle = rng.uniform(0.0, 2.0 * np.pi)
        low, high = angle - 2.0 * np.pi, angle
        while True:
            new = b * np.cos(angle) + other * np.sin(angle)
            if log(new) > level:
                break
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)
        b = new
        out.append(b)
    return np.array(out).T


@pytest.mark.parametrize("link", [LOGIT, pytest.param(SOFT, marks=pytest.mark.long)])
def test_draws_agree_with_slice_sampling(link):
    """Under guesses, where Laplace's approximation is too symmetric."""
    X, y = trials(60, 3)
    chance = np.array([0.5, 1.0])
    y = y | (np.random.default_rng(4).random(60) < 0.5)
    rows = gather(X, np.ones(60, dtype=int), y.astype(int), chance)
    member = one_member(rows, link, [np.log(link.scale), np.log(0.4)])
    rng = np.random.default_rng(5)
    slices = slice_sampled(rows, link, matrix(member.mode.basis, rows.x), 6_000, rng)[:, 200:]
    each = drawn((member,), 20_000, rng)[0]
    x = np.linspace(0.0, 1.0, 7)[:, None]
    phi = matrix(member.mode.basis, x)
    ours, theirs = (link.value(phi @ b) for b in (each.b[:, each.copies], slices))
    for one, other in zip(ours, theirs, strict=True):
        # Batch means: the chain's standard error, and that of at least 2,000 draws.
        batches = other[: len(other) // 50 * 50].reshape(50, -1).mean(axis=1)
        error = np.hypot(batches.std(ddof=1) / np.sqrt(50), one.std() / np.sqrt(2_000))
        assert abs(one.mean() - other.mean()) < 4.5 * error
        assert one.std() == pytest.approx(other.std(), rel=0.15)


def test_weights_are_one_at_the_mode_and_their_mean_is_the_evidence():
    """Laplace's evidence times the mean weight is the integral of the likelihood."""
    rows = gather(np.array([[0.5]]), np.array([9]), np.array([8]))
    member = one_member(rows, LOGIT, [0.0, np.log(0.5)])
    at_mode = log_targets(member.problem, member.mode, member.centre[:, None])
    assert at_mode[0] == pytest.approx(0.0, abs=1e-9)
    _, logs = proposed(member, 60_000, np.random.default_rng(0))
    s = float(np.linalg.norm(matrix(member.mode.basis, rows.x)[0]))
    exact = integrate.quad(
        lambda f: np.exp(8 * np.log(expit(f)) + np.log(expit(-f))) * stats.norm.pdf(f, scale=s),
        -40,
        40,
    )[0]
    weights = np.exp(logs + member.mode.evidence)
    error = weights.std() / np.sqrt(len(weights))
    assert weights.mean() == pytest.approx(exact, abs=5 * error)


def test_the_likelihood_of_many_sets_is_that_of_each():
    X, y = trials(30)
    f = np.random.default_rng(0).normal(size=(30, 4))
    for context in (None, np.array([0.2, 0.9]), np.array([0.1, 0.5, 1.0])):
        for correlation in (0.0, 0.1):
            rows = gather(X, np.full(30, 3), 2 * y.astype(int), context)
            rows = rows._replace(correlation=correlation)
            for link in (LOGIT, SOFT):
                each = [read(column, rows, link).log for column in f.T]
                np.testing.assert_allclose(log_likelihoods(f, rows, link), each, rtol=1e-11)


# The star ----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 4])
def test_a_star_keeps_mean_and_covariance_of_a_normal_law(d):
    rng = np.random.default_rng(d)
    root = np.tril(rng.normal(size=(d, d))) + 2.0 * np.eye(d)
    theta, open_ = rng.normal(size=d), (np.full(d, -np.inf), np.full(d, np.inf))
    points = [(theta, 0.0), *ensemble.star(theta, root, open_)]
    w = [np.exp(f - 0.5 * np.sum(np.linalg.solve(root, at - theta) ** 2)) for at, f in points]
    w = np.array(w) / np.sum(w)
    at = np.array([at for at, _ in points])
    np.testing.assert_allclose(w @ at, theta, atol=1e-12)
    np.testing.assert_allclose((w * (at - theta).T) @ (at - theta), root @ root.T, rtol=1e-10)


def test_members_are_heavy_and_start_with_the_centre():
    model = SmoothBetaClassifier(method="process").fit(*trials(100))
    members = model.field_.smooth[0].members
    shares = ensemble.shares(members)
    assert shares.min() > ensemble.LIGHT * shares.max()
    best = max(members, key=lambda member: member.log_weight)
    assert all(member.is_weighed for member in members)
    assert best.mode.evidence == pytest.approx(best.mode.reading.log, abs=30.0)


@pytest.mark.long
def test_many_features_have_one_member_with_the_law_of_the_posterior():
    X, y = trials(300, d=4)
    model = SmoothBetaClassifier(method="process").fit(X, y)
    members = model.field_.smooth[0].members
    assert not any(member.is_weighed for member in members)
    found, post = model.draws(X[:5], 20_000, random_state=0), model.posterior(X[:5])
    np.testing.assert_allclose(found.mean(axis=0), post.mean(), atol=0.03)
    np.testing.assert_allclose(found.std(axis=0), post.std(), rtol=0.12)


# Weights and resampling --------------------------------------------------------------------


def test_weights_are_cut_and_leave_a_tenth():
    logs = np.zeros(400)
    logs[0] = 50.0
    assert truncated(logs).max() <= 1.0
    assert effective(truncated(np.zeros(400))) == pytest.approx(400.0)
    assert effective(tempered(100.0 * np.random.default_rng(0).normal(size=400))) >= 40.0
    few = np.random.default_rng(0).normal(size=400) * 0.1
    np.testing.assert_array_equal(tempered(few), truncated(few))


def test_systematic_draws_are_as_many_and_as_near_as_can_be():
    rng = np.random.default_rng(0)
    for _ in range(200):
        w = rng.random(rng.integers(1, 30)) ** 3
        size = int(rng.integers(1, 100))
        found = systematic(w, size, rng.random())
        assert found.sum() == size
        assert np.abs(found - size * w / w.sum()).max() < 1.0 + 1e-9


# Noise -------------------------------------------------------------------------------------


def test_noise_is_normal_at_every_point_and_correlated_over_its_length():
    noise = Noise(SEED, 0, 20_000, 2)
    x = np.array([[0.0, 0.0], [0.3, 0.4], [3.0, 4.0]])
    found = noise.smooth(x)
    np.testing.assert_allclose(found.std(axis=1), 1.0, atol=0.03)
    assert stats.kstest(found[0], "norm").pvalue > 1e-4
    together = np.corrcoef(found)
    assert together[0, 1] == pytest.approx(np.exp(-0.125), abs=0.1)
    assert abs(together[0, 2]) < 0.4
    np.testing.assert_array_equal(noise.some(x[1:], np.array([5, 7])), found[1:][:, [5, 7]])


def test_scattered_noise_is_independent_and_the_same_at_the_same_point():
    noise = Noise(SEED, 0, 20_000, 1)
    x = np.array([[0.0], [1e-9], [-0.0]])
    a, b, c = noise.scattered(x)
    np.testing.assert_array_equal(a, c)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    assert stats.kstest(a, "norm").pvalue > 1e-4
    np.testing.assert_array_equal(noise.scattered(x, np.array([3]))[:, 0], noise.scattered(x)[:, 3])


# Fields ------------------------------------------------------------------------------------


def levels():
    """Return trials of days with their own effects, which need windows or effects of levels."""
    rng = np.random.default_rng(7)
    day = rng.integers(0, 30, 600)
    X = np.column_stack([rng.random(600), day])
    return X, rng.random(600) < expit(rng.normal(size=30)[day] + X[:, 0])


def rough():
    rng = np.random.default_rng(8)
    X = rng.random((1_500, 1))
    return X, rng.random(1_500) < np.where(np.sin(60 * X[:, 0]) > 0, 0.75, 0.2)


CASES = {
    "process": ({"method": "process"}, trials(100), None),
    "auto": ({}, rough(), None),
    "levels": ({}, levels(), None),
    "contexts": ({}, trials(200), contexts.guess_lapse(0.5, 0.02)),
    "windows": ({"bandwidth": 0.2}, trials(100), None),
    "contexts in windows": ({"bandwidth": 0.2}, trials(60), contexts.guess_lapse(0.3)),
}


@pytest.fixture(params=list(CASES), scope="module")
def model(request):
    options, (X, y), context = CASES[request.param]
    return SmoothBetaClassifier(**options).fit(X, y, context=context)


def asked(model):
    low, high = model.bounds_.T
    rng = np.random.default_rng(9)
    inside = low + (high - low) * rng.random((12, len(low)))
    beyond = high + 0.3 * (high - low) * rng.random((3, len(low)))
    if len(low) == 2:
        inside[:, 1] = np.round(inside[:, 1])
    return np.concatenate([inside, beyond, model.bounds_.mean(axis=1)[None]])


@pytest.mark.filterwarnings("ignore::betafield.cautions.FieldWarning")
def test_fields_are_the_same_together_apart_and_in_any_order(model):
    X = asked(model)
    whole = model.draws(X, 300, random_state=4)
    assert whole.shape == (300, len(X))
    assert ((whole >= 0.0) & (whole <= 1.0)).all()
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(model.draws(X[order], 300, random_state=4), whole[:, order])
    for i in range(len(X)):
        np.testing.assert_array_equal(model.draws(X[[i]], 300, random_state=4)[:, 0], whole[:, i])
    assert not np.array_equal(model.draws(X, 300, random_state=5), whole)


@pytest.mark.filterwarnings("ignore::betafield.cautions.FieldWarning")
def test_fields_survive_saving_and_threads(model, tmp_path):
    X = asked(model)
    whole = model.draws(X, 200, random_state=0)
    model.save(tmp_path / "m.beta")
    np.testing.assert_array_equal(load(tmp_path / "m.beta").draws(X, 200, random_state=0), whole)
    model.set_params(n_jobs=2)
    np.testing.assert_array_equal(model.draws(X, 200, random_state=0), whole)
    model.set_params(n_jobs=None)


@pytest.mark.filterwarnings("ignore::betafield.cautions.FieldWarning")
def test_each_point_has_about_the_law_of_its_posterior(model):
    """Star and weights make draws more accurate than the law, and narrower under guesses."""
    X = asked(model)[:12]
    found, post = model.draws(X, 8_000, random_state=1), model.posterior(X)
    spread = post.std()
    assert np.abs((found.mean(axis=0) - post.mean()) / spread).max() < 0.8
    ratio = np.median(found.std(axis=0) / spread)
    assert ratio < 1.2
    assert ratio > 0.6 or model.field_.totals.distorted


@pytest.mark.parametrize("d", [1, 2])
def test_with_many_trials_draws_are_the_posterior(d):
    """Without rougher companions, which draws know nothing of."""
    X, y = trials(20_000, d=d)
    model = SmoothBetaClassifier(method="process", bounds=[(0, 1)] * d).fit(X, y)
    x = np.random.default_rng(3).random((20, d))
    found = model.draws(x, 4_000, random_state=0)
    post = LatentNormal(model.field_.smooth[0].beliefs(x, is_joint=True).laws)
    assert np.abs((found.mean(axis=0) - post.mean()) / post.std()).max() < 0.3
    np.testing.assert_allclose(found.std(axis=0) / post.std(), 1.0, atol=0.25)


def test_windows_have_the_posterior_at_every_point():
    X, y = trials(200)
    model = SmoothBetaClassifier(bandwidth=0.1).fit(X, y)
    x = np.linspace(0, 1, 9)[:, None]
    found, post = model.draws(x, 20_000, random_state=0), model.posterior(x)
    for i in range(len(x)):
        exact = stats.beta(post.alpha[i], post.beta[i])
        assert stats.kstest(found[:, i], exact.cdf).statistic < 0.02


def test_residual_windows_have_the_posterior_at_every_point():
    """If residual windows have nearly all the weight, marginals are those of the posterior."""
    model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(*rough())
    smooth = model.field_.smooth[0]
    assert smooth.windows
    x = np.linspace(0.03, 0.97, 25)[:, None]
    found, post = model.draws(x, 8_000, random_state=0), model.posterior(x)
    np.testing.assert_allclose(found.mean(axis=0), post.mean(), atol=0.02)
    np.testing.assert_allclose(found.std(axis=0) / post.std(), 1.0, atol=0.2)


@pytest.mark.filterwarnings("ignore::betafield.cautions.FieldWarning")
def test_levels_that_were_never_seen_vary_as_the_posterior_says():
    model = SmoothBetaClassifier().fit(*levels())
    x = np.array([[0.5, 29.5], [0.5, 35.0], [0.2, 29.5]])
    found, post = model.draws(x, 6_000, random_state=0), model.posterior(x)
    np.testing.assert_allclose(found.std(axis=0) / post.std(), 1.0, atol=0.3)
    assert np.corrcoef(found[:, 0], found[:, 2])[0, 1] > 0.8  # one level has one effect


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::betafield.cautions.FieldWarning")
def test_places_that_were_never_seen_vary_as_the_posterior_says():
    """On a lattice of places with their own effects, whose diagonal was not observed."""
    rng = np.random.default_rng(11)
    effect, at = rng.normal(0.0, 1.5, (12, 12)), rng.integers(12, size=(6_000, 2))
    at = at[at[:, 0] != at[:, 1]]
    y = rng.random(len(at)) < expit(effect[at[:, 0], at[:, 1]])
    model = SmoothBetaClassifier(bounds=[(0, 12)] * 2).fit(at + 0.5, y)
    x = np.arange(0.5, 12.0)[:, None].repeat(2, axis=1)
    found, post = model.draws(x, 4_000, random_state=0), model.posterior(x)
    assert post.std().mean() > 0.2
    np.testing.assert_allclose(found.std(axis=0) / post.std(), 1.0, atol=0.3)


def test_batches_orders_and_merges_change_no_bit():
    X, y = trials(120)
    whole = SmoothBetaClassifier(method="process").fit(X, y)
    parts = SmoothBetaClassifier(method="process").fit(X[60:], y[60:])
    parts.partial_fit(X[:60], y[:60]).settle()
    halves = [SmoothBetaClassifier(method="process").fit(X[i::2], y[i::2]) for i in (0, 1)]
    merged = halves[0].merge(halves[1]).settle()
    x = np.linspace(0, 1, 5)[:, None]
    for other in (parts, merged):
        np.testing.assert_array_equal(
            other.draws(x, 100, random_state=0), whole.draws(x, 100, random_state=0)
        )


def test_an_unsettled_stream_can_be_drawn():
    X, y = trials(205)
    model = SmoothBetaClassifier().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert not model.settled_
    assert model.draws([[0.5]], 50, random_state=0).shape == (50, 1)


def test_fields_know_their_neighbours():
    """Nearby points have nearly equal draws, so averages vary as much as single points."""
    model = SmoothBetaClassifier(method="process").fit(*trials(150))
    a, b = model.draws([[0.5], [0.501]], 1_000, random_state=0).T
    assert np.corrcoef(a, b)[0, 1] > 0.99


def test_classes_are_drawn_together_with_the_posterior_of_each():
    X, y = trials(300)
    labels = np.where(np.random.default_rng(11).random(300) < 0.3, 2, y.astype(int))
    for options in ({}, {"bandwidth": 0.2}):
        model = SmoothBetaClassifier(**options).fit(X, labels)
        x = np.linspace(0.1, 0.9, 4)[:, None]
        found, post = model.draws(x, 10_000, random_state=0), model.posterior(x)
        assert found.shape == (10_000, 4, 3)
        np.testing.assert_allclose(found.sum(axis=2), 1.0, rtol=1e-12)
        np.testing.assert_allclose(found.mean(axis=0), post.mean(), atol=0.01)
        np.testing.assert_allclose(found.std(axis=0) / post.std(), 1.0, atol=0.06)


def test_tiny_dirichlet_shapes_are_drawn():
    from betafield.answers.draws import log_gamma

    z = np.array([-3.0, 0.0, 3.0])
    assert np.isfinite(log_gamma(np.full(3, 1e-6), z)).all()
    np.testing.assert_allclose(
        log_gamma(np.full(3, 2.5), z), np.log(stats.gamma(2.5).ppf(stats.norm.cdf(z))), rtol=1e-10
    )


def test_seeds_of_every_kind():
    model = SmoothBetaClassifier(method="process").fit(*trials(60))

    def ask(seed):
        return model.draws([[0.5]], 20, random_state=seed)

    np.testing.assert_array_equal(ask(3), ask(3))
    np.testing.assert_array_equal(ask(np.random.RandomState(3)), ask(np.random.RandomState(3)))
    np.testing.assert_array_equal(ask(np.random.default_rng(3)), ask(3))
    rng = np.random.default_rng(3)
    assert not np.array_equal(ask(rng), ask(rng))
    assert not np.array_equal(ask(None), ask(None))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"size": 0}, r"size: found 0; a whole number from 1 on"),
        ({"size": 1.5}, r"size: found 1.5"),
        ({"random_state": -1}, r"random_state: found -1"),
        ({"random_state": "a"}, r"random_state: found 'a'"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    model = SmoothBetaClassifier(method="process").fit(*trials(60))
    with pytest.raises((ValueError, TypeError), match=said):
        model.draws([[0.5]], **arguments)


def test_a_pure_step_is_drawn_narrower_than_laplace():
    """80 failures in 80 trials on one side: Laplace's law is wide there, the likelihood is not."""
    X = np.linspace(0.0, 1.0, 160)[:, None]
    model = SmoothBetaClassifier(method="process").fit(X, X[:, 0] > 0.5)
    found = model.draws([[0.2]], random_state=0)[:, 0]
    assert np.quantile(found, 0.975) < 0.2


def test_groups_are_averaged_over():
    rng = np.random.default_rng(0)
    X, group = rng.random((400, 1)), rng.integers(0, 15, 400)
    y = rng.random(400) < expit(3 * X[:, 0] - 1.5 + rng.normal(size=15)[group])
    model = SmoothBetaClassifier().fit(X, y, groups=group)
    x = np.linspace(0.1, 0.9, 5)[:, None]
    found, post = model.draws(x, 4_000, random_state=0), model.posterior(x)
    assert np.abs((found.mean(axis=0) - post.mean()) / post.std()).max() < 0.5
    np.testing.assert_allclose(found.std(axis=0) / post.std(), 1.0, atol=0.4)


def test_fields_can_be_kept_and_asked_again():
    model = SmoothBetaClassifier(method="process").fit(*trials(60))
    fields = Fields(model.field_.smooth[0], 30, SEED)
    x = np.array([[0.1], [0.9]])
    np.testing.assert_array_equal(fields.at(x)[:, 1:], fields.at(x[1:]))
