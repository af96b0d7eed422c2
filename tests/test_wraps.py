"""Features that wrap around, against independent results on circles and spheres."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import sph_harm_y
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from betafield import SmoothBetaClassifier, contexts, earth, load, meaning, wraps
from betafield.bands import arcs
from betafield.cli import main
from betafield.process import wrapped
from betafield.process.basis import Prior, basis
from betafield.process.design import design, matrix
from betafield.process.residuals import stretches

HOURS = {"periodic": {0: 24}}
PLACES = {"geographic": (0, 1)}
EVERY = {
    "hours": ({"periodic": {"hour": 24}}, ["hour"]),
    "hours and a dose": ({"periodic": {"hour": 24}}, ["hour", "dose"]),
    "places": ({"geographic": ("lon", "lat")}, ["lon", "lat"]),
    "all": ({"periodic": {"hour": 24}, "geographic": ("lon", "lat")}, ["lat", "hour", "lon"]),
}
# Those with several features take most of the time.
SOME = [
    "hours",
    "places",
    *(pytest.param(name, marks=pytest.mark.long) for name in list(EVERY)[1::2]),
]


def table(n, seed=0):
    """Return trials all over the Earth at all hours, on grids so that places repeat."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "lon": rng.integers(-180, 180, n).astype(float),
            "lat": np.degrees(np.arcsin(rng.uniform(-1, 1, n))).round(),
            "hour": rng.integers(0, 96, n) / 4.0,
            "dose": rng.random(n).round(2),
        }
    )
    turn = np.cos(2 * np.pi * X["hour"] / 24) * np.sin(np.radians(X["lat"]))
    return X, rng.random(n) < 0.5 + 0.3 * turn


def haversine(a, b):
    """Return degrees along great circles between places (m, 2) and (n, 2)."""
    (x, y), (u, v) = np.radians(a).T[:, :, None], np.radians(b).T[:, None]
    s = np.sin((v - y) / 2) ** 2 + np.cos(y) * np.cos(v) * np.sin((u - x) / 2) ** 2
    return np.degrees(2 * np.arcsin(np.sqrt(np.clip(s, 0, 1))))


# Functions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0.12, 0.3, 0.8])
def test_a_circle_has_the_kernel_of_a_wrapped_normal(length):
    prior = Prior(1e-9, 1e12, kinds=("circle",))
    found = basis(np.log([1.0, length]), prior)
    x = np.linspace(0.0, 1.0, 37)[:, None]
    P = matrix(found, x)
    # Σ_k e^(−(2kℓ)²/2) cos 2πkd is by Poisson a sum of normal densities of standard deviation ℓ/π.
    apart = (x - x.T)[:, :, None] + np.arange(-20, 21)
    kernel = np.exp(-0.5 * (apart * np.pi / length) ** 2).sum(axis=2)
    assert np.allclose(P @ P.T, kernel / kernel[0, 0], atol=1e-9)


def test_the_sphere_has_harmonics_and_a_kernel_of_the_distance_alone():
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(-180, 180, 40), np.degrees(np.arcsin(rng.uniform(-1, 1, 40)))
    pairs = np.array([(m, k) for k in range(9) for m in range(-k, k + 1)])
    found = wrapped.sphere((lon + 180) / 360, (lat + 90) / 180, *pairs.T)
    for column, (m, k) in zip(found.T, pairs.tolist(), strict=True):
        Y = sph_harm_y(k, abs(m), np.radians(90 - lat), np.radians(lon)) * np.sqrt(4 * np.pi)
        real = Y.real if m == 0 else np.sqrt(2) * (-1) ** m * (Y.imag if m < 0 else Y.real)
        assert np.allclose(column, real, atol=1e-12)
    prior = Prior(1e-9, 1e5, kinds=("longitude", "latitude"))
    P = matrix(basis(np.log([1.0, 1.0, 0.3]), prior), np.c_[(lon + 180) / 360, (lat + 90) / 180])
    K = P @ P.T
    assert np.allclose(np.diag(K), K[0, 0], rtol=1e-12)
    order = np.argsort(haversine(np.c_[lon, lat], np.c_[lon, lat]).ravel())
    assert np.all(np.diff(K.ravel()[order]) < 1e-9)


