"""The default model beside a stochastic variational Gaussian process: error and processor time.

    make bench-variational
    python benchmarks/variational.py --trials 10000 --seeds 2

GPyTorch has an environment of its own (torch on the processor alone). Its process: squared
exponential with a length scale per feature, Bernoulli likelihood, inducing places drawn from the
trials (100, 200, 300 in 1-, 2-, 3-D) and learned, Adam over batches of 1,024 at a rate of .02 that
falls to .002, at least 1,500 steps and two passes over the trials. What it scored is kept in
out/variational-peers.json, ratios are of mean squared errors at 2,000 places.
"""

import argparse
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
from functions import ALL, space
from kept import Kept
from report import geometric

from betafield import SmoothBetaClassifier

PEERS = Path("out") / "variational-peers.json"
NAMES = ("oscillating-1", "slow-wave-1", "wave-2", "tilted-2", "smooth-3", "mound-3")
INDUCING = {1: 100, 2: 200, 3: 300}
BATCH, STEPS, RATE = 1024, 1500, 0.02


def variational(X, y, Q):
    """Return the mean of the variational process at places."""
    import torch
    from gpytorch import distributions, kernels, likelihoods, means, mlls, models, variational

    torch.manual_seed(0)
    torch.set_num_threads(1)
    d = X.shape[1]
    X, y, Q = (torch.as_tensor(a, dtype=torch.float32) for a in (X, y, Q))

    class Process(models.ApproximateGP):
        def __init__(self):
            places = X[torch.randperm(len(X))[: INDUCING[d]]].clone()
            law = variational.CholeskyVariationalDistribution(len(places))
            super().__init__(
                variational.VariationalStrategy(self, places, law, learn_inducing_locations=True)
            )
            self.mean = means.ConstantMean()
            self.kernel = kernels.ScaleKernel(kernels.RBFKernel(ard_num_dims=d))
            self.kernel.base_kernel.lengthscale = 0.3

        def forward(self, x):
            return distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    process, likelihood = Process(), likelihoods.BernoulliLikelihood()
    bound = mlls.VariationalELBO(likelihood, process, num_data=len(X))
    steps = max(STEPS, 2 * len(X) // BATCH)
    optimiser = torch.optim.Adam(process.parameters(), lr=RATE)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, RATE / 10)
    for _ in range(steps):
        some = torch.randint(len(X), (BATCH,))
        optimiser.zero_grad()
        loss = -bound(process(X[some]), y[some])
        loss.backward()
        optimiser.step()
        falling.step()
    process.eval()
    with torch.no_grad():
        return likelihood(process(Q)).mean.numpy().astype(np.float64)


def default(X, y, Q):
    return SmoothBetaClassifier().fit(X, y).posterior(Q).mean()


def scores(function, t, seed, learner):
    X, y = function.trials(t, seed)
    Q = space(function.d)
    started = time.process_time()
    mean = learner(X, y, Q)
    seconds = time.process_time() - started
    return {"mse": float(np.mean((mean - function(Q)) ** 2)), "seconds": seconds}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--functions", nargs="+", default=NAMES)
    options = parser.parse_args()
    kept, peer = Kept(PEERS), f"GPyTorch {version('gpytorch')}, {STEPS} steps"
    for t in options.trials:
        ratios = []
        for name in options.functions:
            function = next(f for f in ALL if f.name == name)
            default(*function.trials(300, 0), space(function.d))  # compiles
            pairs = []
            for seed in range(options.seeds):
                key = f"{name} {function.fingerprint} | t={t} | seed {seed} | {peer}"
                theirs = kept.scored(key, partial(scores, function, t, seed, variational))
                pairs.append((scores(function, t, seed, default), theirs))
            ratios.append([ours["mse"] / theirs["mse"] for ours, theirs in pairs])
            told = (
                f"rmse {np.sqrt(np.mean([pair[i]['mse'] for pair in pairs])):.4f} "
                f"({np.mean([pair[i]['seconds'] for pair in pairs]):.1f} s)"
                for i in (0, 1)
            )
            print(
                f"{name:14s} t {t:7,}  {', peer '.join(told)}  ratio {geometric(ratios[-1])[0]:.3f}"
            )
        value, err = geometric(ratios)
        print(f"t {t:7,}, geometric mean of squared errors: {value:.3f} ± {err:.3f}", flush=True)


if __name__ == "__main__":
    main()
