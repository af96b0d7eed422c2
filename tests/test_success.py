"""Which class is the success: everything that depends on it must follow, to the bit."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from betafield import SmoothBetaClassifier, contexts, load, observed
from betafield.cli import outcomes
from betafield.decisions import Everywhere, Experiment, FieldBandit
from betafield.survey import Question

OPTIONS = [{}, {"bandwidth": 0.3}, {"method": "process"}, {"bandwidth": 0.3, "sharing": "mean"}]
Q = np.linspace(0.0, 1.0, 7)[:, None]


def trials(t=120, seed=0):
    """Return trials, and whether each was right: often at 0, rarely at 1."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 33, size=(t, 1)) / 32
    return X, rng.uniform(size=t) < 0.9 - 0.8 * X[:, 0]


def spelled(right):
    return np.where(right, "correct", "incorrect")


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("context", [None, contexts.guess_lapse(0.25, 0.05)])
def test_a_named_success_is_what_true_is(options, context):
    """Booleans have success last, so labels in the opposite order must give the same."""
    X, right = trials()
    plain = SmoothBetaClassifier(**options).fit(X, right, context=context)
    named = SmoothBetaClassifier(**options, pos_label="correct")
    named.fit(X, spelled(right), context=context)
    assert named.classes_.tolist() == ["correct", "incorrect"]
    assert named.pos_label_ == "correct"
    ours, theirs = named.posterior(Q), plain.posterior(Q)
    np.testing.assert_array_equal(ours.mean(), theirs.mean())
    np.testing.assert_array_equal(ours.interval(0.9), theirs.interval(0.9))
    np.testing.assert_array_equal(named.predict_proba(Q), plain.predict_proba(Q)[:, ::-1])
    np.testing.assert_array_equal(named.predict(Q) == "correct", plain.predict(Q))
    if context is None:
        np.testing.assert_array_equal(named.band(Q, 1.0), plain.band(Q, 1.0))
        np.testing.assert_array_equal(
            observed.observed(named).successes, observed.observed(plain).successes
        )


def test_the_alphabet_decides_only_if_nothing_is_said():
    X, right = trials()
    model = SmoothBetaClassifier(0.3).fit(X, spelled(right))
    assert model.pos_label_ == "incorrect"
    other = SmoothBetaClassifier(0.3, pos_label="correct").fit(X, spelled(right))
    np.testing.assert_array_equal(model.posterior(Q).alpha, other.posterior(Q).beta)
    np.testing.assert_allclose(model.predict_proba(Q), other.predict_proba(Q), rtol=1e-15)


