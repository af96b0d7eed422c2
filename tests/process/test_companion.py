"""Rougher companions of processes, against dense linear algebra and the kernel's formula."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from betafield import SmoothBetaClassifier, contexts
from betafield._locks import remember
from betafield.posteriors import LatentNormal
from betafield.process import law
from betafield.process.basis import Prior, basis
from betafield.process.companion import companion, evidence, raising
from betafield.process.design import design, matrix, of_rows
from betafield.process.fit import Problem, fit, fit_links, settled
from betafield.process.links import LINKS, LOGIT
from betafield.process.model import Asked, Sums, build, find, learn
from betafield.process.rows import gather

UNIT = np.array([[0.0, 1.0]])


def trials(t, d, seed):
    rng = np.random.default_rng(seed)
    x = rng.random((t, d))
    p = 0.5 + 0.4 * np.sin(5 * x[:, 0]) * x[:, -1]
    return x, np.ones(t, np.int64), (rng.random(t) < p).astype(np.int64)


def settled_at(link, d, theta=None, t=150):
    rows = gather(*trials(t, d, 1))
    theta = np.array([np.log(link.scale)] + [np.log(0.4)] * d) if theta is None else theta
    return settled(Problem(rows, link, Prior(link.scale, float(t))), theta)


def steep(t=400, seed=0):
    """Trials outside of a gap in which π rises steeply."""
    rng = np.random.default_rng(seed)
    x = rng.random((3 * t, 1))
    x = x[(x[:, 0] < 0.35) | (x[:, 0] > 0.65)][:t]
    return x, (rng.random(len(x)) < rise(x)).astype(np.int64)


def rise(x):
    return 0.05 + 0.9 / (1.0 + np.exp(-40.0 * (x[:, 0] - 0.6)))


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("d", [1, 2])
def test_variances_and_evidence_are_the_dense_ones(link, d):
    found = settled_at(link, d)
    ours, reading = companion(found), found.mode.reading
    functions = basis(found.theta, Prior(link.scale, 150.0, smoothness=0.5))
    x = np.random.default_rng(2).random((25, d))
    P, Q = matrix(functions, found.problem.rows.x), matrix(functions, x)
    W, g, f = reading.information, reading.score, found.mode.f
    # By rows instead of by functions: the conditional variance, and the density of f + g/W.
    K, noisy = P @ P.T, P @ P.T + np.diag(1.0 / W)
    rough = np.einsum("ij,ij->i", Q, Q) - np.einsum(
        "ij,ji->i", Q @ P.T, np.linalg.solve(noisy, P @ Q.T)
    )
    z = f + g / W
    own = reading.log + 0.5 * np.sum(g**2 / W) - 0.5 * z @ np.linalg.solve(noisy, z)
    own -= 0.5 * np.linalg.slogdet(np.eye(len(W)) + np.sqrt(W)[:, None] * K * np.sqrt(W))[1]
    weight = 1.0 / (1.0 + np.exp(found.mode.evidence - own))
    assert ours.weight == pytest.approx(weight, rel=1e-6)
    narrow = law.latent(law.surface(found), x).wide
    share = 1.0 - (1.0 - np.minimum(rough / link.scale**2, 1.0) ** 0.75) * (1.0 - weight)
    expected = narrow + share * np.maximum(rough - narrow, 0.0)
    assert_allclose(ours.raised(narrow, x), expected, rtol=1e-6)
    assert_allclose(law.latent(law.surface(found), x, ours).wide, expected, rtol=1e-6)
    assert (expected > narrow).any()


def test_the_evidence_of_a_process_among_its_own_functions_is_its_own():
    found = settled_at(LOGIT, 2)
    phi = of_rows(found.mode.basis, found.problem.rows.x, 1.0)
    same = evidence(found.mode, phi, phi.curvature(found.mode.reading.information))
    assert same == pytest.approx(found.mode.evidence, abs=1e-7)


def test_differences_of_f_vary_as_under_the_exponential_kernel():
    """The variance of f(x) − f(x′) is proportional to 1 − e^(−r/ℓ), nearly linear in r."""
    functions = companion(settled_at(LOGIT, 1, np.array([0.3, np.log(0.5)]), 2_000)).basis
    x = np.linspace(0.1, 0.9, 41)[:, None]
    Q = matrix(functions, x)
    varied = ((Q[:, None] - Q[None]) ** 2).sum(axis=2)
    distance = np.abs(x - x.T)
    some = distance > 0.09
    ratio = varied[some] / (1.0 - np.exp(-distance[some] / 0.5))
    assert_allclose(ratio / ratio.mean(), 1.0, atol=0.2)
    # Of the process itself it is nearly quadratic.
    P = matrix(basis(np.array([0.3, np.log(0.5)]), Prior(1.0, 2_000.0)), x)
    smooth = ((P[:, None] - P[None]) ** 2).sum(axis=2)[some] / (1.0 - np.exp(-distance[some] / 0.5))
    assert np.ptp(smooth / smooth.mean()) > 0.8


def test_a_variance_is_between_both_and_that_of_the_companion_where_nothing_is_known():
    found = settled_at(LOGIT, 1)
    one, x = companion(found), np.linspace(0, 1, 40)[:, None]
    rough = design(one.basis, x).forms(one.S)
    for v in (np.full(40, 1e-9), rough, 4.0 * rough):
        raised = one.raised(v, x)
        assert (raised >= v).all()
        assert (raised <= np.maximum(v, rough)).all()
    v = np.full(40, 1e-9)
    assert_allclose(replace(one, weight=1.0).raised(v, x), rough, rtol=1e-7)
    unknown = replace(one, S=np.eye(len(one.S)), weight=0.0)
    assert_allclose(unknown.raised(v, x), design(one.basis, x).forms(unknown.S))


def test_means_do_not_change():
    x, n, k = trials(300, 1, 4)
    fits = fit_links(gather(x, n, k))
    surfaces, w = [law.surface(each) for each in fits], np.full(len(fits), 1.0 / len(fits))
    given = dict(enumerate(companion(each) for each in fits))
    Q = [np.linspace(-0.2, 1.2, 50)[:, None]] * len(fits)
    plain, mean = law.believed(surfaces, w, Q)
    raised, same = law.believed(surfaces, w, Q, given)
    assert_array_equal(mean, same)
    assert (raised.deviations >= plain.deviations).all()
    assert (raised.deviations > 1.01 * plain.deviations).any()


def test_what_trials_tell_well_is_hardly_raised():
    x, n, k = trials(50_000, 1, 5)
    found = fit(gather(x, n, k), LOGIT)
    Q = np.linspace(0.05, 0.95, 50)[:, None]
    factor = raising(
        companion(found), law.widened(found, found.slopes.S), design(found.mode.basis, Q), Q
    )
    assert np.median(factor) < 1.05


def test_an_interval_in_a_gap_contains_what_happens_there_only():
    inside = np.linspace(0.36, 0.64, 60)[:, None]
    held, before = [], []
    for seed in range(4):
        X, y = steep(2_000, seed)
        model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, y)
        smooth = model.field_.smooth[0]
        laws = smooth.beliefs(inside, is_joint=True).laws
        for each, found in ((model.posterior(inside), held), (LatentNormal(laws), before)):
            low, high = each.interval(0.95)
            found.append(np.mean((low <= rise(inside)) & (rise(inside) <= high)))
    assert np.mean(held) > np.mean(before) + 0.2


def test_draws_of_fields_do_not_depend_on_companions():
    rng = np.random.default_rng(11)
    X, Q = rng.random((600, 1)), np.linspace(0, 1, 9)[:, None]
    y = rng.random(600) < 0.2 + 0.6 * ((9.0 * X[:, 0]) % 1)
    models = [SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, y) for _ in range(2)]
    assert models[0].field_.smooth[0].windows
    remember(models[1].field_.smooth[0], "companions", {})
    left, right = (model.draws(Q, 200, random_state=0) for model in models)
    assert_array_equal(left, right)
    assert (models[0].posterior(Q).std() > models[1].posterior(Q).std()).any()


def test_more_features_and_levels_have_none():
    assert companion(settled_at(LOGIT, 3)) is None
    grouped = SmoothBetaClassifier().fit(*trials(60, 1, 6)[::2], groups=np.arange(60) % 6)
    assert not grouped.field_.smooth[0].companions
    X = np.column_stack([np.random.default_rng(7).random(80), np.arange(80) % 4])
    named = SmoothBetaClassifier(categorical_features=[1]).fit(X, np.arange(80) % 3 == 0)
    assert not named.field_.smooth[0].companions
    assert raising(None, None, None, None) == 1.0


def test_every_node_of_unknown_rates_has_its_own_companion():
    x, _, y = trials(200, 1, 8)
    context = contexts.guess_lapse(contexts.Unknown(2, 10), 0.02)
    smooth = SmoothBetaClassifier().fit(x, y, context=context).field_.smooth[0]
    assert len(smooth.companions) > 2
    for i, one in smooth.companions.items():
        assert_array_equal(one.S, companion(smooth.fits[i]).S)
    assert len({one.weight for one in smooth.companions.values()}) == len(smooth.companions)


@pytest.mark.parametrize("d", [1, 2])
def test_learned_and_built_models_have_the_same(d):
    points, n, k = trials(250, d, 9)
    sums, bounds = Sums(points, n, k), np.tile(UNIT, (d, 1))
    _, learned = learn(sums, Asked(bounds))
    built = build(sums, bounds, find(sums, bounds))
    Q = np.random.default_rng(10).random((30, d)) * 1.4 - 0.2
    assert learned.companions.keys() == built.companions.keys() != set()
    for left, right in ((learned.laws(Q), built.laws(Q)), (learned.laws(Q[:1]), built.laws(Q))):
        count = left.centres.shape[1]
        assert_array_equal(left.centres, right.centres[:, :count])
        assert_array_equal(left.deviations, right.deviations[:, :count])


def test_few_rows_have_the_variance_of_many_functions():
    """With fewer rows than functions, another factorisation is used."""
    rows = gather(np.array([[0.2], [0.7]]), np.array([3, 4]), np.array([1, 4]))
    found = settled(Problem(rows, LOGIT, Prior(1.0, 7.0)), np.array([0.0, np.log(0.3)]))
    one = companion(found)
    P, W = matrix(one.basis, rows.x), found.mode.reading.information
    expected = np.linalg.inv(np.eye(P.shape[1]) + P.T * W @ P)
    assert_allclose(one.S, expected, atol=1e-9)