@pytest.mark.parametrize("smoothness", [None, 2.5])
@pytest.mark.parametrize("kinds", [("circle", "line"), ("latitude", "longitude", "circle")])
def test_slopes_of_variances_are_those_of_differences(kinds, smoothness):
    theta, prior = np.log([1.5, *[0.3, 0.47, 0.4][: len(kinds)]]), Prior(1.0, 100.0, smoothness)
    prior = prior._replace(kinds=kinds)
    found = basis(theta, prior)
    for a in range(len(theta)):
        ends = [basis(theta + sign * 1e-5 * np.eye(len(theta))[a], prior) for sign in (1, -1)]
        up, down = (dict(zip(map(tuple, end.J), np.log(end.root), strict=True)) for end in ends)
        for j, slope in zip(map(tuple, found.J), found.slope[a], strict=True):
            if j in up and j in down:  # the set of functions changes with the length scale
                assert abs((up[j] - down[j]) / 1e-5 - slope) < 1e-5


def test_functions_of_one_frequency_are_kept_or_lost_together():
    kinds, limit = ("circle", "circle"), 400.0
    J, u, is_capped = wrapped.lowest(np.array([1.0, 1.5]), kinds, limit, 100, 40)
    assert is_capped
    assert len(J) <= 100
    held = {tuple(each) for each in J.tolist()}
    for j, k in held:
        assert {(a * j, b * k) for a, b in itertools.product((1, -1), repeat=2)} <= held
    assert np.allclose(u, J[:, 0] ** 2 + 1.5 * J[:, 1] ** 2)


def test_products_agree_with_the_matrix():
    rng = np.random.default_rng(1)
    found = basis(np.log([1.0, 0.4, 1.0, 0.3]), Prior(1.0, 500.0, kinds=("circle", "line", "line")))
    x, b = rng.random((30, 3)), rng.normal(size=len(found.root))
    P = matrix(found, x)
    assert np.allclose(design(found, x).values(b), P @ b)
    assert np.allclose(design(found, x).forms(np.outer(b, b)), (P @ b) ** 2)


def test_the_sphere_is_one_feature_for_windows():
    kinds = ("longitude", "line", "latitude")
    ways = stretches(np.array([0.2, 0.5, 0.4]), None, kinds)
    assert all(way[0] == way[2] for way in ways)
    assert [way.tolist() for way in ways[-2:]] == [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]


# Windows -----------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.floats(0.05, 13.0))
def test_windows_of_hours_hold_those_near_around_the_clock(seed, width):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-48, 48, (60, 1)), np.arange(60) % 3 == 0
    model = SmoothBetaClassifier(bandwidth=width, scale=None, **HOURS).fit(x, y)
    at = rng.uniform(-48, 48, (20, 1))
    apart = np.abs((at - x.T + 12) % 24 - 12)
    n, k = (apart <= width).sum(axis=1), ((apart <= width) & y).sum(axis=1)
    assert np.allclose(model.posterior(at).mean(), (1 + k) / (2 + n))


@given(st.integers(0, 10_000), st.floats(0.5, 200.0))
def test_windows_of_places_are_caps_of_great_circles(seed, width):
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(-180, 360, 60), rng.uniform(-90, 90, 60)]
    X[:3] = [[180, 20], [-180, 20], [77, 90]]
    y = np.arange(60) % 3 == 0
    model = SmoothBetaClassifier(bandwidth=width, scale=None, **PLACES).fit(X, y)
    at = np.c_[rng.uniform(-180, 360, 20), rng.uniform(-90, 90, 20)]
    at[:2] = [[-40, 90], [0, -90]]
    apart = haversine(at, X)
    clear = np.all(np.abs(apart - width) > 1e-6, axis=1)
    n, k = (apart <= width).sum(axis=1), ((apart <= width) & y).sum(axis=1)
    assert np.allclose(model.posterior(at).mean()[clear], ((1 + k) / (2 + n))[clear])


