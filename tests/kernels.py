"""Compile the kernels that most tests need, and leave them on disk: `python tests/kernels.py`.

Otherwise processes that start together would each compile the same kernels. Trials without and with
contexts need different kernels, and get one process each.
"""

import subprocess
import sys

import numpy as np

from betafield import SmoothBetaClassifier, contexts

# Fewer trials or queries would not need the kernels; counts use the smallest type that fits.
T = 3_000
MOST = [1, 2**10, 2**20, 2**40]


def fits(kind):
    """Return models, and their arguments beside points and outcomes."""
    rng = np.random.default_rng(0)
    if kind == "plain":
        return [
            (SmoothBetaClassifier(0.3), {}),
            (SmoothBetaClassifier(), {}),
            (SmoothBetaClassifier("loo"), {"sample_weight": rng.integers(1, 4, T) / 2}),
            *((SmoothBetaClassifier(0.1), {"sample_weight": np.full(T, most)}) for most in MOST),
            (SmoothBetaClassifier(), {"groups": rng.integers(0, 40, T)}),
            (SmoothBetaClassifier(monotonic_cst=[1]), {}),
        ]
    affine = contexts.guess_lapse(rng.choice([0.1, 0.3], T), 0.1)
    return [
        (SmoothBetaClassifier(0.5, sharing="mean"), {"context": affine}),
        *(
            (SmoothBetaClassifier(0.5), {"context": affine, "sample_weight": np.full(T, most)})
            for most in MOST[:3]
        ),
        (SmoothBetaClassifier(), {"context": affine}),
        (SmoothBetaClassifier("theory"), {"context": contexts.pooled(3, 0.9, 0.9)}),
    ]


def compile_for(kind):
    rng = np.random.default_rng(1)
    X, y = rng.uniform(size=(T, 2)), rng.integers(0, 2, T)
    for d in (1, 2):
        for model, more in fits(kind):
            if model.monotonic_cst is not None:
                model.set_params(monotonic_cst=[1] + [0] * (d - 1))
            model.fit(X[:, :d], y, **more).partial_fit(X[:, :d], y, **more)
            model.posterior(X[:, :d]).mean()
            posterior = model.posterior(X[:5, :d])
            posterior.mean(), posterior.pdf(0.5), posterior.interval(), posterior.sample(2)
    if kind == "plain":
        level = rng.integers(0, 40, T)  # of a category, and of a feature with few values
        SmoothBetaClassifier(categorical_features=[1]).fit(np.column_stack([X[:, 0], level]), y)
        SmoothBetaClassifier().fit(np.column_stack([X[:, 0], level]), y)


def main():
    kinds = ("plain", "contexts")
    started = [subprocess.Popen([sys.executable, __file__, kind]) for kind in kinds]
    return max(process.wait() for process in started)


if __name__ == "__main__":
    sys.exit(compile_for(sys.argv[1]) if sys.argv[1:] else main())
