"""Valid calls of every public callable, into which hostile values are put."""

import copy
from dataclasses import KW_ONLY, dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd

import betafield
from betafield import (
    FieldCalibratedClassifier,
    Prior,
    SmoothBetaClassifier,
    baselines,
    contexts,
    decisions,
    guarantees,
    observed,
    plots,
    posteriors,
    report,
    testing,
)
from betafield.process.laws import Laws
from betafield.process.links import LOGIT
from hostile_client import calls as client_calls
from hostile_values import T

mpl.use("Agg")

X = np.linspace(0.0, 1.0, T)[:, None]
Y = np.array([0, 1, 0, 1, 1, 0, 1, 1])
PAIRS = np.tile([0.1, 0.9], (T, 1))


@dataclass(frozen=True)
class Call:
    """A valid call: the callable, fresh arguments, and the state that must not change.

    `state` returns what the object knows; if the call `learns`, it must stay the same only if the
    call fails.
    """

    what: object
    arguments: object
    names: tuple
    _: KW_ONLY
    also: tuple = ()
    of: object = None
    state: object = None
    learns: bool = False


CALLS: dict = {}
_KEPT: dict = {}


def _put(name, call):
    CALLS[name] = call


def _kept(name, make):
    """Return a copy of an object that is made only once, because that takes long."""
    if name not in _KEPT:
        _KEPT[name] = make()
    return copy.deepcopy(_KEPT[name])


def _model():
    return _kept("model", lambda: SmoothBetaClassifier(0.3, bounds=[(0, 1)]).fit(X, Y))


def _often():
    return _kept("often", lambda: SmoothBetaClassifier(0.3).fit(np.tile(X, (5, 1)), np.tile(Y, 5)))


def _chosen():
    return _kept("chosen", lambda: SmoothBetaClassifier("loo", bounds=[(0, 1)]).fit(X, Y))


def _distorted():
    return _kept(
        "distorted",
        lambda: SmoothBetaClassifier(0.3, bounds=[(0, 1)]).fit(X, Y, context=PAIRS),
    )


def _smooth():
    return _kept("smooth", lambda: SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, Y))


def _smooth_distorted():
    return _kept(
        "smooth distorted",
        lambda: SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, Y, context=PAIRS),
    )


MODELS = {
    "": _model,
    " distorted": _distorted,
    " smooth": _smooth,
    " smooth distorted": _smooth_distorted,
}


def _calibrated():
    return _kept(
        "calibrated",
        lambda: FieldCalibratedClassifier(bandwidth=0.3).fit(np.tile(X, (3, 1)), np.tile(Y, 3)),
    )


def _knows(model):
    return model.posterior(X).mean().tobytes()


def _experiment():
    def make():
        return decisions.Experiment({"a": (0.0, 1.0)}, decisions.LevelSet(0.5), random_state=0)

    return _kept("experiment", make)


def _asked():
    def make():
        experiment = _experiment()
        experiment.ask()
        return experiment

    return _kept("asked", make)


def _bandit():
    return _kept("bandit", lambda: decisions.FieldBandit({"a": (0.0, 1.0)}, random_state=0))


def _tracker():
    def make():
        tracker = decisions.RiskTracker(0.5, half_life=10.0, bounds=[(0.0, 1.0)])
        tracker.update(X, Y, np.arange(T, dtype=float))
        return tracker

    return _kept("tracker", make)


def _laws():
    return Laws((LOGIT,), np.ones(1), np.array([[0.0, 2.0]]), np.array([[1.0, 0.5]]))