@given(st.integers(0, 10_000), st.floats(0.01, 3.0))
def test_no_trial_of_a_ring_is_farther_along_arcs_than_it_is_said_to_be(seed, radius):
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(0, 24, 200), rng.uniform(-90, 90, 200), rng.uniform(0, 360, 200)]
    told = wraps.of({0: 24}, (2, 1), 3)
    model = SmoothBetaClassifier(
        bandwidth=0.3, scale=[24, 180, 180], periodic={0: 24}, geographic=(2, 1)
    ).fit(X, np.arange(200) % 2)
    units = model.field_.units
    z = units.scaled(told.wrapped(X))
    straight = np.linalg.norm(z - z[0], axis=1)
    hours = np.abs((X[:, 0] - X[0, 0] + 12) % 24 - 12) / 24
    along = np.hypot(hours, haversine(X[:1, [2, 1]], X[:, [2, 1]])[0] / 180)
    inside = straight <= radius
    assert along[inside].max() <= arcs(np.array([radius]), units.radii)[0] + 1e-9
    assert np.all(straight <= along + 1e-9)


def test_a_band_knows_no_midnight():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 24, (4_000, 1))
    pi = 0.5 + 0.3 * np.cos(2 * np.pi * x[:, 0] / 24)
    y = rng.random(4_000) < pi
    low, high = SmoothBetaClassifier(**HOURS).fit(x, y).band([[0.0], [24.0], [23.9]], 2.0)
    assert low[0] == low[1]
    assert high[0] == high[1]
    assert np.all((low < 0.8) & (high > 0.8))
    alone_low, alone_high = SmoothBetaClassifier(bounds=[(0, 24)]).fit(x, y).band([[0.0]], 2.0)
    assert high[0] - low[0] < 0.9 * (alone_high[0] - alone_low[0])


# The whole model ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "process", "windows"])
def test_it_does_not_matter_when_the_day_starts(method):
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 24, (200, 1))
    y = rng.random(200) < 0.5 + 0.4 * np.sin(2 * np.pi * x[:, 0] / 24)
    at = np.linspace(0, 24, 25)[:, None]
    there = SmoothBetaClassifier(method=method, **HOURS).fit(x, y).posterior(at)
    for shift in (5.3, 12.0, -7.77):
        here = SmoothBetaClassifier(method=method, **HOURS).fit(x + shift, y).posterior(at + shift)
        assert np.allclose(here.mean(), there.mean(), atol=1e-6)
        assert np.allclose(here.std(), there.std(), atol=1e-6)


@pytest.mark.parametrize("method", ["process", "windows"])
def test_it_does_not_matter_where_the_poles_are(method):
    rng = np.random.default_rng(4)
    V = rng.normal(size=(300, 3))
    y = rng.random(300) < 0.5 + 0.4 * V[:, 0] / np.linalg.norm(V, axis=1)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    here, there = (np.column_stack(earth.places((V @ R).T)) for R in (np.eye(3), turn))
    whole = {"bounds": [(-180, 180), (-90, 90)], "method": method, **PLACES}
    one, other = (SmoothBetaClassifier(**whole).fit(X, y).posterior(X) for X in (here, there))
    assert np.allclose(one.mean(), other.mean(), atol=1e-4)
    assert np.allclose(one.std(), other.std(), atol=1e-4)


@pytest.mark.parametrize("method", ["auto", "windows"])
def test_the_date_line_and_the_poles_are_nowhere(method):
    X, y = table(2_000)
    model = SmoothBetaClassifier(method=method, **PLACES).fit(X[["lon", "lat"]].to_numpy(), y)
    ask = [[-180, 10], [180, 10], [0, 90], [123, 90], [359, -90], [-7, -90], [190, 5], [-170, 5]]
    p = model.predict_proba(ask)[:, 1].reshape(-1, 2)
    assert np.allclose(p[:, 0], p[:, 1], atol=1e-12)
    near = model.predict_proba([[179.999, 10], [-179.999, 10], [10, 89.999], [190, 89.999]])[:, 1]
    assert np.allclose(near[0::2], near[1::2], atol=0.02 if method == "auto" else 0.2)


