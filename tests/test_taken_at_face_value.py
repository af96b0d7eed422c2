"""Masked values, complex numbers, dates and text are refused by name, in every argument."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from betafield import FieldCalibratedClassifier, Prior, SmoothBetaClassifier, contexts, guarantees
from betafield.testing import coverage

T = 8
X = np.linspace(0.0, 1.0, T)[:, None]
Y = np.array([0, 1] * 4)
DATES = np.arange(T).astype("M8[D]")


def masked(values):
    """Return the values with row 3 masked, and a value such as -999 below the mask."""
    out = np.ma.array(np.array(values), mask=np.zeros(np.shape(values), dtype=bool))
    out[3] = np.ma.masked
    out.data[3] = 0
    return out


def model():
    return SmoothBetaClassifier(0.3, bounds=[(0.0, 1.0)])


ONE_A_ROW = {
    "X": lambda v: model().fit([[each] for each in v], Y),
    "y": lambda v: model().fit(X, v),
    "sample_weight": lambda v: model().fit(X, Y, sample_weight=v),
    "successes": lambda v: model().fit_counts(X, v, 4),
    "trials": lambda v: model().fit_counts(X, 0, v),
    "prior": lambda v: SmoothBetaClassifier(0.3, prior=(v, 1.0)).fit(X, Y),
    "factor": contexts.attenuated,
    "success": lambda v: contexts.likelihood([0.0, 1.0], v),
    "p": lambda v: contexts.probability([0.0, 1.0], v),
}
BAD = {
    "masked": lambda: masked(np.ones(T)),
    "masked whole numbers": lambda: masked(Y),
    "masked in a list": lambda: [*Y[:3].tolist(), np.ma.masked, *Y[4:].tolist()],
    "complex": lambda: Y + 1j,
    "dates": lambda: DATES,
    "no dates": lambda: np.full(T, np.datetime64("NaT", "D")),
    "spans of time": lambda: DATES - DATES[0],
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("name", ONE_A_ROW)
def test_what_is_no_number_is_refused_by_name(name, case):
    with pytest.raises((ValueError, TypeError), match=rf"^{name}"):
        ONE_A_ROW[name](BAD[case]())


@pytest.mark.parametrize("name", ["sample_weight", "successes", "trials", "prior", "factor", "p"])
def test_digits_are_text(name):
    with pytest.raises(ValueError, match=rf"^{name}.*found '1'"):
        ONE_A_ROW[name](["1"] * T)


@pytest.mark.parametrize("name", ["y", "sample_weight", "successes", "trials", "factor", "p"])
def test_a_masked_row_is_named(name):
    with pytest.raises(ValueError, match=rf"^{name} row 3: found a masked value"):
        ONE_A_ROW[name](masked(Y))


NULLS = {
    "pandas, nullable": lambda v: pd.Series(v, dtype="Int64"),
    "pandas, Arrow": lambda v: pd.Series(v, dtype="int64[pyarrow]"),
    "polars": pl.Series,
    "pyarrow": lambda v: pa.chunked_array([v]),
}


@pytest.mark.parametrize("case", NULLS)
@pytest.mark.parametrize("name", sorted(ONE_A_ROW.keys() - {"X", "prior"}))
def test_nulls_of_every_library_are_refused(name, case):
    values = [*Y[:3].tolist(), None, *Y[4:].tolist()]
    with pytest.raises(ValueError, match=rf"^{name} row 3: found (NaN|None|<NA>)"):
        ONE_A_ROW[name](NULLS[case](values))


TABLES = {
    "pandas, nullable": lambda v: pd.DataFrame({"a": pd.array(v, dtype="Float64")}),
    "polars": lambda v: pl.DataFrame({"a": v}),
    "pyarrow": lambda v: pa.table({"a": v}),
}


@pytest.mark.parametrize("case", TABLES)
def test_nulls_in_tables_are_refused_by_their_column(case):
    table = TABLES[case]([*X[:3, 0].tolist(), None, *X[4:, 0].tolist()])
    with pytest.raises(ValueError, match=r"^X row 3, column 'a': found NaN"):
        model().fit(table, Y)


def test_masked_tables_are_refused():
    with pytest.raises(ValueError, match=r"^X row 3, column 0: found a masked value"):
        model().fit(masked(X), Y)
    with pytest.raises(ValueError, match=r"^context row 3, column 0: found a masked value"):
        model().fit(X, Y, context=masked(np.tile([0.0, 1.0], (T, 1))))
    with pytest.raises(ValueError, match=r"^bounds row 0, column 1: found a masked value"):
        SmoothBetaClassifier(bounds=np.ma.array([[0.0, 1.0]], mask=[[0, 1]])).fit(X, Y)
    with pytest.raises(ValueError, match=r"^scale row 0: found a masked value"):
        SmoothBetaClassifier(scale=np.ma.array([1.0], mask=[True])).fit(X, Y)
    with pytest.raises(ValueError, match=r"^prior.*masked"):
        SmoothBetaClassifier(0.3, prior=np.ma.array([1.0, 1.0], mask=[0, 1])).fit(X, Y)
    with pytest.raises(ValueError, match=r"^prior.*masked"):
        SmoothBetaClassifier(0.3, prior=Prior(masked(np.full(T, 0.5)), 0.01)).fit(X, Y).posterior(X)
    with pytest.raises(ValueError, match=r"^prior.*masked"):
        SmoothBetaClassifier(0.3, prior=lambda _: (masked(np.ones(T)), 1)).fit(X, Y).posterior(X)


def test_masked_values_calibrate_nothing():
    calibrated = FieldCalibratedClassifier()
    with pytest.raises(ValueError, match=r"^X row 3, column 0: found a masked value"):
        calibrated.fit(masked(X), Y)
    with pytest.raises(ValueError, match=r"^y row 3: found a masked value"):
        calibrated.fit(X, masked(Y))
    with pytest.raises(ValueError, match=r"^X row 3, column 0: found a masked value"):
        calibrated.fit(np.tile(X, (3, 1)), np.tile(Y, 3)).posterior(masked(X))


def test_a_mask_that_hides_nothing_is_no_mask():
    open_ = np.ma.array(X, mask=np.zeros_like(X, dtype=bool))
    one, other = model().fit(open_, Y), model().fit(X, Y)
    assert one.predict_proba(open_).tobytes() == other.predict_proba(X).tobytes()


# How many numbers make one context.


@pytest.mark.parametrize(("n", "size"), [(40, 39), (40, 40), (40, 41), (40, 33), (3, 33), (8, 8)])
def test_many_numbers_are_one_context_or_one_a_row(n, size):
    points, outcomes = np.linspace(0.0, 1.0, n)[:, None], np.arange(n) % 2
    coefficients = np.linspace(0.1, 0.9, size)
    said = (
        rf"^context: found shape \({size},\) where X has {n} rows.*\(1, p \+ 1\)"
        r".*one number per row"
    )
    with pytest.raises(ValueError, match=said):
        model().fit(points, outcomes, context=coefficients)
    learned = model().fit(points, outcomes, context=coefficients[None])
    each = model().fit(points, outcomes, context=np.tile(coefficients, (n, 1)))
    assert learned.predict_proba(points).tobytes() == each.predict_proba(points).tobytes()


def test_up_to_32_numbers_are_one_context():
    points, outcomes = np.linspace(0.0, 1.0, 40)[:, None], np.arange(40) % 2
    pool = contexts.pooled(31)
    one = model().fit(points, outcomes, context=pool)
    each = model().fit(points, outcomes, context=np.tile(pool, (40, 1)))
    assert one.predict_proba(points).tobytes() == each.predict_proba(points).tobytes()


# Values at the limits of floats.


def test_a_width_that_holds_all_trials_has_the_bound_of_all_of_them():
    # n = t, with no bias but that of the prior: 1/(4(t+3)) + t/(4(t+2)²) + 1/(t+2)².
    expected = 1 / 412 + 100 / (4 * 102**2) + 1 / 102**2
    for lipschitz in (1e-200, 5e-324):
        assert guarantees.error_bound(100, 1, lipschitz) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("lipschitz", "bandwidth"), [(1, 1e308), (1e308, 1e308), (1e308, 1.0)])
def test_the_error_of_a_probability_is_at_most_one(lipschitz, bandwidth):
    assert guarantees.error_bound(100, 1, lipschitz, bandwidth) == 1.0


def test_where_no_trial_is_near_the_bound_is_that_of_the_prior():
    # n = 0: variance and squared bias of Beta(1, 1), 1/12 + 1/4.
    assert guarantees.error_bound(100, 1, 1.0, 5e-324) == pytest.approx(1 / 3, rel=1e-12)


def test_few_trials_are_needed_if_nothing_changes():
    # t with 1/(4(t+3)) + t/(4(t+2)²) + 1/(t+2)² ≤ 0.01.
    t = guarantees.trials_needed(0.01, 1, 1e-200)
    bounds = [1 / (4 * (n + 3)) + n / (4 * (n + 2) ** 2) + 1 / (n + 2) ** 2 for n in (t - 1, t)]
    assert bounds[1] <= 0.01 < bounds[0]


EDGES = {
    "prior, too small": (lambda: SmoothBetaClassifier(prior=(5e-324, 1)).fit(X, Y), "prior"),
    "prior, too large": (lambda: SmoothBetaClassifier(prior=(1e300, 1)).fit(X, Y), "prior"),
    "prior, huge": (lambda: SmoothBetaClassifier(prior=(10**400, 1)).fit(X, Y), "prior"),
    "bound's prior": (lambda: guarantees.error_bound(9, 1, 1, prior=(1e308, 1e308)), "prior"),
    "bound's tiny prior": (lambda: guarantees.error_bound(0, 1, 1, prior=(5e-324,) * 2), "prior"),
    "elevate": (lambda: contexts.elevate([0, 1], 10**9), "degree"),
    "elevate, huge": (lambda: contexts.elevate([0, 1], 10**400), "degree"),
    "elevate, half": (lambda: contexts.elevate([0, 1], 2.5), "degree"),
    "elevate, array": (lambda: contexts.elevate([0, 1], np.ones(2)), "degree"),
    "pooled": (lambda: contexts.pooled(1e18), "size"),
    "pooled, huge": (lambda: contexts.pooled(10**400), "size"),
    "X": (lambda: model().fit([[10**400]] * T, Y), "X row 0, column 0"),
    "weights": (lambda: model().fit(X, Y, sample_weight=[10**400] * T), "sample_weight row 0"),
    "counts": (lambda: model().fit_counts(X, 0, [10**400] * T), "trials row 0"),
    "bandwidth": (lambda: SmoothBetaClassifier(10**400).fit(X, Y), "bandwidth"),
    "lipschitz": (lambda: SmoothBetaClassifier(lipschitz=10**400).fit(X, Y), "lipschitz"),
    "bounds": (
        lambda: SmoothBetaClassifier(bounds=[(0, 10**400)]).fit(X, Y),
        "bounds row 0, column 1",
    ),
    "scale": (lambda: SmoothBetaClassifier(scale=[10**400]).fit(X, Y), "scale row 0"),
    "n_jobs": (lambda: SmoothBetaClassifier(n_jobs=10**400).fit(X, Y), "n_jobs"),
    "t": (lambda: guarantees.error_bound(10**400, 1, 1), "t"),
    "t, time": (lambda: guarantees.error_bound(np.timedelta64(5, "s"), 1, 1), "t"),
    "d": (lambda: guarantees.rate(10**400), "d"),
    "error": (lambda: guarantees.trials_needed(10**400, 1, 1), "error"),
    "metric": (lambda: SmoothBetaClassifier(metric=np.array(["a", "b"])).fit(X, Y), "metric"),
    "method": (lambda: SmoothBetaClassifier(method=np.ones(2)).fit(X, Y), "method"),
    "sharing": (lambda: SmoothBetaClassifier(sharing=np.array(["a", "b"])).fit(X, Y), "sharing"),
    "sharing, list": (lambda: SmoothBetaClassifier(sharing=[]).fit(X, Y), "sharing"),
    "bound's metric": (lambda: guarantees.error_bound(9, 1, 1, metric=np.ones(2)), "metric"),
    "certificate": (lambda: guarantees.certificate(None, X, 1.0), "model"),
    "certificate's width": (lambda: guarantees.certificate(model(), X, 1.0, width=1j), "width"),
    "coverage": (lambda: coverage(None, t=10, runs=1), "function"),
    "coverage's t": (lambda: coverage(lambda P: P[:, 0], t=10**400), "t"),
    "coverage's model": (lambda: coverage(lambda P: P[:, 0], model=3), "model"),
    "coverage's seed": (lambda: coverage(lambda P: P[:, 0], random_state="a"), "random_state"),
}


@pytest.mark.parametrize("case", EDGES)
def test_values_at_the_edge_are_refused_by_name(case):
    call, name = EDGES[case]
    with pytest.raises((ValueError, TypeError), match=rf"^{name}: found"):
        call()


@pytest.mark.parametrize("prior", [(2.0**-62, 2.0**-62), (2.0**-62, 1.0), (2.0**62, 1.0)])
@pytest.mark.parametrize("context", [None, (0.2, 0.9), (0.0, 1.0, 1.0)])
def test_the_smallest_and_largest_priors_can_be_weighed(prior, context):
    for options in ({"bandwidth": 0.5}, {"bandwidth": "loo"}):
        learned = SmoothBetaClassifier(prior=prior, **options).fit(X, Y, context=context)
        mean = learned.posterior(X).mean()
        assert ((mean >= 0.0) & (mean <= 1.0)).all()
        if prior[0] > 1.0:  # eight trials are negligible beside it
            assert mean == pytest.approx(np.ones(T), abs=1e-9)


def test_almost_no_prior_leaves_the_share_of_successes():
    learned = SmoothBetaClassifier(1.0, prior=(2.0**-62, 2.0**-62)).fit(X, Y)
    assert learned.posterior([[0.5]]).mean() == pytest.approx([0.5], rel=1e-12)
    classes = SmoothBetaClassifier("loo", prior=(2.0**-62, 2.0**-62)).fit(
        X, [0, 1, 2, 0, 1, 2, 0, 1]
    )
    assert np.isfinite(classes.predict_proba(X)).all()
