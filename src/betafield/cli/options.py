"""What can be asked for, and what it means to the library.

Options are declared once, as types, and used by the commands that take them. What people write
(lists, bounds, numbers or names of columns) becomes what the library takes; whatever is not
spelled as it must be is wrong usage.
"""

from __future__ import annotations

import csv
import math
import re
from fractions import Fraction
from typing import Annotated, Any

from betafield.cli.declaring import argument, flag, option
from betafield.cli.usage import UsageError

FILES, COLUMNS, MODEL = "Files", "Columns", "Model"
CONTEXTS = "How trials were distorted: one way only, by numbers or names of columns"
POINTS, RESULTS, OUTPUT = "Where", "What", "Output"
ASSUMED, BEFORE = "What is assumed", "Before the first trial"


# Declared ----------------------------------------------------------------------------------

Files = Annotated[
    list[str],
    argument(
        FILES,
        "FILE...",
        "Files of trials (.csv, .tsv, .parquet or .pq), folders or globs of them, or - for "
        "standard input.",
    ),
]
ModelFile = Annotated[
    str,
    argument(FILES, "MODEL", "A model file written by fit, or - for standard input."),
]

Separator = Annotated[
    str | None,
    option(FILES, "MARK", "Column separator of text files: one character, such as ';', or tab."),
]
DropMissing = Annotated[
    bool,
    flag(FILES, "--drop-missing", "Leave out rows with missing values, and say how many."),
]

Features = Annotated[
    list[str] | None,
    option(COLUMNS, "NAMES", "Columns to predict from, separated by commas, such as lon,lat."),
]
Outcome = Annotated[
    str | None, option(COLUMNS, "NAME", "Column with the outcome, which has two or more values.")
]
Success = Annotated[
    str | None,
    option(COLUMNS, "LABEL", "The outcome that counts as success. Default: guessed by its name."),
]
Successes = Annotated[
    str | None,
    option(COLUMNS, "NAME", "Column with the number of successes, if rows are counts."),
]
Trials = Annotated[
    str | None, option(COLUMNS, "NAME", "Column with the number of trials; with --successes.")
]
Weights = Annotated[
    str | None, option(COLUMNS, "NAME", "Column with weights; a weight of 2 counts as two rows.")
]

Groups = Annotated[
    str | None,
    option(
        COLUMNS,
        "NAME",
        "Column with groups whose trials share an effect, such as a chamber or a storm.",
    ),
]
Overdispersion = Annotated[
    bool,
    flag(MODEL, "--overdispersion", "Let counts vary more than those of independent trials."),
]

Method = Annotated[
    str,
    option(MODEL, "NAME", "auto (a process and windows of its residuals), process or windows."),
]
Bandwidth = Annotated[
    str,
    option(MODEL, "WIDTH", "Use windows of this width: loo, theory or a number."),
]
Lipschitz = Annotated[
    float, option(MODEL, "L", "How fast the probability may change; for --bandwidth theory.")
]
Metric = Annotated[str, option(MODEL, "NAME", "euclidean, chebyshev or manhattan.")]
Scale = Annotated[
    str,
    option(
        MODEL,
        "UNITS",
        "Units in which the probability is smooth: auto, range, rank or log, for all features or "
        "one per feature, such as log,range. For windows: auto, range, none, or numbers such as "
        "1,0.5.",
    ),
]
Bounds = Annotated[
    list[str] | None,
    option(MODEL, "NAME=LOW:HIGH", "The domain of a feature; repeat it for each feature."),
]
Prior = Annotated[str, option(MODEL, "ALPHA,BETA", "For windows: the Beta prior.")]
Categorical = Annotated[
    list[str] | None,
    option(
        MODEL,
        "NAMES",
        "Features that are categories, separated by commas. Text columns that --features names "
        "are categories anyway.",
        "--categorical",
    ),
]
Interactions = Annotated[
    list[str] | None,
    option(
        MODEL,
        "NAMES",
        "Categories whose combinations have effects, such as site,sex; repeat it for more.",
        "--interactions",
    ),
]
Missing = Annotated[
    str,
    option(
        MODEL,
        "HOW",
        "What to do with missing values: error; drop, like --drop-missing; or level, which treats "
        "a missing category as a level.",
        "--missing",
    ),
]
Monotonic = Annotated[
    list[str] | None,
    option(
        MODEL,
        "NAMES",
        "Features along which the probability never falls; -NAME: along which it never rises, "
        "as in --monotonic=-NAME.",
    ),
]
Periodic = Annotated[
    list[str] | None,
    option(MODEL, "NAME=PERIOD", "Features that repeat after a period, such as hour=24."),
]
Geographic = Annotated[
    list[str] | None,
    option(MODEL, "LON,LAT", "The features that are longitude and latitude, in degrees."),
]
Sharing = Annotated[
    str, option(MODEL, "NAME", "For windows, how contexts are combined: exact or mean.")
]

