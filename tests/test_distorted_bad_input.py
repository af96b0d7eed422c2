"""Bad contexts: the error says where, what and which rule; the model stays unchanged."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests import refusing
from tests.refusing import T, X, Y, make

from betafield import contexts

C = np.column_stack([np.linspace(0.0, 0.4, T), np.linspace(0.5, 1.0, T)])
POOLS = contexts.pooled([1, 2, 3, 4] * 2)


def changed(values, at, value):
    """Return a copy with one cell replaced."""
    values = np.array(values, dtype=np.float64 if isinstance(value, float) else object)
    values[at] = value
    return values


def knowledge(model):
    """Return the model's contents and its answers, to the bit."""
    posterior = model.posterior(X)
    held = {name: id(value) for name, value in vars(model).items()}
    return held, model.n_trials_, posterior.mean().tobytes(), posterior.ppf(0.3).tobytes()


def refused(model, *said):
    return refusing.refused(model, ValueError, *said, knowledge=knowledge)


LEARN = {
    "fit": lambda model, context: model.fit(X, Y, context=context),
    "partial_fit": lambda model, context: model.partial_fit(X, Y, context=context),
    "fit_counts": lambda model, context: model.fit_counts(X, Y, 2, context=context),
    "partial_fit_counts": lambda model, context: model.partial_fit_counts(X, Y, 2, context=context),
}

# Coefficients.

AT_0, AT_1 = "(success probability at π = 0)", "(success probability at π = 1)"
BAD_CONTEXTS = {
    "above 1": (changed(C, (3, 1), 1.25), ["context row 3, column 1", AT_1, "1.25", "[0, 1]"]),
    "below 0": (changed(C, (2, 0), -0.1), ["context row 2, column 0", AT_0, "-0.1", "[0, 1]"]),
    "in percent": (100 * C, ["context row 0, column 1", AT_1, "50.0", "[0, 1]"]),
    "NaN": (changed(C, (5, 0), np.nan), ["context row 5, column 0", "NaN", "[0, 1]"]),
    "infinite": (changed(C, (7, 1), np.inf), ["context row 7, column 1", "inf", "[0, 1]"]),
    "None": (changed(C, (6, 1), None), ["context row 6, column 1", "NaN", "[0, 1]"]),
    "one for all": ((0.2, 1.5), ["context column 1", AT_1, "1.5", "[0, 1]"]),
    "of a polynomial": (
        changed(POOLS, (4, 2), 1.5),
        ["context row 4, column 2", "Bernstein coefficient 2 of degree 4", "1.5", "[0, 1]"],
    ),
    "text": (changed(C, (4, 1), "high"), ["context", "'high'", "number"]),
    "the name of one": ("background", ["context", "'background'", "number"]),
    "complex numbers": (C + 1j, ["context row 0, column 0", "1j", "must be a number"]),
    "too few rows": (C[:5], ["context: found 5 rows", "X has 8"]),
    "too many rows": (np.vstack([C, C]), ["context: found 16 rows", "X has 8"]),
    "three dimensions": (C[None], ["context: found shape (1, 8, 2)", "one row"]),
    "one number per row": (C[:, 0], ["context: found shape (8,)", "8 rows", "contexts.background"]),
    "a number": (0.5, ["context: found an array of shape ()", "at least one coefficient"]),
    "nothing": ([], ["context: found an array of shape (0,)", "at least one coefficient"]),
    "no columns": (C[:, :0], ["context: found an array of shape (8, 0)", "one coefficient"]),
    "rows of unequal length": ([[0, 1], [0, 1, 1]], ["context: ", "different lengths"]),
    "of a degree too high": (np.full((T, 1002), 0.5), ["context: found 1002 coefficients", "1000"]),
}


@pytest.mark.parametrize("case", BAD_CONTEXTS)
@pytest.mark.parametrize("method", LEARN)
def test_contexts_that_are_no_coefficients_are_refused(case, method):
    context, said = BAD_CONTEXTS[case]
    for model in (make().fit(X, Y), make().fit(X, Y, context=C), make().fit(X, Y, context=POOLS)):
        with refused(model, *said):
            LEARN[method](model, context)


@pytest.mark.parametrize("case", BAD_CONTEXTS)
def test_a_first_fit_with_bad_contexts_leaves_an_unfitted_model(case):
    model = make()
    with pytest.raises(ValueError, match="context"):
        model.fit(X, Y, context=BAD_CONTEXTS[case][0])
    assert set(vars(model)) == set(model.get_params())


def test_the_highest_degree_allowed_is_learned_from():
    context = np.tile(contexts.pooled(1000, 0.9, 0.8), (T, 1))
    assert make().fit(X, Y, context=context).n_trials_ == T


# Impossible outcomes.


