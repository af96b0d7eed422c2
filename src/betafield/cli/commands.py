"""The commands: arguments in, library calls out."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import betafield.cli.options as options
import betafield.cli.spelling as spelling
import betafield.cli.terminal as terminal
from betafield.cli.layout import GENERAL, Command, Group
from betafield.cli.serving import backup, serve, tokens
from betafield.cli.thresholds import threshold
from betafield.cli.usage import NAME, UsageError

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier

app = typer.Typer(
    cls=Group,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from betafield import __version__

        terminal.say(f"{NAME} {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            callback=_show_version,
            is_eager=True,
            rich_help_panel=GENERAL,
        ),
    ] = False,
) -> None:
    """Learn a smooth probability from yes/no trials, with a credible interval at every point.

        betafield fit trials.csv --features difficulty --outcome success
        betafield predict trials.beta --grid 200
        betafield report trials.beta

    `betafield COMMAND --help` explains a command, such as `betafield fit --help`.
    """


# Learning ----------------------------------------------------------------------------------


@app.command(cls=Command)
def fit(
    files: options.Files,
    features: options.Features = None,
    outcome: options.Outcome = None,
    success: options.Success = None,
    successes: options.Successes = None,
    trials: options.Trials = None,
    weights: options.Weights = None,
    groups: options.Groups = None,
    guess: options.Guess = None,
    lapse: options.Lapse = None,
    sensitivity: options.Sensitivity = None,
    specificity: options.Specificity = None,
    pool_size: options.PoolSize = None,
    background: options.Background = None,
    attenuated: options.Attenuated = None,
    truth: options.Truth = None,
    yes: options.Yes = None,
    gain: options.Gain = None,
    offset: options.Offset = None,
    method: options.Method = "auto",
    bandwidth: options.Bandwidth = "auto",
    lipschitz: options.Lipschitz = 1.0,
    metric: options.Metric = "euclidean",
    scale: options.Scale = "auto",
    bounds: options.Bounds = None,
    prior: options.Prior = "1,1",
    sharing: options.Sharing = "exact",
    monotonic: options.Monotonic = None,
    categorical: options.Categorical = None,
    interactions: options.Interactions = None,
    missing: options.Missing = "error",
    periodic: options.Periodic = None,
    geographic: options.Geographic = None,
    overdispersion: options.Overdispersion = False,
    separator: options.Separator = None,
    drop_missing: options.DropMissing = False,
    out: options.Out = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn a model from trials in CSV and Parquet files.

    You need not name columns if the files leave no doubt; the command then prints what it
    guessed. The outcome is the only column with two values, the features are all other columns,
    provided that they are numbers, and the success is the outcome whose name says so: yes, 1,
    true, correct, late. By default the model is written to the current folder, under the name of
    the first file but with the ending .beta.

        betafield fit trials.csv --features difficulty --outcome success
        betafield fit moths.csv --features dose --successes dead --trials insects
        betafield fit tests.parquet --features lon,lat --outcome positive
            --sensitivity 0.92 --specificity 0.98
    """
    import betafield.cli.distortions as distortions
    import betafield.cli.reading as reading
    import betafield.cli.writing as writing

    _require_outcome_or_counts(outcome, successes, trials, weights, success)
    counted: dict[str, Any] = {
        "successes": successes,
        "trials": trials,
        "sample_weight": weights,
        "groups": groups,
    }
    distortion = distortions.distortion(
        {
            "guess": guess,
            "lapse": lapse,
            "sensitivity": sensitivity,
            "specificity": specificity,
            "pool-size": pool_size,
            "background": background,
            "attenuated": attenuated,
            "truth": truth,
            "yes": yes,
            "gain": gain,
            "offset": offset,
        }
    )
    context = None if distortion is None else distortion.context()
    settings = {
        "method": method,
        "bandwidth": spelling.number_or_name(bandwidth),
        "lipschitz": lipschitz,
        "metric": metric,
        "scale": spelling.scale(scale),
        "prior": spelling.numbers("--prior", prior),
        "sharing": sharing,
        "monotonic_cst": spelling.monotonic(monotonic),
        "categorical_features": spelling.names(categorical) or "from_dtype",
        "interactions": [tuple(spelling.names([each]) or ()) for each in interactions or ()],
        "missing": spelling.missing(missing, drop_missing),
        "periodic": spelling.periodic(periodic),
        "geographic": spelling.geographic(geographic),
    }
    asked = settings["categorical_features"]
    target = out or reading.stem(files[0]) + ".beta"
    writing.require_free(target, force, reading.inputs(files))
    is_dropped = settings["missing"] == "drop"
    with reading.tables(files, separator, is_dropped) as given:
        taken = () if distortion is None else distortion.columns
        columns = reading.columns(given, spelling.names(features), outcome, counted, taken, asked)
        domain = spelling.bounds(bounds, reading.numbers(given, columns, asked))
        label, told = reading.success(given, columns, success, asked)
        for found in () if quiet else [*columns.guessed, *told]:
            terminal.note(f"guessed {found}")
        for found in () if quiet or distortion is None else distortion.unknown:
            terminal.note(found)
        model = _unfitted(**settings, bounds=domain, pos_label=label).fit_files(
            given.files,
            features=columns.features,
            outcome=columns.outcome,
            **counted,
            context=context,
            overdispersion="auto" if overdispersion else None,
            progress=terminal.is_watched(),
        )
    writing.write_whole(model.save, target, ".beta")
    if not quiet:
        _tell_learned(model, target)


