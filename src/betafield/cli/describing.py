"""What a model has learned, as plain values and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier

Facts = dict[str, Any]


def described(model: SmoothBetaClassifier) -> Facts:
    """Return what there is to know about a model, as values that JSON can hold."""
    from betafield import observed

    seen = observed.observed(model)
    successes = None if seen.successes is None else float(seen.successes.sum())
    return {
        "trials": _plain(model.n_trials_),
        "successes": successes,
        "places": len(seen.points),
        "features": _features(model, seen.names),
        "classes": model.classes_.tolist(),
        "distorted": bool(model.field_.totals.distorted),
        "windows": _windows(model),
        "parameters": _parameters(model),
    }


def _features(model: SmoothBetaClassifier, names: tuple[str, ...]) -> list[Facts]:
    rows = zip(names, model.bounds_.tolist(), model.relevance_.tolist(), strict=True)
    return [
        {"name": name, "low": low, "high": high, "relevance": relevance}
        for name, (low, high), relevance in rows
    ]


def _windows(model: SmoothBetaClassifier) -> list[Facts]:
    return [
        {name: _plain(record[name]) for name in ("width", "degree", "weight")}
        for record in model.weights_
    ]


def _parameters(model: SmoothBetaClassifier) -> Facts:
    return {
        name: str(value) if callable(value) else _plain(value)
        for name, value in model.get_params(deep=False).items()
    }


def _plain(value: Any) -> Any:
    """Return numbers and lists of Python in place of those of NumPy."""
    return value.tolist() if hasattr(value, "tolist") else value


# In words ----------------------------------------------------------------------------------


def lines(facts: Facts) -> list[tuple[str, str]]:
    """Return the same for people, a line each."""
    return [
        ("trials", _trials(facts)),
        ("places", f"{facts['places']:,}"),
        *(("feature", _feature(each, facts)) for each in facts["features"]),
        ("classes", _classes(facts["classes"])),
        ("bandwidth", _bandwidth(facts)),
        *([("contexts", _contexts(facts))] if facts["distorted"] else []),
    ]


def settings(facts: Facts) -> list[tuple[str, str]]:
    """Return the options with which the model was learned, but bounds, which are told."""
    options = ("bandwidth", "lipschitz", "metric", "scale", "degree", "prior", "sharing")
    return [(f"--{name}", _spelled(facts["parameters"][name])) for name in options]


def _spelled(value: Any) -> str:
    """Return a value as an option has it."""
    if isinstance(value, list | tuple):
        return ",".join(f"{each:g}" for each in value)
    return "none" if value is None else str(value)


def _trials(facts: Facts) -> str:
    told = f"{facts['trials']:,.10g}"
    if facts["successes"] is None or not facts["trials"]:
        return told
    return f"{told}, {facts['successes'] / facts['trials']:.1%} of them successes"


def _feature(each: Facts, facts: Facts) -> str:
    told = f"{each['name']}, from {each['low']:.6g} to {each['high']:.6g}"
    if len(facts["features"]) == 1 or each["low"] == each["high"]:
        return told
    return f"{told}, relevance {each['relevance']:.4g}"


def _classes(classes: list[Any]) -> str:
    told = ", ".join(map(str, classes))
    return f"{told}; success is {classes[1]}" if len(classes) == 2 else told


def _bandwidth(facts: Facts) -> str:
    chosen, windows = facts["parameters"]["bandwidth"], facts["windows"]
    told = f"{windows[0]['width']:.4g} of the domain" if _is_ranged(facts) else None
    told = told or f"{windows[0]['width']:.4g}"
    if isinstance(chosen, str):
        told += f", by {chosen!r}"
    return told if len(windows) == 1 else f"{told}, the heaviest of {len(windows)} windows"


def _is_ranged(facts: Facts) -> bool:
    return facts["parameters"]["scale"] in ("auto", "range", "ard")


def _contexts(facts: Facts) -> str:
    return f"trials were distorted; shared by {facts['parameters']['sharing']!r}"