Guess = Annotated[
    str | None, option(CONTEXTS, "RATE", "P(success by luck), such as 1/2 with two choices.")
]
Lapse = Annotated[
    str | None,
    option(
        CONTEXTS,
        "RATE",
        "P(failure by inattention), alone or with --guess. If it is unknown, a prior such as "
        "'~Beta(1.5, 30)'; this works for every rate.",
    ),
]
Sensitivity = Annotated[
    str | None,
    option(
        CONTEXTS, "RATE", "P(positive | present). 92/100 means estimated: 92 of 100 in a study."
    ),
]
Specificity = Annotated[
    str | None,
    option(CONTEXTS, "RATE", "P(negative | absent); like --sensitivity."),
]
PoolSize = Annotated[
    str | None,
    option(
        CONTEXTS,
        "SIZE",
        "Samples per pooled test; --sensitivity and --specificity are then 1 by default.",
    ),
]
Background = Annotated[
    str | None,
    option(CONTEXTS, "RATE", "P(success without treatment), such as control mortality."),
]
Attenuated = Annotated[
    str | None,
    option(CONTEXTS, "FACTOR", "Factor that reduces success, such as fatigue or position."),
]
Truth = Annotated[
    str | None,
    option(CONTEXTS, "RATE", "P(true answer) in a randomised survey; otherwise a coin answers."),
]
Yes = Annotated[
    str | None, option(CONTEXTS, "RATE", "P(that coin says yes); with --truth. Default: 1/2.")
]
Gain = Annotated[
    str | None, option(CONTEXTS, "A", "P(success) is A π + B; together with --offset.")
]
Offset = Annotated[str | None, option(CONTEXTS, "B", "See --gain.")]

Grid = Annotated[
    int | None,
    option(
        POINTS, "N", "An even grid of N points over the domain; N × N for two features.", "--grid"
    ),
]
At = Annotated[
    str | None, option(POINTS, "FILE", "A table of points, or - for standard input.", "--at")
]
By = Annotated[
    str,
    option(POINTS, "FILE", "A table of points and their areas, or - for standard input.", "--by"),
]
Area = Annotated[str, option(POINTS, "NAME", "Column with the area of each point.")]
PointWeights = Annotated[
    str | None, option(POINTS, "NAME", "Column with the weight of each point.", "--weights")
]
Level = Annotated[float, option(RESULTS, "LEVEL", "Level of the credible intervals.")]
Above = Annotated[
    float | None, option(RESULTS, "P", "Also compute how likely the probability is above P.")
]
Band = Annotated[
    float | None,
    option(
        RESULTS,
        "L",
        "Add guaranteed intervals for a probability that changes by at most L over the domain.",
    ),
]
Under = Annotated[
    str | None,
    option(RESULTS, "CONTEXT", "Give the probability under a context: guess=0.5,lapse=0.02."),
]
Levels = Annotated[
    list[float],
    option(RESULTS, "P", "The probability to reach; repeat it for several."),
]
Feature = Annotated[
    str | None,
    option(POINTS, "NAME", "The feature to vary; not needed if there is only one."),
]
Fixed = Annotated[
    list[str] | None,
    option(
        POINTS,
        "NAME=VALUE",
        "Fix another feature; by default the others are averaged over the trials.",
    ),
]
Anchored = Annotated[
    bool, flag(RESULTS, "--anchored", "Assume that the curve starts at 0 and ends at 1.")
]
Interval = Annotated[float, option(RESULTS, "LEVEL", "Level of the credible intervals.")]
Draws = Annotated[int, option(RESULTS, "N", "Number of draws.", "--draws")]
Seed = Annotated[int, option(RESULTS, "N", "Seed of the draws.", "--seed")]
Title = Annotated[str | None, option(RESULTS, "TEXT", "The title of the page.")]
Guaranteed = Annotated[
    float | None,
    option(
        RESULTS,
        "L",
        "Show guaranteed intervals for a probability that changes by at most L over the domain.",
    ),
]