def _tell_learned(model: SmoothBetaClassifier, target: str) -> None:
    """Print what was learned; if the model goes to standard output, to standard error."""
    import betafield.cli.describing as describing

    told = describing.lines(describing.described(model))
    terminal.facts([*told, ("model", target)], sys.stderr if target == "-" else None)


def _unfitted(**settings: Any) -> SmoothBetaClassifier:
    from betafield import SmoothBetaClassifier

    return SmoothBetaClassifier(**settings)


def _require_outcome_or_counts(
    outcome: str | None,
    successes: str | None,
    trials: str | None,
    weights: str | None,
    success: str | None,
) -> None:
    if (successes is None) != (trials is None):
        raise UsageError("--successes, --trials: found only one; give both, or --outcome instead")
    if successes is not None and outcome is not None:
        raise UsageError("--outcome: found with --successes; name either outcomes or counts")
    if successes is not None and weights is not None:
        raise UsageError("--weights: found with --successes; rows already have counts")
    if successes is not None and success is not None:
        raise UsageError("--success: found with --successes, which already counts the successes")


# Queries -----------------------------------------------------------------------------------


@app.command(cls=Command)
def predict(
    model: options.ModelFile,
    grid: options.Grid = None,
    at: options.At = None,
    level: options.Level = 0.95,
    above: options.Above = None,
    band: options.Band = None,
    under: options.Under = None,
    separator: options.Separator = None,
    drop_missing: options.DropMissing = False,
    out: options.Out = None,
    kind: options.Format = None,
    geojson: options.GeoJSON = False,
    geotiff: options.GeoTIFF = False,
    force: options.Force = False,
) -> None:
    """Compute the probability at points, with intervals.

    The result is a table with the features, the mean, the standard deviation std, and the ends
    low and high of a credible interval; with three or more classes it has p_<class>, low_<class>
    and so on. Tables are read and written in batches, so they may be of any length.

        betafield predict model.beta --grid 200 > curve.csv
        betafield predict model.beta --at points.csv --above 0.75 --out told.parquet
        betafield predict places.beta --grid 100 --geojson --out risk.geojson
    """
    import betafield.cli.answering as answering
    import betafield.cli.distortions as distortions
    import betafield.cli.maps as maps
    import betafield.cli.predicting as predicting

    wanted = predicting.Wanted(
        spelling.level(level),
        spelling.probability("--above", above),
        spelling.positive("--band", band),
        distortions.under(under),
    )
    named = maps.form(geojson, geotiff, kind, grid)
    target, form = answering.answers_to(model, (grid, at), (out, named, force))
    fitted = answering.loaded(model)
    ask = predicting.predictions(fitted, wanted)
    where = answering.Where(grid, at, separator, drop_missing)
    answering.write_answers(fitted, ask, where, wanted.under, target, form)