def _posterior(kind):
    makers = {
        "Beta": lambda: posteriors.Beta([1.0, 2.0], [3.0, 1.0]),
        "Dirichlet": lambda: posteriors.Dirichlet([[1.0, 2.0, 3.0]] * 2),
        "Mixture of Betas": lambda: posteriors.Mixture.of_betas(
            [[0.0, 0.0]], [[1.0, 2.0]], [[2.0, 1.0]]
        ),
        "Mixture": lambda: posteriors.Mixture(
            [[0.0, 0.0]], [posteriors.Beta([1.0], [2.0]), posteriors.Beta([3.0], [1.0])]
        ),
        "Contextual": lambda: posteriors.Contextual(
            [1.0], [1.0], polynomials=[[0.1, 0.9, 0.9]], repeats=[[2.0]]
        ),
        "Affine": lambda: posteriors.Beta([1.0, 2.0], [3.0, 1.0]).under([0.1, 0.9]),
        "Polynomial": lambda: posteriors.Beta([1.0, 2.0], [3.0, 1.0]).under([0.0, 1.0, 0.5]),
        "LogitNormal": lambda: baselines.LogitNormal([0.0, 1.0], [1.0, 0.5]),
        "LatentNormal": lambda: posteriors.LatentNormal(_laws()),
        "Sampled": lambda: posteriors.Sampled([[0.1, 0.6], [0.3, 0.7], [0.2, 0.9]]),
    }
    return _kept(kind, makers[kind])


def _learned(kind, **options):
    return kind(**options).fit(X, Y)


def _closed(display):
    import matplotlib.pyplot as plt

    plt.close("all")
    return display


def _method(make, name, state=None, learns=False, also=(), **arguments):
    return Call(
        lambda subject, **given: getattr(subject, name)(**given),
        lambda: {key: value() if callable(value) else value for key, value in arguments.items()},
        tuple(arguments),
        of=make,
        state=state,
        learns=learns,
        also=also,
    )


def _function(what, also=(), **arguments):
    """Return a call of a function; errors may also name the arguments in `also`."""
    return Call(
        lambda _, **given: what(**given),
        lambda: {key: value() if callable(value) else value for key, value in arguments.items()},
        tuple(arguments),
        also=also,
    )


def _array(values):
    return lambda: np.array(values)


def prepared():
    """Write the files that calls read into the working directory."""
    _model().save("model.beta")
    _experiment().save("experiment.beta")
    _bandit().save("bandit.beta")
    _tracker().save("tracker.beta")
    # No argument is named like a file, because otherwise an error naming the file would pass.
    table = pd.DataFrame({"x": X[:, 0], "y": Y, "n": 2, "a": "text"})
    table.to_csv("table.csv", index=False)
    table.to_parquet("table.parquet", index=False)


TRIALS = {
    "X": _array(X),
    "y": _array(Y),
    "sample_weight": lambda: np.ones(T),
    "context": _array(PAIRS),
    "groups": None,
}
COUNTS = {
    "X": _array(X),
    "successes": _array(Y),
    "trials": lambda: np.full(T, 2),
    "context": _array(PAIRS),
    "groups": None,
    "overdispersion": None,
}
OPTIONS = {
    "bandwidth": 0.3,
    "lipschitz": 1.0,
    "metric": "euclidean",
    "method": "auto",
    "scale": "range",
    "bounds": lambda: [(0, 1)],
    "pos_label": 1,
    "prior": (1.0, 1.0),
    "sharing": "exact",
    "n_jobs": None,
}
ROWS = {
    "paths": "table.csv",
    "outcome": "y",
    "features": lambda: ["x"],
    "successes": None,
    "trials": None,
    "sample_weight": None,
    "context": None,
    "progress": False,
    "batch_rows": 100,
}
FILES = {
    "": ROWS,
    " of Parquet": {**ROWS, "paths": "table.parquet", "sample_weight": "n"},
    " of counts": {**ROWS, "outcome": None, "successes": "y", "trials": "n"},
}
THRESHOLD = {
    "level": 0.6,
    "feature": 0,
    "at": None,
    "under": _array([0.1, 0.95]),
    "anchored": False,
    "size": 20,
    "random_state": 0,
}
BINS = {"n_bins": 4, "strategy": "quantile", "level": 0.9}


def _calls():
    _report_calls()
    _estimator_calls()
    _room_calls()
    _posterior_calls()
    _decision_calls()
    _plot_calls()
    _observed_calls()
    CALLS.update(client_calls(_function, _method))


