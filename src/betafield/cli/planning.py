"""How many trials are needed before the first one, in words."""

from __future__ import annotations

from typing import Any

import betafield.cli.spelling as spelling
from betafield.cli.usage import UsageError


def planned(
    error: float | None,
    trials: int | None,
    features: int | None,
    lipschitz: float,
    metric: str,
    background: float,
) -> str:
    """Return how many trials are needed, or how large the error is, in words."""
    from betafield import guarantees

    known: dict[str, Any] = {"metric": metric, "background": background}
    if features is not None and error is not None and trials is None:
        spelling.positive("--error", error)
        needed = guarantees.trials_needed(error**2, features, lipschitz, **known)
        return _in_words(needed, error, features, lipschitz)
    if features is not None and error is None and trials is not None:
        bound = guarantees.error_bound(trials, features, lipschitz, **known)
        return _in_words(trials, bound**0.5, features, lipschitz)
    raise UsageError("--features, --error, --trials: give --features and one of the other two")


def _in_words(trials: int, error: float, features: int, lipschitz: float) -> str:
    return (
        f"{trials:,} trials, at points drawn uniformly from the domain of {features} "
        f"feature{'s' if features > 1 else ''},\nguarantee a root mean square error of "
        f"{error:.3g} or less at every point, for\nany probability that changes by at most "
        f"{lipschitz:g} over the width of the domain.\n"
        "This is the worst case. For most functions a fitted model is as precise after far fewer\n"
        "trials: fit the trials that you have, and see how wide its credible intervals are."
    )