@app.command(cls=Command)
def average(
    model: options.ModelFile,
    by: options.By,
    area: options.Area = "area",
    weights: options.PointWeights = None,
    level: options.Level = 0.95,
    above: options.Above = None,
    separator: options.Separator = None,
    drop_missing: options.DropMissing = False,
    out: options.Out = None,
    kind: options.Format = None,
    force: options.Force = False,
) -> None:
    """Compute the average probability over areas, with intervals.

    The result is a table with one row per area: the number of its points, the mean, the standard
    deviation std, and the ends low and high of a credible interval. Intervals allow for the
    correlation between neighbouring points.

        betafield average model.beta --by points.csv --area district --weights n
    """
    import betafield.cli.answering as answering
    import betafield.cli.averaging as averaging
    import betafield.cli.reading as reading
    import betafield.cli.writing as writing

    above = spelling.probability("--above", above)
    wanted = averaging.Areas(area, weights, spelling.level(level), above)
    target, form = answering.answers_to(model, (None, by), (out, kind, force), "--by")
    fitted, watched = answering.loaded(model), terminal.is_watched(target)
    with reading.tables([by], separator, drop_missing) as given:
        table = averaging.averages(fitted, given, wanted, form, watched)
    writing.write_tables(iter([table]), target, form)


app.command(cls=Command)(threshold)


@app.command(cls=Command)
def report(
    ctx: typer.Context,
    model: options.ModelFile,
    title: options.Title = None,
    level: options.Level = 0.95,
    lipschitz: options.Guaranteed = None,
    above: options.Exceeded = None,
    out: options.Out = None,
    force: options.Force = False,
) -> None:
    """Write a report as one HTML page that needs no network.

    By default it is written to the current folder, under the name of the model but with the
    ending .html.

        betafield report model.beta --title "Codling moths" --out moths.html
    """
    import betafield.cli.answering as answering
    import betafield.cli.reading as reading
    import betafield.cli.writing as writing

    settings = {
        "level": spelling.level(level),
        "lipschitz": spelling.positive("--lipschitz", lipschitz),
        "above": spelling.probability("--above", above),
    }
    target = out or reading.stem(model) + ".html"
    writing.require_free(target, force, [model])
    fitted = answering.loaded(model)
    _write_report(fitted, target, title=title, command=_said(ctx), source=model, **settings)


def _write_report(model: SmoothBetaClassifier, out: str, **told: Any) -> None:
    import betafield.cli.writing as writing
    from betafield import report as page

    with terminal.progress("writing the report", None, terminal.is_watched(out)):
        writing.write_whole(lambda path: page.write(model, path, **told), out, ".html")


def _said(ctx: typer.Context) -> str:
    """Return the command line, quoted for a shell."""
    return shlex.join([NAME, *(ctx.obj or [])])


@app.command(cls=Command)
def info(model: options.ModelFile, json: options.Json = False) -> None:
    """Describe a model file."""
    import betafield.cli.answering as answering
    import betafield.cli.describing as describing

    facts = describing.described(answering.loaded(model))
    if json:
        terminal.say(_as_json(facts))
        return
    terminal.facts([*describing.lines(facts), *describing.settings(facts)])


def _as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, ensure_ascii=False)


# Planning ----------------------------------------------------------------------------------