def _estimator_calls():
    name = "SmoothBetaClassifier"
    _put(
        name,
        _function(lambda **o: SmoothBetaClassifier(**o).fit(X, Y).posterior(X).mean(), **OPTIONS),
    )
    _put(
        f"{name}.auto",
        _function(
            lambda **o: SmoothBetaClassifier(**o).fit(X, Y).posterior(X).mean(),
            **{k: v for k, v in OPTIONS.items() if k != "bandwidth"},
        ),
    )
    for kind, make in MODELS.items():
        learn = {"state": _knows, "learns": True, "also": ("bounds",)}
        _put(f"{name}.fit{kind}", _method(make, "fit", **learn, **TRIALS))
        _put(
            f"{name}.partial_fit{kind}",
            _method(make, "partial_fit", **learn, **TRIALS, classes=_array([0, 1])),
        )
        _put(f"{name}.fit_counts{kind}", _method(make, "fit_counts", **learn, **COUNTS))
        _put(
            f"{name}.partial_fit_counts{kind}",
            _method(make, "partial_fit_counts", **learn, **COUNTS),
        )
        _put(f"{name}.merge{kind}", _method(make, "merge", **learn, other=make))
        for ask in ("posterior", "predict", "predict_proba"):
            _put(f"{name}.{ask}{kind}", _method(make, ask, _knows, X=_array(X)))
        _put(
            f"{name}.band{kind}",
            _method(
                make, "band", _knows, X=_array(X), lipschitz=1.0, level=0.9, simultaneous=False
            ),
        )
        _put(f"{name}.threshold{kind}", _method(make, "threshold", _knows, **THRESHOLD))
        drawn = {"X": _array(X), "size": 20, "random_state": 0}
        _put(f"{name}.draws{kind}", _method(make, "draws", _knows, **drawn))
        area = {"X": _array(X), "weights": _array(np.ones(T)), "by": _array(Y)}
        _put(f"{name}.average{kind}", _method(make, "average", _knows, **area))
        two = {"X1": _array(X[:3]), "X2": _array(X[3:]), "weights1": None, "weights2": None}
        # scikit-learn's warnings about names mention X, whatever the argument is called.
        _put(f"{name}.contrast{kind}", _method(make, "contrast", _knows, also=("X",), **two))
        slope = {"X": _array(X), "feature": 0, "size": 20, "random_state": 0}
        _put(f"{name}.slope{kind}", _method(make, "slope", _knows, **slope))
        along = {"feature": 0, "grid": _array([0.2, 0.4])}
        _put(
            f"{name}.partial_dependence{kind}", _method(make, "partial_dependence", _knows, **along)
        )
    _put(
        "SmoothBetaClassifier.monotone",
        _function(
            lambda **o: SmoothBetaClassifier(**o).fit(X, Y).posterior(X).mean(),
            monotonic_cst=lambda: [1],
            method="auto",
        ),
    )
    _put(f"{name}.save", _method(_model, "save", _knows, path="model.beta"))
    _put(f"{name}.set_params", _method(_model, "set_params", _knows, bandwidth=0.2))
    for kind, named in FILES.items():
        also = ("row 0, column 'a'",)  # a cell of the file
        _put(f"{name}.fit_files{kind}", _method(_model, "fit_files", _knows, True, also, **named))
    _put("load", _function(betafield.load, path="model.beta"))
    _put("Prior", _function(lambda **o: Prior(**o)(X), ("prior",), mean=0.5, variance=0.01))
    _put(
        "Prior.from_mean_variance",
        _function(
            lambda **o: (
                SmoothBetaClassifier(0.3, prior=Prior.from_mean_variance(**o))
                .fit(X, Y)
                .posterior(X)
                .mean()
            ),
            ("prior",),
            mean=0.5,
            variance=0.01,
        ),
    )
    many = {"X": lambda: np.tile(X, (3, 1)), "y": lambda: np.tile(Y, 3)}
    _put(
        "FieldCalibratedClassifier",
        _function(
            lambda **o: FieldCalibratedClassifier(**o).fit(np.tile(X, (3, 1)), np.tile(Y, 3)),
            estimator=None,
            cv=3,
            bandwidth=0.3,
            prior=(1.0, 1.0),
            n_jobs=None,
        ),
    )
    _put(
        "FieldCalibratedClassifier.fit",
        _method(_calibrated, "fit", _knows, True, **many, sample_weight=lambda: np.ones(3 * T)),
    )
    for ask in ("posterior", "predict", "predict_proba"):
        _put(f"FieldCalibratedClassifier.{ask}", _method(_calibrated, ask, _knows, X=_array(X)))
    for kind, options in {
        "ContinuousCorrelatedBeta": {"length_scale": 0.1, "prior": (1.0, 1.0)},
        "RadiusNeighbors": {"bandwidth": 0.3, "lipschitz": 1.0},
        "LogisticGP": {
            "length_scale": 0.3,
            "amplitude": 1.0,
            "length_scale_bounds": (0.01, 100.0),
            "amplitude_bounds": (0.01, 100.0),
        },
    }.items():
        maker = getattr(baselines, kind)
        _put(
            kind,
            _function(lambda maker=maker, **o: maker(**o).fit(X, Y).predict_proba(X), **options),
        )
        trials = {"X": _array(X), "y": _array(Y)}
        at = {"X": _array(X)}
        if kind == "LogisticGP":
            trials, at = {**trials, "context": _array(PAIRS)}, {**at, "context": lambda: (0.0, 1.0)}

        def make(maker=maker, options=options, kind=kind):
            return _kept(kind, lambda: maker(**options).fit(X, Y))

        _put(f"{kind}.fit", _method(make, "fit", **trials))
        for ask in (
            "predict",
            "predict_proba",
            *(["posterior"] if hasattr(maker, "posterior") else []),
        ):
            _put(f"{kind}.{ask}", _method(make, ask, **at))


