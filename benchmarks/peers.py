"""Peers: probabilities of success at Q, learned from X and y with the settings named."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from functions import Floats, Ints
from scipy.spatial import cKDTree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Loss = Callable[[Floats, Ints], Floats]


def squared(p: Floats, y: Ints) -> Floats:
    return (p - y) ** 2


def log_loss(p: Floats, y: Ints) -> Floats:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return -np.where(y == 1, np.log(p), np.log1p(-p))


def gp(X: Floats, y: Ints, Q: Floats, _: Loss) -> Floats:
    kernel = ConstantKernel(1.0) * RBF([0.3] * X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a parameter at its bound
        model = GaussianProcessClassifier(kernel, random_state=0).fit(X, y)
    return model.predict_proba(Q)[:, 1]


SMOOTHINGS = (0.03, 0.6, 10.0)
SEARCHED = 10_000


def pygam(X: Floats, y: Ints, Q: Floats, _: Loss) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        some = X[:SEARCHED], y[:SEARCHED]
        models = [gam(X, smoothing).fit(*some) for smoothing in SMOOTHINGS]
        best = int(np.argmin([model.statistics_["UBRE"] for model in models]))
        whole = len(X) <= SEARCHED
        model = models[best] if whole else gam(X, SMOOTHINGS[best]).fit(X, y)
    return model.predict_proba(Q)


def gam(X: Floats, smoothing: float) -> Any:
    """A spline per feature, up to three also a tensor product; few splines where few values are."""
    from pygam import LogisticGAM, s, te

    d = X.shape[1]
    values = [max(4, min(len(np.unique(axis)), 100)) for axis in X.T]
    alone, together = {1: (30, 0), 2: (12, 9), 3: (8, 6)}.get(d, (8, 0))
    terms = s(0, n_splines=min(alone, values[0]))
    for j in range(1, d):
        terms += s(j, n_splines=min(alone, values[j]))
    if together:
        terms += te(*range(d), n_splines=[min(together, v) for v in values])
    return LogisticGAM(terms, lam=smoothing)


FOLDS = 5
CHUNK = 250
HELD_OUT = 20_000
NEIGHBOURS = 4 * 10**7  # of all held-out trials together


def folds(X: Floats, y: Ints, most: float) -> Iterator[tuple[Floats, Ints, Floats, Ints]]:
    """Trials to learn from and trials held out, at most so many of them over all folds."""
    for learn, test in KFold(FOLDS, shuffle=True, random_state=0).split(X):
        some = test[: max(1, int(most / FOLDS))]
        yield X[learn], y[learn], X[some], y[some]


def knn(X: Floats, y: Ints, Q: Floats, loss: Loss, most: int = 8192) -> Floats:
    t, d = X.shape
    largest = min(t // 2, most // d)
    ks = np.unique(np.geomspace(1, largest, 40).astype(int))
    losses = np.zeros(len(ks))
    for learn, outcome, test, truth in folds(X, y, min(HELD_OUT, NEIGHBOURS / largest)):
        tree = cKDTree(learn)
        for i in range(0, len(test), CHUNK):
            _, near = tree.query(test[i : i + CHUNK], k=int(largest))
            shares = np.cumsum(outcome[near], axis=1)[:, ks - 1] / ks
            losses += loss(shares, truth[i : i + CHUNK, None]).sum(axis=0)
    model = KNeighborsClassifier(int(ks[np.argmin(losses)])).fit(X, y)
    return model.predict_proba(Q)[:, 1]


def radius(X: Floats, y: Ints, Q: Floats, loss: Loss) -> Floats:
    """The candidates' losses by counting; wider ones are not tried when four in a row lost."""
    t, d = X.shape
    narrowest = 0.5 * (10 / t) ** (1 / d)
    radii = np.geomspace(narrowest, np.sqrt(d), int(3 * np.log2(np.sqrt(d) / narrowest)) + 1)
    parts = [
        (cKDTree(learn), cKDTree(learn[outcome == 1]), outcome.mean() > 0.5, test, truth)
        for learn, outcome, test, truth in folds(X, y, HELD_OUT)
    ]
    losses: list[float] = []
    for r in radii:
        total = 0.0
        for trials, successes, usual, test, truth in parts:
            n = trials.query_ball_point(test, r, return_length=True)
            S = successes.query_ball_point(test, r, return_length=True)
            shares = np.where(n > 0, S / np.maximum(n, 1), float(usual))
            total += float(loss(shares, truth).sum())
        losses.append(total)
        if len(losses) - int(np.argmin(losses)) > 4:
            break
    best = float(radii[int(np.argmin(losses))])
    model = RadiusNeighborsClassifier(best, outlier_label="most_frequent").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # windows without a trial
        found = [model.predict_proba(Q[i : i + CHUNK])[:, 1] for i in range(0, len(Q), CHUNK)]
    return np.concatenate(found)


def boosting(X: Floats, y: Ints, Q: Floats, _: Loss) -> Floats:
    model = HistGradientBoostingClassifier(early_stopping=True, random_state=0)
    return CalibratedClassifierCV(model, method="isotonic", cv=5).fit(X, y).predict_proba(Q)[:, 1]


def plain_boosting(X: Floats, y: Ints, Q: Floats, _: Loss) -> Floats:
    return HistGradientBoostingClassifier(random_state=0).fit(X, y).predict_proba(Q)[:, 1]


def logistic(X: Floats, y: Ints, Q: Floats, _: Loss) -> Floats:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y).predict_proba(Q)[:, 1]