@pytest.mark.parametrize("options", OPTIONS[:2])
def test_it_survives_files_copies_and_more_trials(options, tmp_path):
    X, right = trials()
    y = spelled(right)
    model = SmoothBetaClassifier(**options, bounds=[(0, 1)], pos_label="correct").fit(X, y)
    model.save(tmp_path / "m.beta")
    again = load(tmp_path / "m.beta")
    assert again.pos_label == "correct"
    others = [again, copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    parts = clone(model).partial_fit(X[:50], y[:50], classes=["incorrect", "correct"])
    others.append(parts.partial_fit(X[50:], y[50:]).settle())
    halves = [clone(model).fit(X[::2], y[::2]), clone(model).fit(X[1::2], y[1::2])]
    others.append(halves[0].merge(halves[1]).settle())
    for other in others:
        np.testing.assert_array_equal(other.posterior(Q).mean(), model.posterior(Q).mean())
        assert other.pos_label_ == "correct"


@pytest.mark.parametrize(
    ("labels", "label"),
    [([False, True], False), ([0, 1], 0), ([b"no", b"yes"], b"no"), ([1.0, 2.0], 1), ([3, 7], 3)],
)
def test_labels_of_every_kind_are_kept(labels, label, tmp_path):
    model = SmoothBetaClassifier(0.5, pos_label=label).fit([[0], [1]], np.array(labels))
    model.save(tmp_path / "m.beta")
    again = load(tmp_path / "m.beta")
    assert again.pos_label_ == label
    assert type(again.pos_label) is type(label)


def test_files_learn_the_same(tmp_path):
    X, right = trials()
    y = spelled(right)
    lines = [f"{x},{label}" for x, label in zip(X[:, 0], y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["x,answer", *lines]))
    given = SmoothBetaClassifier(0.3, pos_label="correct")
    model = given.fit_files(tmp_path / "t.csv", outcome="answer")
    twin = SmoothBetaClassifier(0.3).fit(X, right)
    at = pd.DataFrame({"x": Q[:, 0]})
    np.testing.assert_array_equal(model.posterior(at).alpha, twin.posterior(Q).alpha)


def test_dask_learns_the_same():
    import dask.array as da

    from betafield.dask import SmoothBetaClassifier as Spread

    X, right = trials()
    chance = contexts.guess_lapse(0.25)
    many = da.from_array(X, chunks=(40, 1))
    y = da.from_array(spelled(right), chunks=40)
    for options in OPTIONS[:2]:
        model = Spread(**options, pos_label="correct").fit(many, y, context=chance)
        twin = SmoothBetaClassifier(**options).fit(X, right, context=chance)
        np.testing.assert_array_equal(model.posterior(Q).mean(), twin.posterior(Q).mean())
        told = model.predict_proba(da.from_array(Q, chunks=(3, 1))).compute()
        np.testing.assert_array_equal(told, twin.predict_proba(Q)[:, ::-1])
        decided = model.predict(da.from_array(Q, chunks=(3, 1))).compute()
        np.testing.assert_array_equal(decided == "correct", twin.predict(Q))
        assert model.compute().pos_label_ == "correct"
        assert model.score(many, y) == twin.score(X, right)


# Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["1", "right", 2, float("nan"), None])
def test_a_label_that_is_no_class_is_refused(label):
    model = SmoothBetaClassifier(0.5, pos_label=label)
    if label is None:
        return
    with pytest.raises(ValueError, match=r"pos_label: found .*; the classes are \[0, 1\]"):
        model.fit([[0], [1]], [0, 1])
    assert not hasattr(model, "_field_")


@pytest.mark.parametrize("label", [["yes"], {}, np.array(["yes"]), object()])
def test_what_is_no_label_is_refused(label):
    with pytest.raises(ValueError, match="pos_label: found"):
        SmoothBetaClassifier(0.5, pos_label=label).fit([[0], [1]], ["no", "yes"])


def test_three_classes_have_no_success():
    model = SmoothBetaClassifier(0.5, pos_label="a")
    with pytest.raises(ValueError, match=r"pos_label: found 'a' where there are 3 classes.*y =="):
        model.fit([[0], [1], [2]], ["a", "b", "c"])
    model.set_params(pos_label=None).fit([[0], [1], [2]], ["a", "b", "c"])
    with pytest.raises(AttributeError, match="pos_label_: there are 3 classes"):
        _ = model.pos_label_


def test_counts_have_a_success_of_their_own():
    for label in (None, 1, True):
        model = SmoothBetaClassifier(0.5, pos_label=label).fit_counts([[0], [1]], [3, 1], [4, 5])
        assert model.pos_label_ == 1
    with pytest.raises(ValueError, match="pos_label: found 0; counts have the classes 0 and 1"):
        SmoothBetaClassifier(0.5, pos_label=0).fit_counts([[0], [1]], [3, 1], [4, 5])


def test_the_success_cannot_change_on_the_way():
    model = SmoothBetaClassifier(0.5, bounds=[(0, 1)]).fit([[0], [1]], ["no", "yes"])
    other = SmoothBetaClassifier(0.5, bounds=[(0, 1)], pos_label="no").fit(
        [[0], [1]], ["no", "yes"]
    )
    before = model.posterior([[0.5]]).alpha.tolist()
    with pytest.raises(ValueError, match="its pos_label_ is no, here it is yes"):
        model.merge(other)
    model.set_params(pos_label="no")
    assert model.posterior([[0.5]]).alpha.tolist() == before
    for learn in (
        lambda: model.partial_fit([[0.5]], ["no"]),
        lambda: model.partial_fit_counts([[0.5]], [1], [1]),
        model.settle,
    ):
        with pytest.raises(ValueError, match="pos_label: found 'no'; the trials so far were"):
            learn()
    assert model.posterior([[0.5]]).alpha.tolist() == before


# Everything that depends on the success ------------------------------------------------------


def test_pictures_show_the_success():
    X, right = trials()
    model = SmoothBetaClassifier(0.3, pos_label="correct").fit(X, spelled(right))
    twin = SmoothBetaClassifier(0.3).fit(X, right)
    shown, theirs = Question(model), Question(twin)
    np.testing.assert_array_equal(shown.believed(0.9), theirs.believed(0.9))
    np.testing.assert_array_equal(
        Question(model, class_="incorrect").believed(0.9),
        Question(twin, class_=False).believed(0.9),
    )
    given = Question(model, X=X, y=spelled(right)).seen
    np.testing.assert_array_equal(given.successes, right)


def test_experiments_call_a_success_true():
    model = SmoothBetaClassifier(0.3, bounds=[(0, 1)], pos_label="no").fit(
        [[0.0], [1.0]], ["no", "yes"]
    )
    experiment = Experiment({"x": (0, 1)}, Everywhere(), model=model)
    experiment.tell({"x": 0.5}, True)
    assert experiment.model.posterior([[0.5]]).mean() > model.posterior([[0.5]]).mean()
    for begin in (
        lambda: Experiment({"x": (0, 1)}, Everywhere(), SmoothBetaClassifier(pos_label="no")),
        lambda: FieldBandit({"x": (0, 1)}, model=SmoothBetaClassifier(0.1, pos_label="no")),
    ):
        with pytest.raises(ValueError, match="model: found pos_label='no' before the first trial"):
            begin()


# The command line's guess --------------------------------------------------------------------

PAIRS = [
    ("correct", "incorrect"), ("yes", "no"), ("Y", "N"), (1, 0), (1, -1), (True, False),
    ("hit", "miss"), ("dead", "alive"), ("positive", "negative"), ("success", "failure"),
    ("late", "on time"), ("late", "on_time"), ("seen", "unseen"), ("died", "survived"),
    ("right", "wrong"), ("TRUE", "FALSE"), ("1.0", "0.0"), ("event", "non-event"),
    ("survived", "not survived"), ("pass", "fail"), ("other", "incorrect"),
]  # fmt: skip
DOUBTS = [("left", "right"), (1, 2), ("a", "b"), ("f", "m"), ("n", "s"), ("yes", "true"), (0, 2)]


@given(st.sampled_from(PAIRS), st.booleans())
def test_words_that_leave_no_doubt(pair, is_turned):
    assert outcomes.guess(list(pair[::-1] if is_turned else pair)) == pair[0]


@given(st.sampled_from(DOUBTS), st.booleans())
def test_words_that_leave_a_doubt(pair, is_turned):
    labels = list(pair[::-1] if is_turned else pair)
    assert outcomes.guess(labels) is None
    with pytest.raises(Exception, match=r"--success: found .* say which of them is"):
        outcomes.success("side", labels, None)


@pytest.mark.parametrize(
    ("labels", "said", "meant"),
    [([0, 1], "0", 0), ([0, 1], "0.0", 0), ([False, True], "false", False), (["0", "1"], "0", "0")],
)
def test_what_is_said_is_found_among_labels(labels, said, meant):
    assert outcomes.success("y", labels, said) == (meant, None)


def test_nothing_is_guessed_of_0_and_1():
    for labels in ([0, 1], [False, True], [0.0, 1.0], ["a", "b", "c"]):
        assert outcomes.success("y", labels, None) == (None, None)


@pytest.mark.parametrize(
    ("labels", "said"), [([0, 1], "yes"), (["0", "1"], "0.0"), (["a", "b"], "")]
)
def test_what_is_said_and_is_none_of_them(labels, said):
    with pytest.raises(Exception, match=r"--success: found .*; column 'y' has"):
        outcomes.success("y", labels, said)