def test_a_region_across_the_date_line_is_one_region():
    rng = np.random.default_rng(5)
    X = np.c_[177 + 6 * rng.random(800), -20 + 6 * rng.random(800)]
    pi = 1 / (1 + np.exp(-3 * (X[:, 0] - 180)))
    y = rng.random(800) < pi
    told = X.copy()
    told[:, 0] = np.where(X[:, 0] >= 180, X[:, 0] - 360, X[:, 0])
    one, other = (SmoothBetaClassifier(**PLACES).fit(each, y) for each in (X, told))
    assert one.bounds_[0, 0] > 177
    assert 182 < one.bounds_[0, 1] < 183
    at = np.c_[np.linspace(178, 182, 9), np.full(9, -17.0)]
    assert np.array_equal(one.predict_proba(at), other.predict_proba(at))
    assert np.allclose(
        one.predict_proba(at)[:, 1], 1 / (1 + np.exp(-3 * (at[:, 0] - 180))), atol=0.1
    )
    assert 0.3 < one.length_scales_[0] < 20


@given(st.integers(0, 10_000))
def test_a_plane_and_the_globe_undo_each_other(seed):
    rng = np.random.default_rng(seed)
    west, south = rng.uniform(-180, 170), rng.uniform(-90, 60)
    region = earth.region(west, west + rng.uniform(1, 60), south, south + 25.0)
    lon, lat = rng.uniform(west, west + 1, 20), rng.uniform(south, south + 25, 20)
    back = region.globe(region.plane(lon, lat))
    assert np.diag(haversine(np.c_[lon, lat], np.column_stack(back))).max() < 1e-5
    plane = region.plane(lon, lat)
    flat = np.hypot(*(plane[:, :, None] - plane[:, None]))
    along = haversine(np.c_[lon, lat], np.c_[lon, lat])
    assert np.all(np.abs(flat - along) <= 0.16 * along + 1e-6)


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("method", ["auto", "windows"])
def test_orders_batches_merges_and_files_change_nothing(name, method, tmp_path):
    options, columns = EVERY[name]
    X, y = table(900)
    X, options = X[columns], {**options, "method": method}
    whole = SmoothBetaClassifier(**options).fit(X, y)
    options["bounds"] = whole.bounds_
    asked = X[:40]
    expected = SmoothBetaClassifier(**options).fit(X, y).predict_proba(asked)
    assert np.array_equal(whole.predict_proba(asked), expected)
    order = np.random.default_rng(0).permutation(900)
    parts = np.array_split(order, 3)
    first, *more = (SmoothBetaClassifier(**options).fit(X.iloc[i], y[i]) for i in parts)
    for other in more:
        first.merge(other)
    streamed = SmoothBetaClassifier(**options)
    for i in parts:
        streamed.partial_fit(X.iloc[i], y[i], classes=[False, True])
    streamed.save(tmp_path / "model.beta")
    again = load(tmp_path / "model.beta")
    assert again.get_params()["periodic"] == options.get("periodic")
    X.assign(hit=y.astype(int)).to_csv(tmp_path / "trials.csv", index=False)
    read = clone(whole).fit_files(tmp_path / "trials.csv", outcome="hit", features=columns)
    for model in (first, streamed, again, read):
        assert np.array_equal(model.settle().predict_proba(asked), expected)


@pytest.mark.parametrize("name", SOME)
def test_all_questions_are_answered(name):
    options, columns = EVERY[name]
    X, y = table(250)
    X = X[columns]
    model = SmoothBetaClassifier(**options).fit(X, y, context=contexts.guess_lapse(guess=0.2))
    assert np.isfinite(model.draws(X[:9], size=64, random_state=0)).all()
    assert 0.0 < model.average(X[:50]).mean()[0] < 1.0
    assert np.isfinite(model.posterior(X[:5]).interval()).all()
    weighted = SmoothBetaClassifier(**options).fit(X, y, sample_weight=np.full(250, 2.0))
    twice = SmoothBetaClassifier(**options).fit(pd.concat([X, X]), np.r_[y, y])
    assert np.array_equal(weighted.predict_proba(X[:9]), twice.predict_proba(X[:9]))
    piped = make_pipeline(FunctionTransformer(), SmoothBetaClassifier(**options)).fit(X, y)
    assert piped.predict_proba(X[:5]).shape == (5, 2)