def _room_calls():
    numbers = {
        "affine": {"gain": 0.5, "offset": 0.2},
        "guess_lapse": {"guess": 0.5, "lapse": 0.1},
        "diagnostic": {"sensitivity": 0.9, "specificity": 0.9},
        "attenuated": {"factor": 0.5},
        "background": {"rate": 0.2},
        "randomized_response": {"truth": 0.5, "yes": 0.5},
        "pooled": {"size": 3, "sensitivity": 0.9, "specificity": 0.9},
        "polynomial": {"coefficients": lambda: [0.0, 0.0, 1.0]},
        "probability": {"context": lambda: [0.1, 0.9], "p": 0.5},
        "likelihood": {"context": _array(PAIRS), "success": _array(Y)},
        "mirrored": {"context": _array(PAIRS)},
        "is_affine": {"context": _array(PAIRS)},
        "elevate": {"context": _array(PAIRS), "degree": 3},
        "checked": {"context": _array(PAIRS)},
        "by_row": {"which": lambda: ["a", "b"], "contexts": lambda: {"a": [0, 1], "b": [0.5, 1]}},
        "Unknown": {"alpha": 1.5, "beta": 30.0, "name": "lapse"},
    }
    for name, arguments in numbers.items():
        _put(f"contexts.{name}", _function(getattr(contexts, name), **arguments))
    bound = {"lipschitz": 1.0, "prior": (1.0, 1.0), "metric": "euclidean", "background": 0.0}
    _put("guarantees.rate", _function(guarantees.rate, d=2))
    _put(
        "guarantees.error_bound",
        _function(guarantees.error_bound, t=100, d=2, bandwidth=0.1, **bound),
    )
    _put("guarantees.trials_needed", _function(guarantees.trials_needed, error=0.1, d=1, **bound))
    _put(
        "guarantees.certificate",
        _function(
            guarantees.certificate,
            model=_model,
            X=_array(X),
            lipschitz=1.0,
            level=0.9,
            width=0.2,
            simultaneous=False,
        ),
    )
    _put(
        "testing.coverage",
        _function(
            testing.coverage,
            ("bounds",),  # the model's
            function=lambda: lambda P: P[:, 0],
            d=1,
            t=8,
            runs=1,
            lipschitz=1.0,
            level=0.9,
            model=lambda: SmoothBetaClassifier(0.3, bounds=[(0, 1)]),
            context=None,
            points=4,
            random_state=0,
        ),
    )