Exceeded = Annotated[
    float | None,
    option(RESULTS, "P", "Show how likely the probability is above P.", "--above"),
]

PlannedModel = Annotated[
    str | None,
    argument(FILES, "MODEL", "A model file written by fit, or - for standard input."),
]
Smoothness = Annotated[
    float,
    option(ASSUMED, "L", "How much the probability may change over the width of the domain."),
]
Error = Annotated[float | None, option(BEFORE, "E", "The largest acceptable error, such as 0.05.")]
PlannedTrials = Annotated[
    int | None, option(BEFORE, "T", "Instead of --error: the number of trials.")
]
Dimensions = Annotated[int | None, option(BEFORE, "D", "The number of features.")]
PlannedMetric = Annotated[str, option(BEFORE, "NAME", "euclidean, chebyshev or manhattan.")]
LargestBackground = Annotated[
    float, option(BEFORE, "RATE", "The largest rate of success without treatment.")
]
Width = Annotated[float, option(RESULTS, "WIDTH", "The width of intervals to reach.")]
DemoOut = Annotated[
    str | None, option(OUTPUT, "FILE", "Also write a report to this HTML file.", "--out")
]
Quick = Annotated[bool, flag(RESULTS, "--quick", "Fewer and smaller runs, in two minutes.")]
Fresh = Annotated[bool, flag(RESULTS, "--fresh", "Discard earlier results.")]
Jobs = Annotated[int, option(RESULTS, "N", "Number of processes.")]

Out = Annotated[
    str | None, option(OUTPUT, "FILE", "The file to write, or - for standard output.", "--out")
]
Force = Annotated[bool, flag(OUTPUT, "--force", "Replace an existing file.")]
Format = Annotated[
    str | None,
    option(
        OUTPUT,
        "NAME",
        "csv, parquet or json. Default: that of the file's ending, or csv.",
        "--format",
    ),
]
GeoJSON = Annotated[bool, flag(OUTPUT, "--geojson", "Write places on Earth as GeoJSON.")]
GeoTIFF = Annotated[
    bool, flag(OUTPUT, "--geotiff", "Write a grid of places on Earth as GeoTIFF (needs rasterio).")
]
Quiet = Annotated[bool, flag(OUTPUT, "--quiet", "Print errors only.")]
Json = Annotated[bool, flag(OUTPUT, "--json", "Write JSON instead of text.")]


# Spelled -----------------------------------------------------------------------------------


def names(given: list[str] | None) -> list[str] | None:
    """Return the names of a list such as `lon,lat`; a comma within a name takes double quotes.

    Examples
    --------
    >>> names(["lon,lat", '"a, b"'])
    ['lon', 'lat', 'a, b']
    """
    if not given:
        return None
    return [name.strip() for part in csv.reader(given, skipinitialspace=True) for name in part]


def separator(text: str | None) -> str | None:
    r"""Return what separates columns; a tab may be spelled.

    Examples
    --------
    >>> separator("tab"), separator(";")
    ('\t', ';')
    """
    return "\t" if text in ("tab", "\\t") else text


def missing(how: str, is_dropped: bool) -> str:
    """Return what happens to rows without a value; raise if two options disagree.

    Examples
    --------
    >>> missing("error", is_dropped=True), missing("level", is_dropped=False)
    ('drop', 'level')
    """
    if is_dropped and how not in ("error", "drop"):
        raise UsageError(f"--missing, --drop-missing: found {how!r} and drop; give one of them")
    return "drop" if is_dropped else how


def number(option: str, text: str) -> float:
    """Return a number, which may be a fraction.

    Examples
    --------
    >>> number("--guess", "1/4")
    0.25
    """
    found = fraction(text)
    if found is None:
        raise UsageError(f"{option}: found {text!r}; a number is needed, such as 0.25 or 1/4")
    return found


