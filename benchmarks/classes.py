"""Several classes: 10-fold log-loss against peers, ``python benchmarks/classes.py``.

iris as it is, wine and digits in principal components (wine standardised first), learned within
each fold. Peers: logistic regression, k-NN and boosting with their defaults, k-NN's shares clipped
to 10⁻⁶. The standard error is that of the mean difference to the best peer. Results are in
out/classes.json.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from functions import Floats, Ints
from report import Row, Target, run
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from betafield import SmoothBetaClassifier

RESULTS = Path("out") / "classes.json"
SETS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "iris": (load_iris, FunctionTransformer),
    "wine, 2 components": (load_wine, lambda: make_pipeline(StandardScaler(), PCA(2))),
    "wine, 4 components": (load_wine, lambda: make_pipeline(StandardScaler(), PCA(4))),
    "digits, 2 components": (load_digits, lambda: PCA(2, random_state=0)),
    "digits, 4 components": (load_digits, lambda: PCA(4, random_state=0)),
}
PEERS = {
    "logistic": LogisticRegression,
    "k-NN": KNeighborsClassifier,
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


@dataclass(frozen=True)
class Sizes:
    sets: tuple[str, ...]
    folds: int = 10


def losses(make: Callable[[], Any], units: Callable[[], Any], X: Floats, y: Ints, k: int) -> Floats:
    """Return the log-loss of every row, predicted from the other folds."""
    found = np.empty(len(y))
    for learn, out in StratifiedKFold(k, shuffle=True, random_state=0).split(X, y):
        model = make_pipeline(units(), make()).fit(X[learn], y[learn])
        p = model.predict_proba(X[out])[np.arange(len(out)), y[out]]
        found[out] = -np.log(np.maximum(p, 1e-6))
    return found


def compared(sizes: Sizes) -> Iterator[Row]:
    warnings.simplefilter("ignore")  # peers that have not converged after their default steps
    for name in sizes.sets:
        load, units = SETS[name]
        X, y = load(return_X_y=True)
        mine = losses(SmoothBetaClassifier, units, X, y, sizes.folds)
        each = {peer: losses(make, units, X, y, sizes.folds) for peer, make in PEERS.items()}
        best = min(each.values(), key=np.mean)
        err = float((mine - best).std(ddof=1) / np.sqrt(len(y)) / best.mean())
        numbers = {"s.e.": err, "ours": mine.mean(), **{k: v.mean() for k, v in each.items()}}
        value = float(mine.mean() / best.mean())
        yield Row(f"log-loss to the best peer, {name}", value, "×", Target(1.0), numbers, "")


if __name__ == "__main__":
    run(
        "Several classes: SmoothBetaClassifier() against peers",
        __doc__,
        {"log-loss": compared},
        Sizes(tuple(SETS)),
        Sizes(("iris",), 3),
        RESULTS,
    )