def _posterior_calls():
    shapes = {"alpha": lambda: [1.0, 2.0], "beta": lambda: [3.0, 1.0]}
    _put("Beta", _function(lambda **o: posteriors.Beta(**o).mean(), **shapes))
    _put(
        "Dirichlet",
        _function(lambda **o: posteriors.Dirichlet(**o).mean(), alpha=lambda: [[1.0, 2.0, 3.0]]),
    )
    _put(
        "Mixture.of_betas",
        _function(
            lambda **o: posteriors.Mixture.of_betas(**o).mean(),
            log_weights=lambda: [[0.0, 0.0]],
            alpha=lambda: [[1.0, 2.0]],
            beta=lambda: [[2.0, 1.0]],
        ),
    )
    _put(
        "Mixture",
        _function(
            lambda **o: posteriors.Mixture(**o).mean(),
            log_weights=lambda: [[0.0, 0.0]],
            components=lambda: [posteriors.Beta([1.0], [2.0]), posteriors.Beta([3.0], [1.0])],
        ),
    )
    _put(
        "Contextual",
        _function(
            lambda **o: posteriors.Contextual(**o).mean(),
            alpha=lambda: [1.0],
            beta=lambda: [1.0],
            amounts=None,
            first=0,
            shifts=lambda: [[0.5]],
            trials=lambda: [[1.0]],
            polynomials=lambda: [[0.1, 0.9, 0.9]],
            repeats=lambda: [[2.0]],
            n_jobs=None,
        ),
    )
    _put(
        "LogitNormal",
        _function(
            lambda **o: baselines.LogitNormal(**o).mean(),
            mean=lambda: [0.0],
            variance=lambda: [1.0],
        ),
    )
    _put(
        "Sampled",
        _function(
            lambda **o: posteriors.Sampled(**o).mean(),
            draws=lambda: [[0.1], [0.3]],
            weights=lambda: [1.0, 2.0],
        ),
    )
    _put("LatentNormal", _function(lambda **o: posteriors.LatentNormal(**o).mean(), laws=_laws))
    _put(
        "exact_mixture",
        _function(
            posteriors.exact_mixture,
            ("context",),
            contexts=_array(PAIRS),
            success=_array(Y),
            prior=(1.0, 1.0),
        ),
    )
    _put(
        "constant_offset_mixture",
        _function(
            posteriors.constant_offset_mixture, offset=0.1, successes=3, trials=8, prior=(1.0, 1.0)
        ),
    )
    kinds = (
        "Beta",
        "Dirichlet",
        "Mixture of Betas",
        "Mixture",
        "Contextual",
        "Affine",
        "Polynomial",
        "LogitNormal",
        "LatentNormal",
        "Sampled",
    )
    for kind in kinds:

        def make(kind=kind):
            return _posterior(kind)

        def state(post):
            return post.mean().tobytes()

        _put(f"{kind}.sample", _method(make, "sample", state, size=3, random_state=0))
        if kind == "Dirichlet":
            _put(f"{kind}.marginal", _method(make, "marginal", state, k=0))
        if kind == "Contextual":
            _put(f"{kind}.moments", _method(make, "moments", state, p=2))
        for ask, name, value in (
            ("cdf", "p", 0.5),
            ("pdf", "p", 0.5),
            ("prob_above", "p", 0.5),
            ("ppf", "q", 0.5),
            ("interval", "level", 0.9),
        ):
            _put(f"{kind}.{ask}", _method(make, ask, state, **{name: value}))
        if kind == "Dirichlet":
            continue  # without a success, there is nothing to distort
        _put(
            f"{kind}.under",
            Call(
                lambda post, context: post.under(context).mean(),
                lambda: {"context": [0.1, 0.9]},
                ("context",),
                of=make,
                state=state,
            ),
        )