@pytest.mark.parametrize("share", ["exact", "mean"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("row", "context", "said"),
    [
        (3, (0.0, 0.0), ["context row 3", "[0.0, 0.0]", "is 0", "every π", "a success"]),
        (5, (1.0, 1.0), ["context row 5", "[1.0, 1.0]", "is 1", "every π", "a failure"]),
    ],
)
def test_an_outcome_that_cannot_happen_is_refused(share, method, row, context, said):
    model = make(sharing=share).fit(X, Y, context=C)
    with refused(model, *said):
        LEARN[method](model, np.vstack([C[:row], [context], C[row + 1 :]]))


def test_the_first_of_several_impossible_outcomes_is_named():
    model = make().fit(X, Y, context=C)
    wrong = np.vstack([C[:1], [[0.0, 0.0], [1.0, 1.0]], C[3:]])
    with refused(model, "context row 1", "a success"):
        model.fit(X, Y, context=wrong)


@pytest.mark.parametrize(("won", "context"), [(1, (0.0, 0.0, 0.0)), (2, (1.0,)), (0, (1.0, 1.0))])
def test_counts_that_cannot_happen_are_refused(won, context):
    model = make().fit(X, Y)
    with refused(model, "context row 0", "cannot happen"):
        model.partial_fit_counts(X, won, 3, context=context)


@pytest.mark.parametrize("share", ["exact", "mean"])
def test_what_can_happen_under_a_certain_context_is_let_through(share):
    certain = np.column_stack([Y, Y]).astype(float)
    model = make(sharing=share).fit(X, Y, context=C)
    before = model.posterior(X).mean()
    model.partial_fit(X, Y, context=certain)
    assert model.n_trials_ == T
    np.testing.assert_array_equal(model.posterior(X).mean(), before)


@pytest.mark.parametrize("share", ["exact", "mean"])
def test_an_outcome_of_weight_zero_may_be_impossible(share):
    weight = np.ones(T)
    weight[3] = 0.0
    model = make(sharing=share).fit(X, Y, weight, np.vstack([C[:3], [[0.0, 0.0]], C[4:]]))
    rest = np.arange(T) != 3
    without = make(sharing=share).fit(X[rest], Y[rest], context=C[rest])
    np.testing.assert_array_equal(model.posterior(X).mean(), without.posterior(X).mean())


@pytest.mark.parametrize("share", ["exact", "mean"])
@pytest.mark.parametrize("context", [(0.3, 0.3), (0.5,), (0.7, 0.7, 0.7, 0.7)])
def test_contexts_that_say_nothing_are_refused_at_first(share, context):
    model = make(sharing=share)
    with pytest.raises(
        ValueError, match=r"context: every trial has equal coefficients.*at least one"
    ):
        model.fit(X, Y, context=context)
    assert set(vars(model)) == set(model.get_params())


# Classes.


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_contexts_need_two_classes(method):
    three = np.array([0, 1, 2, 0, 1, 2, 0, 1])
    model = make().fit(X, three)
    before = model.posterior(X).alpha.tobytes()
    with pytest.raises(ValueError, match=r"context: .*3 classes.*two"):
        getattr(model, method)(X, three, context=C)
    assert model.posterior(X).alpha.tobytes() == before
    assert model.n_trials_ == T


# Sharing.


@pytest.mark.parametrize("value", ["Exact", "average", "", None, 1, True])
def test_a_sharing_that_means_nothing_is_refused(value):
    model = make().fit(X, Y, context=C)
    model.set_params(sharing=value)
    for learn in LEARN.values():
        with refused(model, "sharing: ", repr(value), "'exact'", "'mean'"):
            learn(model, C)


def test_mean_sharing_is_for_affine_contexts():
    model = make(sharing="mean").fit(X, Y, context=C)
    for learn in LEARN.values():
        # A pool of one is affine, a pool of two is not.
        with refused(model, "context row 1", "degree 4", "sharing='mean'", "sharing='exact'"):
            learn(model, POOLS)


def test_mean_sharing_takes_affine_contexts_of_any_degree():
    raised = make(sharing="mean").fit(X, Y, context=contexts.elevate(C, 4))
    plain = make(sharing="mean").fit(X, Y, context=C)
    np.testing.assert_allclose(raised.posterior(X).mean(), plain.posterior(X).mean(), rtol=1e-12)


def test_mean_sharing_lets_polynomials_of_weight_zero_pass():
    context = np.vstack([contexts.elevate(C[:-1], 2), [0.0, 1.0, 1.0]])
    weight = np.r_[np.ones(T - 1), 0.0]
    model = make(sharing="mean").fit(X, Y, weight, context)
    plain = make(sharing="mean").fit(X[:-1], Y[:-1], context=C[:-1])
    np.testing.assert_allclose(model.posterior(X).mean(), plain.posterior(X).mean(), rtol=1e-12)


@pytest.mark.parametrize(("first", "then"), [("exact", "mean"), ("mean", "exact")])
def test_sharing_cannot_change_between_batches(first, then):
    model = make(sharing=first).partial_fit(X, Y, context=C)
    model.set_params(sharing=then)
    said = ["sharing: ", f"found {then!r}", f"kept for {first!r}", "fit all trials again"]
    with refused(model, *said):
        model.partial_fit(X, Y, context=C)
    with refused(model, *said):
        model.partial_fit_counts(X, Y, 2, context=C)
    fresh = make(sharing=then).fit(X, Y, context=C)
    np.testing.assert_array_equal(
        model.fit(X, Y, context=C).posterior(X).mean(), fresh.posterior(X).mean()
    )


@pytest.mark.parametrize("then", ["exact", "mean"])
def test_sharing_may_change_before_the_first_contexts(then):
    model = make(sharing="mean" if then == "exact" else "exact").partial_fit(X, Y)
    model.set_params(sharing=then).partial_fit(X, Y, context=C)
    fresh = make(sharing=then).partial_fit(X, Y, context=C).partial_fit(X, Y)
    np.testing.assert_array_equal(model.posterior(X).mean(), fresh.posterior(X).mean())


@pytest.mark.parametrize(("ours", "theirs"), [("exact", "mean"), ("mean", "exact")])
def test_models_that_share_differently_are_not_merged(ours, theirs):
    model, other = (make(sharing=share).fit(X, Y, context=C) for share in (ours, theirs))
    with refused(model, "other: ", f"its sharing is {theirs!r}", f"here it is {ours!r}"):
        model.merge(other)


@pytest.mark.parametrize("pure", [(0.0, 0.5), (0.5, 1.0)])
def test_sharing_cannot_change_after_contexts_that_happened_to_be_sure(pure):
    # For "exact", a success under (0, 0.5) is like any other, but its context is in every mean.
    outcome = np.full(T, int(pure[0] == 0.0))
    model = make().partial_fit(X, outcome, classes=[0, 1], context=pure)
    other = make(sharing="mean").fit(X, Y, context=C)
    with refused(model, "sharing"):
        model.merge(other)
    model.set_params(sharing="mean")
    with refused(model, "sharing: ", "again"):
        model.partial_fit(X, Y, context=C)


@pytest.mark.parametrize(("ours", "theirs"), [("exact", "mean"), ("mean", "exact")])
def test_a_model_without_contexts_merges_with_either_sharing(ours, theirs):
    plain, other = make(sharing=ours).fit(X, Y), make(sharing=theirs).fit(X, Y, context=C)
    both = make(sharing=theirs).fit(X, Y, context=C).partial_fit(X, Y)
    expected = both.posterior(X).mean()
    np.testing.assert_array_equal(plain.merge(other).posterior(X).mean(), expected)
    plain = make(sharing=ours).fit(X, Y)
    np.testing.assert_array_equal(other.merge(plain).posterior(X).mean(), expected)


# Too many trials to count.


@pytest.mark.parametrize("share", ["exact", "mean"])
def test_more_distorted_trials_than_can_be_counted_are_refused(share):
    model = make(sharing=share).fit(X, Y, context=C)
    with refused(model, "trials", "at most", "contexts"):
        model.partial_fit_counts(X, 0, 2**40, context=C)
    model.partial_fit_counts(X, 0, 2**30, context=C)
    with refused(model, "trials", "at most"):
        model.partial_fit_counts(X, 0, 2**31, context=C)
    with refused(model, "trials", "at most"):
        model.partial_fit_counts(X, 0, 2**40)


# Contexts may come in many forms.

FORMS = {
    "lists": lambda c: c.tolist(),
    "tuples": lambda c: tuple(map(tuple, c.tolist())),
    "pandas": lambda c: pd.DataFrame(c, columns=["low", "high"], index=np.arange(T)[::-1]),
    "polars": lambda c: pl.DataFrame(c, schema=["low", "high"]),
    "pyarrow": lambda c: pl.DataFrame(c, schema=["low", "high"]).to_arrow(),
    "objects": lambda c: c.astype(object),
    "fortran": np.asfortranarray,
    "read-only": lambda c: np.broadcast_to(c, (1, T, 2))[0],
    "a higher degree": lambda c: contexts.elevate(c, 2),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", LEARN)
def test_contexts_may_come_as_any_table(form, method):
    # Eighths, whose averages are exact.
    context = np.column_stack([np.arange(T) / 16, 1 - np.arange(T) / 32])
    start = make().fit(X, Y)
    expected = LEARN[method](make().fit(X, Y), context).posterior(X).mean()
    found = LEARN[method](start, FORMS[form](context)).posterior(X).mean()
    np.testing.assert_array_equal(found, expected)


def test_one_context_may_stand_for_all_rows():
    expected = make().fit(X, Y, context=np.tile((0.2, 0.9), (T, 1))).posterior(X).mean()
    for one in ((0.2, 0.9), [0.2, 0.9], np.array([0.2, 0.9]), pd.Series([0.2, 0.9])):
        np.testing.assert_array_equal(make().fit(X, Y, context=one).posterior(X).mean(), expected)


@pytest.mark.parametrize("share", ["exact", "mean"])
def test_the_callers_contexts_are_never_changed(share):
    context, kept = C.copy(), C.copy()
    model = make(sharing=share).fit(X, Y, context=context)
    model.partial_fit(X, Y, context=context).posterior(X)
    np.testing.assert_array_equal(context, kept)
    before = model.posterior(X).mean()
    context[:] = 0.5
    np.testing.assert_array_equal(model.posterior(X).mean(), before)
