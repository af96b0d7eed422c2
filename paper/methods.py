"""Who learns: the paper's method, its variants and its rivals, by the names used in results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from betafield import SmoothBetaClassifier
from betafield.baselines import ContinuousCorrelatedBeta, LogisticGP, RadiusNeighbors
from betafield.priors import Prior
from paper.problems import RESTED, Problem, Trials

# Variances of the informative priors of figure 4; that of the uniform prior is 1/12 ≈ 0.083.
VARIANCES = (0.001, 0.01, 0.05)


def smooth_beta(problem: Problem, **settings: Any) -> SmoothBetaClassifier:
    """The Smooth Beta Process; by default with the width by theory, for the true L."""
    chosen = {"bandwidth": "theory", "lipschitz": problem.lipschitz} | settings
    return SmoothBetaClassifier(bounds=[(0.0, 1.0)] * problem.d, **chosen)


def fixed_width(problem: Problem, trials: int) -> SmoothBetaClassifier:
    """The width that the paper's rule has for so many trials, and L = 1, whatever t is."""
    return smooth_beta(problem, bandwidth=float(trials ** (-1 / (problem.d + 2))))


def informed(problem: Problem, variance: float) -> SmoothBetaClassifier:
    """A prior whose mean is the truth."""
    return smooth_beta(problem, prior=Prior.from_mean_variance(problem, variance))


def neighbours(problem: Problem) -> RadiusNeighbors:
    return RadiusNeighbors("theory", lipschitz=problem.lipschitz)


def correlated_beta(_: Problem) -> ContinuousCorrelatedBeta:
    return ContinuousCorrelatedBeta(length_scale=0.1)


def logistic_gp(_: Problem, **kernel: float) -> LogisticGP:
    """Gaussian process of log-odds; by default with one learned length scale per feature."""
    return LogisticGP(**kernel)


Methods = Mapping[str, Callable[[Problem], Any]]
METHODS: Methods = {
    "SBP": smooth_beta,
    "Δ₁": partial(fixed_width, trials=50),
    "Δ₂": partial(fixed_width, trials=500_000),
    "CCBP": correlated_beta,
    "LGP": logistic_gp,
    "LGP, kernel given": partial(logistic_gp, length_scale=0.2, amplitude=2.0),
    "CSBP": partial(smooth_beta, sharing="mean"),
    "exact": partial(smooth_beta, sharing="exact"),
    "NN": neighbours,
    **{f"v = {v}": partial(informed, variance=v) for v in VARIANCES},
}


@dataclass(frozen=True)
class Fitted:
    """A fitted model, asked in one way whatever it is."""

    model: Any
    takes_context: bool

    def posterior(self, Q: Any, context: tuple[float, float] = RESTED) -> Any:
        """Return the posterior under a context: the undistorted probability, unless said."""
        if self.takes_context:
            return self.model.posterior(Q, context=context)
        return self.model.posterior(Q).under(context)

    def mean(self, Q: Any) -> Any:
        """Return the probability believed in, also of models that have no posterior."""
        return self.model.predict_proba(Q)[:, 1]


def fit(name: str, problem: Problem, trials: Trials) -> Fitted:
    """Return the method after these trials; contexts are told to it where there are any."""
    model = METHODS[name](problem)
    told = {} if trials.context is None else {"context": trials.context}
    return Fitted(model.fit(trials.X, trials.y, **told), isinstance(model, LogisticGP))


def recipe(name: str, problem: Problem, known: Methods = METHODS) -> str:
    """Return the method's settings in words that change when they do."""
    model = known[name](problem)
    return f"{type(model).__name__} {sorted(model.get_params().items())}"


def expected_seconds(name: str, t: int) -> float:
    """Return about how long one unit takes, so that the time left can be told."""
    if name.startswith("LGP"):
        return 0.1 + (0.15 if "given" in name else 2.5) * (t / 1_000) ** 2.7
    return 0.05 + (4e-5 if name == "CCBP" else 2e-6) * t
