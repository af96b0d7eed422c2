"""A risk that jumps: how soon a tracker says so, and how often it does for nothing, over levels.

One feature, 1,000 trials per day anywhere on [0, 1], a look every 50 trials at 11 places, threshold
0.2. False alarms: the risk is the threshold itself everywhere (the worst case), or half of it.
Delay: after five days at 0.05 the risk jumps to 0.4 on [0.55, 0.85]; counted are all trials from
the jump to the first alarm at 0.7, of which one in five lies in its window.

Speed: trials per second of processor time in batches, looks included, in cells that are all in use,
beside one `SmoothBetaClassifier.fit` of all trials.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from betafield import SmoothBetaClassifier
from betafield.decisions import RiskTracker, false_alarm_rate

RESULTS = Path("out/tracking.json")
LEVELS = (0.9, 0.95, 0.99, 0.999, 0.9999)
FORGETTING = {"half life 1": {"half_life": 1.0}, "window 2": {"window": 2.0}}
RATE, LOOK, THRESHOLD = 1_000, 50, 0.2
RUNS, PER_RATE = 20, 100_000


def options(level: float, forgetting: dict[str, float]) -> dict[str, Any]:
    return {"threshold": THRESHOLD, "alarm": level, "bounds": [(0, 1)], **forgetting}


def delay(level: float, forgetting: dict[str, float], seed: int) -> int:
    """Trials from the jump to the alarm."""
    rng = np.random.default_rng(seed)
    tracker = RiskTracker(**options(level, forgetting), places=[[0.7]])
    X, days = rng.uniform(size=(5 * RATE, 1)), np.sort(rng.uniform(0, 5, 5 * RATE))
    tracker.update(X, rng.uniform(size=len(X)) < 0.05, days)
    for trials in range(LOOK, 100 * RATE, LOOK):
        X = rng.uniform(size=(LOOK, 1))
        risk = np.where((X[:, 0] > 0.55) & (X[:, 0] < 0.85), 0.4, 0.05)
        if len(tracker.update(X, rng.uniform(size=LOOK) < risk, 5.0 + trials / RATE)):
            return trials
    raise RuntimeError("the jump was not seen")


def curve() -> list[dict[str, Any]]:
    rows = []
    print(
        "delay in trials: median (10 % to 90 %); false alarms per 10⁵ trials; share of looks above "
        "the level, and its bound\n"
        f"{'forgetting':<13}{'level':>7}{'delay':>20}{'false at 0.2':>14}{'at 0.1':>8}"
        f"{'looks at 0.2':>14}{'bound':>8}"
    )
    for name, forgetting in FORGETTING.items():
        for level in LEVELS:
            delays = [delay(level, forgetting, seed) for seed in range(RUNS)]
            worst, sound = (
                false_alarm_rate(
                    options(level, forgetting), RATE, risk, batch=LOOK, n_trials=PER_RATE
                )
                for risk in (THRESHOLD, THRESHOLD / 2)
            )
            low, middle, high = np.percentile(delays, [10, 50, 90])
            bound = (1 - level) / THRESHOLD
            rows.append(
                {
                    "forgetting": name,
                    "level": level,
                    "delay": [low, middle, high],
                    "false_at_threshold": worst.per_100_000,
                    "false_at_half": sound.per_100_000,
                    "share_at_threshold": worst.share,
                    "bound": bound if "window" in forgetting else None,
                }
            )
            shown = f"{bound:.4f}" if "window" in forgetting else "none"
            span = f"{middle:.0f} ({low:.0f} to {high:.0f})"
            print(
                f"{name:<13}{level:>7}{span:>20}{worst.per_100_000:>14.0f}{sound.per_100_000:>8.0f}"
                f"{worst.share:>14.4f}{shown:>8}",
                flush=True,
            )
    return rows


def speed() -> list[dict[str, Any]]:
    rows = []
    for d in (1, 2):
        rng = np.random.default_rng(0)
        X, y = rng.uniform(size=(400_000, d)), rng.uniform(size=400_000) < 0.1
        times = np.arange(400_000) / 20_000
        RiskTracker(THRESHOLD, window=1.0).update(X[:9], y[:9], 0.0)  # kernels are compiled now
        start = time.process_time()
        SmoothBetaClassifier(0.1, bounds=[(0, 1)] * d).fit(X, y).posterior(X[:1])
        fitted = time.process_time() - start
        for name, forgetting in FORGETTING.items():
            for batch in (1_000, 10_000):
                tracker = RiskTracker(THRESHOLD, bounds=[(0, 1)] * d, **forgetting)
                n = 200 * batch if batch < 10_000 else 400_000
                start = time.process_time()
                for i in range(0, n, batch):
                    tracker.update(X[i : i + batch], y[i : i + batch], times[i : i + batch])
                took = time.process_time() - start
                ratio = (took / n) / (fitted / 400_000)
                rows.append(
                    {
                        "d": d,
                        "forgetting": name,
                        "batch": batch,
                        "trials_per_second": n / took,
                        "times_fit": ratio,
                        "places": tracker.n_places,
                    }
                )
                print(
                    f"{d}-D, {name}, batches of {batch}: {n / took:,.0f} trials/s, {ratio:.1f} "
                    f"times one fit; {tracker.n_places} places in memory",
                    flush=True,
                )
    return rows


def main() -> None:
    results = {"curve": curve(), "speed": speed()}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