def fraction(text: str) -> float | None:
    """Return a number or a fraction; None where the text is neither."""
    try:
        return float(Fraction(text.replace(" ", "")))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Return the numbers of a list such as `1,0.5`."""
    return tuple(number(option, part) for part in text.split(","))


def number_or_name(text: str) -> Any:
    """Return a number where the text is one, and else the text; a whole number as such."""
    if re.fullmatch(r"\d+", text):
        return int(text)
    found = fraction(text)
    return text if found is None else found


def scale(text: str) -> Any:
    """Return units by name, none of them, or one for each feature.

    Examples
    --------
    >>> scale("none"), scale("log"), scale("log,range"), scale("1,1/2")
    (None, 'log', ['log', 'range'], [1.0, 0.5])
    """
    if text == "none":
        return None
    parts = [part.strip() for part in text.split(",")]
    if all(part.isalpha() for part in parts):
        return parts if len(parts) > 1 else parts[0]
    return list(numbers("--scale", text))


def bounds(given: list[str] | None, features: list[str]) -> list[tuple[float, float]] | None:
    """Return the domain of each feature in turn, from texts such as `dose=0:60`.

    Examples
    --------
    >>> bounds(["lat=40:50", "lon=-10:10"], ["lon", "lat"])
    [(-10.0, 10.0), (40.0, 50.0)]
    """
    if not given:
        return None
    found: dict[str, tuple[float, float]] = {}
    for text in given:
        name, _, ends = text.rpartition("=")
        low, colon, high = ends.partition(":")
        if not colon or name not in features or name in found:
            raise UsageError(
                f"--bounds: found {text!r}; NAME=LOW:HIGH is needed, once for each feature: "
                f"{', '.join(features)}"
            )
        found[name] = number("--bounds", low), number("--bounds", high)
    missing = [name for name in features if name not in found]
    if missing:
        raise UsageError(
            f"--bounds: found none for {', '.join(missing)}; give them for all features, or none"
        )
    return [found[name] for name in features]


def monotonic(given: list[str] | None) -> dict[str, int] | None:
    """Return which way it goes along features, from texts such as `dose,-age`.

    Examples
    --------
    >>> monotonic(["dose,-age"])
    {'dose': 1, 'age': -1}
    """
    found = names(given)
    if found is None:
        return None
    return {name.removeprefix("-"): -1 if name.startswith("-") else 1 for name in found}


def periodic(given: list[str] | None) -> dict[str, float] | None:
    """Return periods of features, from texts such as `hour=24`.

    Examples
    --------
    >>> periodic(["hour=24,day_of_year=365.25"])
    {'hour': 24.0, 'day_of_year': 365.25}
    """
    found: dict[str, float] = {}
    for each in names(given) or []:
        name, _, period = each.rpartition("=")
        if not name:
            raise UsageError(f"--periodic: found {each!r}; NAME=PERIOD is needed, such as hour=24")
        try:
            found[name] = float(period)
        except ValueError:
            raise UsageError(f"--periodic: found {each!r}; a period is a number") from None
    return found or None


def geographic(given: list[str] | None) -> tuple[str, ...] | None:
    """Return the features that are longitude and latitude, from a text such as `lon,lat`.

    Examples
    --------
    >>> geographic(["lon,lat"])
    ('lon', 'lat')
    """
    found = names(given)
    return None if found is None else tuple(found)


def level(value: float) -> float:
    """Return a probability of intervals, if it is one."""
    if not 0.0 < value < 1.0:
        raise UsageError(f"--level: found {value}; a number between 0 and 1 is needed")
    return value


def probability(option: str, value: float | None) -> float | None:
    """Return a probability, if one is given."""
    if value is not None and not 0.0 <= value <= 1.0:
        raise UsageError(f"{option}: found {value}; a number from 0 to 1 is needed")
    return value


def positive(option: str, value: float | None) -> float | None:
    """Return a number that must be positive, if one is given."""
    if value is not None and not (value > 0.0 and math.isfinite(value)):
        raise UsageError(f"{option}: found {value}; a positive number is needed")
    return value
