"""Curves from units, slopes from curves, and checks of what the paper says about them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paper.harness import Cache, Unit

Found = dict[str, Any]


# Curves ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """One method over numbers of trials, in one panel of a figure."""

    panel: str
    method: str
    problem: str
    t: tuple[int, ...]
    runs: tuple[int, ...]  # at each t
    what: str = "errors"

    def units(self) -> Iterator[Unit]:
        for t in self.t:
            yield from self.units_at(t)

    def units_at(self, t: int) -> Iterator[Unit]:
        for run in range(self.runs[self.t.index(t)]):
            yield Unit(self.what, self.problem, self.method, t, run)

    def read(self, cache: Cache) -> Found:
        """Return what is kept of it: mean and standard error over runs at each t, and slopes."""
        kept = [[cache.need(unit) for unit in self.units_at(t)] for t in self.t]
        about = {"problem": self.problem, "t": list(self.t), "runs": list(self.runs)}
        if self.what == "means":
            return about | kept[0][0]
        by_name = {name: [[run[name] for run in runs] for runs in kept] for name in kept[0][0]}
        if self.what == "seconds":
            return about | timed(self.t, by_name["seconds"])
        return about | {name: summary(self.t, values) for name, values in by_name.items()}


def summary(t: Sequence[int], values: Sequence[Sequence[float]]) -> Found:
    """Return mean and standard error over the runs at each t, and the slope of the means."""
    mean = np.array([np.mean(runs) for runs in values])
    error = np.array([np.std(runs, ddof=1) / np.sqrt(len(runs)) for runs in values])
    found = {"mean": mean.tolist(), "se": error.tolist()}
    if len(t) > 1 and (mean > 0).all():
        found["slope"], found["slope_se"] = slope(t, mean, error)
    return found


def timed(t: Sequence[int], seconds: Sequence[Sequence[float]]) -> Found:
    """Return the best seconds of several, and the exponent of their growth."""
    best = [min(runs) for runs in seconds]
    return {"seconds": best, "exponent": slope(t, best, np.zeros(len(best)))[0]}


def slope(t: ArrayLike, mean: ArrayLike, error: ArrayLike) -> tuple[float, float]:
    """Return the slope of log mean on log t by least squares, and its standard error.

    Trials at different t are independent, and the slope is Σ w log mean with known w, so its
    variance is Σ w² (error/mean)²: that of the runs, not that of a curve that bends.
    """
    x = np.log(np.asarray(t, dtype=float))
    w = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    mean, error = np.asarray(mean), np.asarray(error)
    return float(w @ np.log(mean)), float(np.sqrt(np.sum((w * error / mean) ** 2)))


class Results(dict[str, dict[str, Found]]):
    """Curves by panel and method."""

    @classmethod
    def read(cls, curves: Sequence[Curve], cache: Cache) -> "Results":
        found = cls()
        for curve in curves:
            found.setdefault(curve.panel, {})[curve.method] = curve.read(cache)
        return found

    def at(self, panel: str, method: str, name: str, t: int) -> float:
        """Return a mean over runs at one t."""
        curve = self[panel][method]
        return float(curve[name]["mean"][curve["t"].index(t)])

    def shared(self, panel: str, one: str, other: str, least: int = 0) -> list[int]:
        """Return the t at which both were run."""
        both = set(self[panel][one]["t"]) & set(self[panel][other]["t"])
        return sorted(t for t in both if t >= least)

    def ratios(
        self, panel: str, one: str, other: str, name: str = "l2", least: int = 0
    ) -> dict[int, float]:
        """Return one method's error to another's, at every t from `least` on at which both ran."""
        return {
            t: self.at(panel, one, name, t) / self.at(panel, other, name, t)
            for t in self.shared(panel, one, other, least)
        }

    def common_slopes(self, panel: str, one: str, other: str) -> list[tuple[float, float]]:
        """Return both slopes of the L2 error over the t at which both were run."""
        t = self.shared(panel, one, other)
        found = []
        for method in (one, other):
            curve = self[panel][method]
            at = [curve["t"].index(each) for each in t]
            mean, error = (np.array(curve["l2"][key])[at] for key in ("mean", "se"))
            found.append(slope(t, mean, error))
        return found


# Checks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """A value, what it may be, and its standard error, of which two are allowed for."""

    figure: str
    claim: str
    value: float
    sign: str
    allowed: float
    error: float = 0.0

    @property
    def met(self) -> bool:
        low, high = self.value - 2 * self.error, self.value + 2 * self.error
        return bool(low <= self.allowed if self.sign == "≤" else high >= self.allowed)

    @property
    def found(self) -> str:
        return f"{self.value:#.3g}" + (f" ± {self.error:.2g}" if self.error else "")

    def __str__(self) -> str:
        verdict = "met" if self.met else "MISSED"
        return (
            f"{verdict:7} figure {self.figure}: {self.claim}: {self.found}, "
            f"allowed {self.sign} {self.allowed:.3g}"
        )


Checker = Callable[[Results], Check]
Checks = dict[str, Checker]


def slope_check(
    figure: str, claim: str, panel: str, method: str, allowed: float, name: str = "l2"
) -> Checker:
    """Check that an error falls at least so fast."""

    def check(results: Results) -> Check:
        fitted = results[panel][method][name]
        return Check(figure, claim, fitted["slope"], "≤", allowed, fitted["slope_se"])

    return check
