"""A description of a model, as plain values and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier

Facts = dict[str, Any]


def described(model: SmoothBetaClassifier) -> Facts:
    """Return a description of a model, as values that JSON can hold."""
    from betafield import meaning, observed

    seen = observed.observed(model)
    successes = None if seen.successes is None else float(seen.successes.sum())
    return {
        "trials": _plain(model.n_trials_),
        "successes": successes,
        "places": len(seen.points),
        "features": _features(model, seen.names),
        "classes": model.classes_.tolist(),
        "success": getattr(model, "pos_label_", None),
        "rates": _rates(model),
        "distorted": bool(model.field_.totals.distorted),
        "components": _components(model),
        "told": [str(sentence) for sentence in meaning.told(model)],
        "parameters": _parameters(model),
    }


def _features(model: SmoothBetaClassifier, names: tuple[str, ...]) -> list[Facts]:
    ((_, reach),) = model.field_.reaches
    columns = (model.bounds_.tolist(), reach.tolist(), model.relevance_.tolist())
    units: Facts = getattr(model, "units_", {})
    return [
        {
            "name": name,
            "low": _known(low),
            "high": _known(high),
            "reach": None if low == high else _known(_finite(far)),
            "relevance": _known(relevance),
            "units": units.get(name),
        }
        for name, (low, high), far, relevance in zip(names, *columns, strict=True)
    ]


def _rates(model: SmoothBetaClassifier) -> list[Facts]:
    """Return the posterior of each unknown rate."""
    each = [(name, post.mean(), *post.interval(0.95)) for name, post in model.rates_.items()]
    return [
        {"name": name, "mean": float(mean[0]), "low": float(low[0]), "high": float(high[0])}
        for name, mean, low, high in each
    ]


def _components(model: SmoothBetaClassifier) -> list[Facts]:
    """Return the rows of `weights_`, without fields that do not apply; infinite ends are None."""
    rows = model.weights_
    each = [{name: _plain(row[name]) for name in rows.dtype.names or ()} for row in rows]
    return [{k: _finite(v) for k, v in one.items() if _is_told(v)} for one in each]


def _is_told(value: Any) -> bool:
    """Return whether there is a value: missing numbers are NaN."""
    first = value[0] if isinstance(value, list) else value
    return not (isinstance(first, float) and math.isnan(first))


def _known(value: Any) -> Any:
    """Return a number, or None for NaN, which categories have."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and math.isinf(value) else value


def _parameters(model: SmoothBetaClassifier) -> Facts:
    return {
        name: str(value) if callable(value) else _plain(value)
        for name, value in model.get_params(deep=False).items()
    }


def _plain(value: Any) -> Any:
    """Return Python numbers and lists in place of NumPy's."""
    return value.tolist() if hasattr(value, "tolist") else value


# In words ----------------------------------------------------------------------------------


def lines(facts: Facts) -> list[tuple[str, str]]:
    """Return the description for people, one line per fact."""
    return [
        ("trials", _trials(facts)),
        ("places", f"{facts['places']:,}"),
        *(("feature", _feature(each, facts)) for each in facts["features"]),
        ("classes", _classes(facts)),
        *_near(facts),
        *([("contexts", _contexts(facts))] if facts["distorted"] else []),
    ]


def settings(facts: Facts) -> list[tuple[str, str]]:
    """Return the options of the model, except bounds, which are described elsewhere."""
    options = ("method", "bandwidth", "lipschitz", "metric", "scale", "prior", "sharing")
    told = [(f"--{name}", _spelled(facts["parameters"][name])) for name in options]
    label, monotonic = (facts["parameters"][name] for name in ("pos_label", "monotonic_cst"))
    told += [] if label is None else [("--success", str(label))]
    told += [] if monotonic is None else [("--monotonic", _ways(monotonic, facts))]
    return told + _wrapping(facts["parameters"])


def _wrapping(parameters: Facts) -> list[tuple[str, str]]:
    """Return which features wrap around, as options."""
    periodic, geographic = (parameters[name] for name in ("periodic", "geographic"))
    each = [f"{name}={period:g}" for name, period in (periodic or {}).items()]
    told = [("--periodic", ",".join(each))] if each else []
    return told + ([("--geographic", ",".join(map(str, geographic)))] if geographic else [])


def _ways(monotonic: Any, facts: Facts) -> str:
    """Return the direction along features, as an option."""
    if not isinstance(monotonic, dict):
        names = [each["name"] for each in facts["features"]]
        monotonic = dict(zip(names, monotonic, strict=True))
    return ",".join(f"{'-' * (way < 0)}{name}" for name, way in monotonic.items() if way)


def _spelled(value: Any) -> str:
    """Return a value as an option spells it."""
    if isinstance(value, list | tuple):
        return ",".join(each if isinstance(each, str) else f"{each:g}" for each in value)
    return "none" if value is None else str(value)


def _trials(facts: Facts) -> str:
    told = f"{facts['trials']:,.10g}"
    if facts["successes"] is None or not facts["trials"]:
        return told
    return f"{told}, {facts['successes'] / facts['trials']:.1%} of them successes"


def _feature(each: Facts, facts: Facts) -> str:
    if each["low"] is None:
        return f"{each['name']}, a category"
    told = f"{each['name']}, from {each['low']:.6g} to {each['high']:.6g}"
    if each["reach"] is None:
        return told
    if not _has_windows(facts):
        told += f", length scale {each['reach']:.4g}"
        if len(facts["features"]) > 1:
            told += f", relevance {each['relevance']:.4g}"
    return told


def _has_windows(facts: Facts) -> bool:
    """Return whether the model uses the paper's windows."""
    return "part" not in facts["components"][0]


def _classes(facts: Facts) -> str:
    told = ", ".join(map(str, facts["classes"]))
    return f"{told}; success is {facts['success']}" if len(facts["classes"]) == 2 else told


def _near(facts: Facts) -> list[tuple[str, str]]:
    """Return how far trials reach: a width, or what was learned beside length scales."""
    if _has_windows(facts):
        return [("bandwidth", _bandwidth(facts)), *(("near", said) for said in facts["told"][2:])]
    return [("learned", said) for said in facts["told"][1:]]


def _bandwidth(facts: Facts) -> str:
    chosen, width = facts["parameters"]["bandwidth"], facts["components"][0]["width"]
    told = f"{width:.4g} of the domain" if _is_ranged(facts) else f"{width:.4g}"
    return f"{told}, by {chosen!r}" if isinstance(chosen, str) else told


def _is_ranged(facts: Facts) -> bool:
    return facts["parameters"]["scale"] in ("auto", "range")


def _contexts(facts: Facts) -> str:
    shared = f"shared by {facts['parameters']['sharing']!r}"
    how = shared if _has_windows(facts) else "each counts under its own context"
    return f"trials were distorted; {how}"