def test_answers_of_dask_are_those_of_here():
    import dask.dataframe as dd

    from betafield.dask import SmoothBetaClassifier as Spread

    X, y = table(600)
    X, options = X[["lon", "lat"]], {"geographic": ("lon", "lat")}
    parts = dd.from_pandas(X.assign(hit=y), npartitions=3)
    there = Spread(**options).fit(parts[["lon", "lat"]], parts["hit"])
    here = SmoothBetaClassifier(**options).fit(X, y).predict_proba(X[:20])
    assert np.array_equal(there.compute().predict_proba(X[:20]), here)
    with pytest.raises(ValueError, match=r"geographic: found .* with windows on dask"):
        Spread(method="windows", **options).fit(parts[["lon", "lat"]], parts["hit"])


def test_midnight_costs_nothing():
    rng = np.random.default_rng(6)
    at = np.r_[np.linspace(0, 2, 20), np.linspace(22, 24, 20)][:, None]

    def pi(hour):
        return (
            0.35
            + 0.3 * np.cos(2 * np.pi * (hour / 24 - 0.95))
            + 0.12 * np.sin(np.pi * (hour + 2.4) / 6)
        )

    losses = []
    for _ in range(8):
        x = rng.uniform(0, 24, (1_000, 1))
        y = rng.random(1_000) < pi(x[:, 0])
        models = (SmoothBetaClassifier(method="process", **each).fit(x, y) for each in ({}, HOURS))
        each = [model.predict_proba(at)[:, 1] - pi(at[:, 0]) for model in models]
        losses.append([np.mean(one**2) for one in each])
    without, with_period = np.mean(losses, axis=0)
    assert with_period <= 0.75 * without


# Bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"periodic": {"hour": 0}}, "periodic, feature 'hour': found 0"),
        ({"periodic": {"hour": -24}}, "periodic, feature 'hour': found -24"),
        ({"periodic": {"hour": np.inf}}, "periodic, feature 'hour': found inf"),
        ({"periodic": {"hour": np.nan}}, "periodic, feature 'hour': found NaN"),
        ({"periodic": {"day": 7}}, "periodic: found 'day'; the features are lon, lat, hour, dose"),
        ({"periodic": {4: 7}}, "periodic: found 4; features are numbered from 0 to 3"),
        ({"geographic": ("lon",)}, "geographic: found .*two features"),
        ({"geographic": ("lon", "lat", "hour")}, "geographic: found .*two features"),
        ({"geographic": ("lon", "lon")}, "geographic: found .*two features"),
        ({"geographic": ("lon", "up")}, "geographic: found 'up'; the features are"),
        (
            {"periodic": {"lon": 360}, "geographic": ("lon", "lat")},
            "periodic: found 'lon', which is geographic too",
        ),
        (
            {"periodic": {"hour": 24}, "monotonic_cst": {"hour": 1}},
            "monotonic_cst, feature 2: found 1 for a feature that is periodic",
        ),
        (
            {"geographic": ("lon", "lat"), "monotonic_cst": {"lat": -1}},
            "monotonic_cst, feature 1: found -1 for a feature that is geographic",
        ),
        ({"periodic": {"hour": 24}, "metric": "manhattan"}, "metric: found 'manhattan'"),
        (
            {"periodic": {"hour": 24}, "scale": "std", "method": "windows"},
            "scale: found 'std' with periodic",
        ),
        (
            {"geographic": ("lon", "lat"), "scale": [1, 2, 1, 1], "method": "windows"},
            "scale: found .* for longitude and latitude",
        ),
        (
            {"periodic": {"hour": 24}, "bounds": [(-180, 180), (-90, 90), (0, 12), (0, 1)]},
            "bounds, feature 2: found .* periodic",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(options, told):
    X, y = table(50)
    with pytest.raises(ValueError, match=told):
        SmoothBetaClassifier(**options).fit(X, y)


@pytest.mark.parametrize(
    "options", [{"periodic": 24}, {"periodic": {1.5: 24}}, {"geographic": "lon"}]
)
def test_what_is_of_no_such_kind_is_refused(options):
    X, y = table(50)
    with pytest.raises(TypeError, match="found"):
        SmoothBetaClassifier(**options).fit(X, y)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ([-180.1, 0], "X row 1, column 0: found -180.1; longitudes from -180 to 360 are allowed"),
        ([361, 0], "X row 1, column 0: found 361.0; longitudes"),
        ([0, 90.5], "X row 1, column 1: found 90.5; latitudes from -90 to 90 are allowed"),
        ([0, -91], "X row 1, column 1: found -91.0; latitudes"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "windows"])