@app.command(cls=Command)
def plan(
    model: options.PlannedModel = None,
    *,
    lipschitz: options.Smoothness,
    error: options.Error = None,
    trials: options.PlannedTrials = None,
    features: options.Dimensions = None,
    background: options.LargestBackground = 0.0,
    metric: options.PlannedMetric = "euclidean",
    grid: options.Grid = None,
    at: options.At = None,
    width: options.Width = 0.1,
    level: options.Level = 0.95,
    separator: options.Separator = None,
    drop_missing: options.DropMissing = False,
    out: options.Out = None,
    kind: options.Format = None,
    force: options.Force = False,
) -> None:
    """Compute how many trials are needed, before the first one or in addition to those of a model.

    Without a model, the result is the number of trials that guarantees an error of --error or
    less at every point, or the error that --trials guarantee. With a model, it is a table of what
    is known at points; more_trials is how many more are needed there until guaranteed intervals
    are as narrow as --width. Guarantees hold for the worst function that --lipschitz allows. For
    most functions a fitted model is as precise after far fewer trials, and its credible intervals
    say how precise it is.

        betafield plan --error 0.05 --features 2 --lipschitz 1
        betafield plan model.beta --grid 20 --lipschitz 1 --width 0.1
    """
    spelling.positive("--lipschitz", lipschitz)
    if model is None:
        _require_absent(
            "with a model", **{"--grid": grid, "--at": at, "--out": out, "--format": kind}
        )
        import betafield.cli.planning as planning

        terminal.say(planning.planned(error, trials, features, lipschitz, metric, background))
        return
    import betafield.cli.answering as answering
    import betafield.cli.predicting as predicting

    _require_absent(
        "without a model", **{"--error": error, "--trials": trials, "--features": features}
    )
    spelling.positive("--width", width)
    target, form = answering.answers_to(model, (grid, at), (out, kind, force))
    fitted = answering.loaded(model)
    ask = predicting.Certificates(fitted, lipschitz, spelling.level(level), width)
    where = answering.Where(grid, at, separator, drop_missing)
    answering.write_answers(fitted, ask, where, None, target, form)
    terminal.note(ask.words())


def _require_absent(how: str, **given: object) -> None:
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option}: it can only be used {how}")


# Serving -----------------------------------------------------------------------------------


app.command(cls=Command)(serve)
app.command(cls=Command)(tokens)
app.command(cls=Command)(backup)


# Demonstrations ----------------------------------------------------------------------------


@app.command(cls=Command)
def demo(ctx: typer.Context, out: options.DemoOut = None, force: options.Force = False) -> None:
    """Learn from simulated trials, and compare the result with the truth."""
    import betafield.cli.demo as simulated
    import betafield.cli.writing as writing

    if out is not None:
        writing.require_free(out, force)
    terminal.say(simulated.STORY)
    with terminal.progress("learning", None, terminal.is_watched()):
        model = simulated.learn()
    simulated.tell(model)
    if out is not None:
        _write_report(model, out, title="A demonstration", command=_said(ctx), source="simulated")


@app.command(cls=Command)
def paper(
    quick: options.Quick = False, fresh: options.Fresh = False, jobs: options.Jobs = 2
) -> None:
    """Run the experiments of the paper, from a checkout of the source."""
    import betafield

    root = Path(betafield.__file__).parents[2]
    if not (root / "paper" / "__main__.py").is_file():
        raise FileNotFoundError(
            "paper: the experiments are not installed with the package; in a checkout of the "
            "source, `make paper` runs them"
        )
    chosen = [flag for flag, given in (("--quick", quick), ("--fresh", fresh)) if given]
    # -P: ignore any folder called paper in the working directory.
    run = [sys.executable, "-P", "-m", "paper", *chosen, "--jobs", str(jobs)]
    found = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    status = subprocess.run(run, env={**os.environ, "PYTHONPATH": found}, check=False).returncode
    raise typer.Exit(int(status != 0))
