"""Compile what most tests need, and leave it on disk: `python tests/kernels.py`.

Processes that start together compile the same kernels, each for itself; after this they find them.
Trials as they are and trials with contexts need other kernels, and have a process each.
"""

import subprocess
import sys

import numpy as np

from betafield import SmoothBetaClassifier, contexts

T = 300


def fits(kind):
    """Return models, and what each is taught beside points and outcomes."""
    rng = np.random.default_rng(0)
    if kind == "plain":
        return [
            (SmoothBetaClassifier(0.3), {}),
            (SmoothBetaClassifier(), {}),
            (SmoothBetaClassifier("loo"), {"sample_weight": rng.integers(1, 4, T) / 2}),
        ]
    affine = contexts.guess_lapse(rng.choice([0.1, 0.3], T), 0.1)
    return [
        (SmoothBetaClassifier(0.5, sharing="mean"), {"context": affine}),
        (SmoothBetaClassifier(), {"context": affine}),
        (SmoothBetaClassifier("theory"), {"context": contexts.pooled(3, 0.9, 0.9)}),
    ]


def compile_for(kind):
    rng = np.random.default_rng(1)
    X, y = rng.uniform(size=(T, 2)), rng.integers(0, 2, T)
    for d in (1, 2):
        for model, more in fits(kind):
            model.fit(X[:, :d], y, **more).partial_fit(X[:, :d], y, **more)
            posterior = model.posterior(X[:5, :d])
            posterior.mean(), posterior.pdf(0.5), posterior.interval(), posterior.sample(2)


def main():
    kinds = ("plain", "contexts")
    started = [subprocess.Popen([sys.executable, __file__, kind]) for kind in kinds]
    return max(process.wait() for process in started)


if __name__ == "__main__":
    sys.exit(compile_for(sys.argv[1]) if sys.argv[1:] else main())