def test_places_that_are_none_are_refused_by_row(place, told, method):
    model = SmoothBetaClassifier(method=method, **PLACES)
    with pytest.raises(ValueError, match=told):
        model.fit([[0, 0], place], [0, 1])
    model.fit([[0, 0], [10, 10], [20, 5]], [0, 1, 0])
    with pytest.raises(ValueError, match=told):
        model.predict_proba([[0, 0], place])
    with pytest.raises(ValueError, match=told):
        model.partial_fit([[0, 0], place], [0, 1])


def test_names_and_numbers_mean_the_same():
    X, y = table(300)
    by_name = SmoothBetaClassifier(periodic={"hour": 24}).fit(X[["hour", "dose"]], y)
    by_number = SmoothBetaClassifier(periodic={0: 24.0}).fit(X[["hour", "dose"]].to_numpy(), y)
    at = X[["hour", "dose"]][:30]
    assert np.array_equal(by_name.predict_proba(at), by_number.predict_proba(at.to_numpy()))
    assert by_name.bounds_[0].tolist() == [0, 24]


def test_maps_of_places_are_drawn_in_proportion():
    import matplotlib

    matplotlib.use("Agg")
    from betafield.plots import FieldDisplay

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"lon": 6 + 4 * rng.random(200), "lat": 59 + 2 * rng.random(200)})
    model = SmoothBetaClassifier(geographic=("lon", "lat")).fit(X, X["lon"] > 8)
    shown = FieldDisplay.from_estimator(model, features=["lon", "lat"], grid_resolution=9)
    assert [axes.get_aspect() for axes in shown.ax_] == pytest.approx([2.0, 2.0], rel=0.02)
    shown.figure_.savefig("/dev/null", format="png")


# With categories, in words, and on the command line -----------------------------------------


def sites(n, seed=0):
    """Return trials at two sites with different effects of the hour."""
    X, _ = table(n, seed)
    rng = np.random.default_rng([seed, 1])
    X = X[["hour"]].assign(site=rng.choice(["bonn", "kiel"], n))
    late = X["hour"] + 6.0 * (X["site"] == "kiel")
    return X, rng.random(n) < 0.5 + 0.3 * np.cos(2 * np.pi * late / 24)


@pytest.mark.parametrize("options", [{}, {"bandwidth": 0.2}])
def test_no_level_has_a_midnight(options, tmp_path):
    X, y = sites(300)
    model = SmoothBetaClassifier(periodic={"hour": 24}, **options).fit(X, y)
    hours = (0.0, 24.0, 24.0 - 1e-9)
    each = [pd.DataFrame({"hour": [h, h], "site": ["bonn", "kiel"]}) for h in hours]
    start, end, before = (model.posterior(one).mean() for one in each)
    assert np.array_equal(start, end)
    if not options:  # windows make steps
        np.testing.assert_allclose(start, before, atol=1e-6)
    path = tmp_path / "model.beta"
    model.save(path)
    asked, _ = sites(20, seed=1)
    for ours, theirs in zip(
        model.posterior(asked).interval(0.9), load(path).posterior(asked).interval(0.9), strict=True
    ):
        assert np.array_equal(ours, theirs)


def test_a_day_of_a_level_can_start_whenever():
    X, y = sites(200, seed=2)
    asked, _ = sites(20, seed=3)
    found = [
        SmoothBetaClassifier(periodic={"hour": 24})
        .fit(X.assign(hour=X["hour"] + shift), y)
        .predict_proba(asked.assign(hour=asked["hour"] + shift))
        for shift in (0.0, 9.25)
    ]
    np.testing.assert_allclose(*found, atol=1e-3)


