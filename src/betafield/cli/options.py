"""Arguments and options.

Options are declared once, as types, and used by the commands that take them. `spelling` parses the
texts that people write for them.
"""

from __future__ import annotations

from typing import Annotated

from betafield.cli.declaring import argument, flag, option

FILES, COLUMNS, MODEL = "Files", "Columns", "Model"
CONTEXTS = "How trials were distorted: one way only, by numbers or names of columns"
POINTS, RESULTS, OUTPUT = "Where", "What", "Output"
ASSUMED, BEFORE = "What is assumed", "Before the first trial"


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
LevelUnder = Annotated[
    str | None,
    option(RESULTS, "CONTEXT", "The level is a probability under a context: guess=0.5,lapse=0.02."),
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