def _decision_calls():
    def trials(experiment):
        return repr(experiment.trials())

    _put(
        "Experiment",
        _function(
            lambda **o: decisions.Experiment(**o).ask(),
            space=lambda: {"a": (0.0, 1.0)},
            goal=lambda: decisions.LevelSet(0.5),
            model=None,
            random_state=0,
            strategy=None,
            spread=0.0,
            observed=(),
        ),
    )
    _put("Experiment.ask", _method(_experiment, "ask", learns=True, state=trials, n=2, fixed=None))

    _put(
        "Experiment.tell",
        _method(
            _experiment,
            "tell",
            state=trials,
            learns=True,
            trial=lambda: {"a": 0.5},
            success=True,
            context=lambda: [0.1, 0.9],
        ),
    )
    _put(
        "Experiment.abandon",
        _method(_asked, "abandon", state=trials, learns=True, trial=lambda: _asked().pending()[0]),
    )
    _put(
        "Trial.from_dict",
        _function(decisions.Trial.from_dict, trial=lambda: {"id": 3, "values": {"a": 0.5}}),
    )
    _put("Experiment.save", _method(_experiment, "save", state=trials, path="experiment.beta"))
    _put("Experiment.load", _function(decisions.Experiment.load, path="experiment.beta"))
    _put(
        "LevelSet",
        _function(decisions.LevelSet, p=0.5, under=lambda: [0.1, 0.9], anchored=False, within=0.05),
    )
    for kind in ("Everywhere", "Maximize", "Minimize"):
        _put(kind, _function(getattr(decisions, kind), within=0.05))
    _put(
        "Compare",
        _function(decisions.Compare, points=lambda: [{"a": 0.1}, {"a": 0.2}], within=0.05),
    )
    _put(
        "FieldBandit",
        _function(
            lambda **o: decisions.FieldBandit(**o).pull(),
            arms=lambda: ["red", "blue"],
            policy="thompson",
            observed=None,
            model=None,
            random_state=0,
        ),
    )

    def pulls(bandit):
        return bandit.n_pulls

    _put("FieldBandit.pull", _method(_bandit, "pull", state=pulls, learns=True, x=None, n=2))
    _put("FieldBandit.best", _method(_bandit, "best", state=pulls, x=None))
    _put(
        "FieldBandit.posterior",
        _method(_bandit, "posterior", state=pulls, features=lambda: {"a": 0.5}, arm=None),
    )

    _put(
        "FieldBandit.update",
        _method(_pulled, "update", state=pulls, learns=True, pull=0, success=True, context=None),
    )
    _put("FieldBandit.abandon", _method(_pulled, "abandon", state=pulls, learns=True, pull=0))
    _put("FieldBandit.save", _method(_bandit, "save", state=pulls, path="bandit.beta"))
    _put("FieldBandit.load", _function(decisions.FieldBandit.load, path="bandit.beta"))
    tracker = {
        "threshold": 0.5,
        "half_life": 10.0,
        "window": None,
        "alarm": 0.99,
        "bounds": lambda: [(0.0, 1.0)],
        "bandwidth": 0.1,
        "prior": (1.0, 1.0),
        "resolution": 0.125,
        "clear": 0.5,
        "places": None,
    }
    _put(
        "RiskTracker",
        _function(
            lambda **o: decisions.RiskTracker(**o).update(X, Y, np.arange(T, dtype=float)),
            **tracker,
        ),
    )
    _put(
        "RiskTracker.update",
        _method(
            _tracker,
            "update",
            state=_knows,
            learns=True,
            X=_array(X),
            y=_array(Y),
            times=lambda: np.arange(T) + 10.0,
            context=_array(PAIRS),
            now=20.0,
        ),
    )
    _put("RiskTracker.posterior", _method(_tracker, "posterior", _knows, X=_array(X), time=9.0))
    _put("RiskTracker.alarms", _method(_tracker, "alarms", _knows, time=9.0, X=_array(X)))
    _put("RiskTracker.save", _method(_tracker, "save", _knows, path="tracker.beta"))
    _put("RiskTracker.load", _function(decisions.RiskTracker.load, path="tracker.beta"))
    _put("Regret", _function(decisions.Regret, cumulative=lambda: [[1.0, 2.0]], label="a"))
    _put(
        "simulate",
        _function(
            decisions.simulate,
            make=lambda: lambda seed: decisions.FieldBandit(["red", "blue"], random_state=seed),
            truth=lambda: lambda rows: np.tile([0.2, 0.4], (len(rows), 1)),
            n=3,
            seeds=lambda: range(1),
            batch=1,
            delay=0,
            label="",
        ),
    )
    _put(
        "false_alarm_rate",
        _function(
            decisions.false_alarm_rate,
            options=lambda: {"threshold": 0.5, "half_life": 10.0, "bounds": [(0.0, 1.0)]},
            rate=10.0,
            risk=None,
            batch=10,
            n_trials=20,
            random_state=0,
        ),
    )