def test_what_wraps_around_is_told_in_words():
    X, y = table(150)
    for options in ({}, {"bandwidth": 0.3}):
        model = SmoothBetaClassifier(periodic={"hour": 24}, geographic=("lon", "lat"), **options)
        told = [str(each) for each in meaning.told(model.fit(X, y))]
        assert "hour repeats every 24" in told
        assert any(each.startswith("lon and lat are places on Earth") for each in told)


def test_units_and_their_weights():
    rng = np.random.default_rng(0)
    dose = 10 ** rng.uniform(-3, 0, 400)
    X = pd.DataFrame({"dose": dose, "hour": rng.uniform(0, 24, 400), "site": ["a", "b"] * 200})
    y = rng.random(400) < 1 / (1 + (0.02 / dose) ** 1.5)
    model = SmoothBetaClassifier(periodic={"hour": 24}).fit(X, y)
    units = model.units_
    assert units["hour"] == {"period": pytest.approx(1.0)}
    assert units["site"] == {"levels": 1.0}
    assert sum(units["dose"].values()) == pytest.approx(1.0)
    heaviest, weight = next(iter(units["dose"].items()))
    assert weight == max(units["dose"].values())
    word = {"log": "logarithms", "rank": "ranks"}[heaviest]
    said = f"the probability is smooth in {word} of dose (weight {weight:.2g})"
    assert any(str(each).startswith(said) for each in meaning.told(model))
    given = SmoothBetaClassifier(scale="log").fit(X[["dose"]], y)
    assert given.units_ == {"dose": {"log": pytest.approx(1.0)}}
    with pytest.raises(AttributeError, match="units_: windows have a width instead"):
        _ = SmoothBetaClassifier(0.1).fit(X[["dose"]], y).units_


def test_commands_know_hours_and_places(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    X, y = table(200)
    X.assign(late=y.astype(int)).to_csv("trials.csv", index=False)
    asked = ["--features", "hour,lon,lat", "--outcome", "late", "--out", "model.beta"]
    wrapping = ["--periodic", "hour=24", "--geographic", "lon,lat"]
    assert main(["fit", "trials.csv", *asked, *wrapping]) == 0
    model = load("model.beta")
    library = SmoothBetaClassifier(periodic={"hour": 24}, geographic=("lon", "lat"))
    library.fit(X[["hour", "lon", "lat"]], y.astype(int))
    ours, theirs = (each.predict_proba(X[["hour", "lon", "lat"]]) for each in (model, library))
    assert np.array_equal(ours, theirs)
    capfd.readouterr()
    assert main(["info", "model.beta"]) == 0
    told = capfd.readouterr().out
    for words in ("hour repeats every 24", "lon and lat are places on Earth", "hour=24", "lon,lat"):
        assert words in told
    points = pd.DataFrame({"hour": [0.0, 24.0], "lon": [180.0, -180.0], "lat": [10.0, 10.0]})
    points.to_csv("points.csv", index=False)
    assert main(["predict", "model.beta", "--at", "points.csv", "--out", "answers.csv"]) == 0
    answers = pd.read_csv("answers.csv")
    assert answers["mean"][0] == answers["mean"][1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--periodic", "hour"], "--periodic: found 'hour'; NAME=PERIOD is needed"),
        (["--periodic", "hour=day"], "--periodic: found 'hour=day'; a period is a number"),
        (["--periodic", "hour=0"], "--periodic, feature 'hour': found 0"),
        (["--periodic", "day=24"], "--periodic: found 'day'; the features are hour, lon, lat"),
        (["--geographic", "lon"], "--geographic: found"),
        (["--geographic", "lon,hour"], "latitudes from -90 to 90|row"),
        (["--geographic", "lon,lat", "--periodic", "lon=360"], "--periodic: found 'lon', which is"),
    ],
)
def test_commands_refuse_what_cannot_wrap_around(arguments, told, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    X, y = table(60)
    X.assign(hour=X["hour"] + 100.0, late=y.astype(int)).to_csv("trials.csv", index=False)
    asked = ["--features", "hour,lon,lat", "--outcome", "late", "--out", "model.beta"]
    assert main(["fit", "trials.csv", *asked, *arguments]) != 0
    error = capfd.readouterr().err
    assert re.search(told, error), error
    assert not (tmp_path / "model.beta").exists()
