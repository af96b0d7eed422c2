"""The tables of docs/paper.md, made from paper/results.json so that they cannot differ."""

import json
import platform
import re
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from paper.results import Check, Results
from paper.sizes import Sizes

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "paper" / "results.json"
PAGE = ROOT / "docs" / "paper.md"
PICTURES = ROOT / "docs" / "paper"
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
SHOWN = ("l2", "squared")


def as_json(results: Results, checks: dict[str, Check], sizes: Sizes) -> dict[str, Any]:
    """Return all numbers."""
    return {
        "environment": {name: version(name) for name in PACKAGES}
        | {"Python": platform.python_version()},
        "sizes": asdict(sizes),
        "curves": {
            panel: {method: _without_means(curve) for method, curve in curves.items()}
            for panel, curves in results.items()
        },
        "checks": {
            name: asdict(check) | {"found": check.found, "met": check.met}
            for name, check in checks.items()
        },
    }


def _without_means(curve: dict[str, Any]) -> dict[str, Any]:
    return {name: found for name, found in curve.items() if name not in ("rested", "tired")}


# Tables --------------------------------------------------------------------------------------


def slopes(kept: dict[str, Any]) -> list[str]:
    """Every curve of L2 errors: its slope, and the error at its first and last t."""
    titles = "figure|method|trials|slope of the L2 error|of the mean's|L2 error, first t|last t"
    rows = _titles(titles.split("|"))
    for panel, curves in kept["curves"].items():
        for method, curve in curves.items():
            if panel[0] in "123" and "l2" in curve:
                span = f"{curve['t'][0]:,} to {curve['t'][-1]:,}"
                cells = [panel, method, span, *(_slope(curve[name]) for name in SHOWN)]
                cells += [_error(curve["l2"], at) for at in (0, -1)]
                rows.append(_row(cells))
    return rows


def against_gp(kept: dict[str, Any]) -> list[str]:
    """The paper's method and LGP at the same t: ratios of errors, and slopes."""
    results = Results(kept["curves"])
    t = kept["curves"]["1 left"]["LGP"]["t"]
    ratios = [f"L2 error to LGP's, t = {each:,}" for each in t]
    rows = _titles(["figure", "method", *ratios, "its slope there", "LGP's"])
    for panel, curves in results.items():
        if panel[0] in "123" and "l2" in curves.get("LGP", {}):
            ours = next(iter(curves))
            cells = [f"{each:.2f}" for each in results.ratios(panel, ours, "LGP").values()]
            cells += [_plus_minus(*each) for each in results.common_slopes(panel, ours, "LGP")]
            rows.append(_row([panel, ours, *cells]))
    return rows


def theorem_slopes(kept: dict[str, Any]) -> list[str]:
    """Slopes of L2 and L1 error, and of excess risk."""
    rows = _titles(["setting", "method", "slope of the L2 error", "L1 error", "excess risk"])
    for panel, curves in kept["curves"].items():
        if panel.startswith("theorem"):
            for method, curve in curves.items():
                found = [_slope(curve[name]) for name in ("l2", "l1", "excess")]
                rows.append(_row([panel.removeprefix("theorem, "), method, *found]))
    return rows


def times(kept: dict[str, Any]) -> list[str]:
    rows = _titles(["method", "trials", "seconds", "exponent"])
    for method, curve in kept["curves"]["1 right"].items():
        at = ", ".join(f"{t:,}" for t in curve["t"])
        seconds = ", ".join(f"{each:.3g}" for each in curve["seconds"])
        rows.append(_row([method, at, seconds, f"{curve['exponent']:.2f}"]))
    return rows


def risks(kept: dict[str, Any]) -> list[str]:
    """Risk and excess of figure 4, some t each."""
    curves = kept["curves"]["4"]
    t = next(iter(curves.values()))["t"]
    at = [i for i, each in enumerate(t) if str(each).startswith("1")]
    rows = _titles(["excess risk", *(f"t = {t[i]:,}" for i in at)])
    for method, curve in curves.items():
        label = "uniform prior" if method == "SBP" else method
        rows.append(_row([label, *(_error(curve["excess"], i) for i in at)]))
    return rows


def checks(kept: dict[str, Any]) -> list[str]:
    rows = _titles(["figure", "", "found", "allowed", ""])
    for check in kept["checks"].values():
        allowed = f"{check['sign']} {check['allowed']:.3g}".replace("-", "−")
        verdict = "met" if check["met"] else "**missed**"
        found = check["found"].replace("-", "−")
        rows.append(_row([check["figure"], check["claim"], found, allowed, verdict]))
    return rows


def _titles(cells: list[str]) -> list[str]:
    return [_row(cells), "|---" * len(cells) + "|"]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _slope(found: dict[str, Any]) -> str:
    return _plus_minus(found["slope"], found["slope_se"])


def _plus_minus(value: float, error: float) -> str:
    return f"{value:.3f} ± {error:.3f}".replace("-", "−")


def _error(found: dict[str, Any], at: int) -> str:
    return f"{found['mean'][at]:.2g} ± {found['se'][at]:.1g}"


TABLES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "checks": checks,
    "slopes": slopes,
    "against_gp": against_gp,
    "times": times,
    "risks": risks,
    "theorems": theorem_slopes,
}


def rendered(text: str, kept: dict[str, Any]) -> str:
    """Return the page with its tables made anew."""

    def table(match: re.Match[str]) -> str:
        rows = "\n".join(TABLES[match["name"]](kept))
        return f"<!-- table: {match['name']} -->\n{rows}\n<!-- end -->"

    return re.sub(r"<!-- table: (?P<name>\w+) -->.*?<!-- end -->", table, text, flags=re.DOTALL)


def renew() -> None:
    """Put the results into the page."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")