def _pulled():
    def make():
        bandit = decisions.FieldBandit(["red", "blue"], random_state=0)
        bandit.pull()
        return bandit

    return _kept("pulled", make)


def _report_calls():
    page = {"title": "a", "level": 0.9, "lipschitz": 1.0, "command": "a", "source": "trials.csv"}
    _put("report.html", _function(report.html, model=_model, **page))
    _put("report.write", _function(report.write, model=_model, path="report.html", **page))


def _observed_calls():
    _put("observed.observed", _function(observed.observed, model=_model))
    _put(
        "observed.binned",
        _function(
            observed.binned,
            seen=lambda: observed.observed(_model()),
            feature=0,
            n_bins=3,
            level=0.9,
            class_index=1,
        ),
    )
    _put(
        "observed.share_interval",
        _function(observed.share_interval, successes=_array(Y), trials=_array([2] * T), level=0.9),
    )
    _put("observed.left_out", _function(observed.left_out, model=_often, n=20, random_state=0))


def _plot_calls():
    shown = {"level": 0.9, "class_": None, "ax": None}
    _put(
        "FieldDisplay.from_estimator",
        _function(
            lambda **o: _closed(plots.FieldDisplay.from_estimator(**o)),
            model=_model,
            X=_array(X),
            y=_array(Y),
            features=0,
            at=None,
            lipschitz=1.0,
            simultaneous=False,
            under=None,
            grid_resolution=5,
            n_bins=3,
            show_places=False,
            threshold=None,
            **shown,
        ),
    )
    for kind, make in {"": _model, " smooth": _smooth}.items():
        _put(
            f"WindowDisplay.from_estimator{kind}",
            _function(
                lambda **o: _closed(plots.WindowDisplay.from_estimator(**o)),
                model=make,
                x=lambda: [0.5],
                features=None,
                **shown,
            ),
        )
    _put(
        "ExceedanceDisplay.from_estimator",
        _function(
            lambda **o: _closed(plots.ExceedanceDisplay.from_estimator(**o)),
            model=_smooth,
            above=0.4,
            features=0,
            at=None,
            under=None,
            grid_resolution=5,
            show_places=False,
            class_=None,
            ax=None,
        ),
    )
    _put(
        "ThresholdDisplay.from_estimator",
        _function(
            lambda level, **o: _closed(plots.ThresholdDisplay.from_estimator(p=level, **o)),
            ("p",),
            model=_smooth,
            ax=None,
            **THRESHOLD,
        ),
    )
    _put(
        "ComponentsDisplay.from_estimator",
        _function(
            lambda **o: _closed(plots.ComponentsDisplay.from_estimator(**o)), model=_smooth, ax=None
        ),
    )
    _put(
        "BandwidthDisplay.from_estimator",
        _function(
            lambda **o: _closed(plots.BandwidthDisplay.from_estimator(**o)), model=_chosen, ax=None
        ),
    )
    _put(
        "CalibrationDisplay.from_estimator",
        _function(
            lambda **o: _closed(plots.CalibrationDisplay.from_estimator(**o)),
            estimator=_model,
            X=_array(X),
            y=_array(Y),
            name="a",
            class_=None,
            ax=None,
            **BINS,
        ),
    )
    _put(
        "CalibrationDisplay.from_predictions",
        _function(
            lambda **o: _closed(plots.CalibrationDisplay.from_predictions(**o)),
            successes=_array(Y),
            y_prob=lambda: np.linspace(0.1, 0.9, T),
            weight=lambda: np.ones(T),
            event="P",
            name="a",
            ax=None,
            **BINS,
        ),
    )
    _put(
        "CalibrationDisplay.from_model",
        _function(
            lambda **o: _closed(plots.CalibrationDisplay.from_model(**o)),
            model=_often,
            n=20,
            random_state=0,
            name="a",
            ax=None,
            **BINS,
        ),
    )


_calls()
