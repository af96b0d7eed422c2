"""Points in, columns out, in batches: memory does not grow with their number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import betafield.cli.terminal as terminal
from betafield.cli.terminal import progress
from betafield.cli.usage import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from betafield.cli.distortions import Distortion
    from betafield.cli.reading import Given
    from betafield.cli.writing import Columns
    from betafield.estimators import SmoothBetaClassifier

    Floats = npt.NDArray[np.float64]

# Points per batch, and the most points of a grid.
ROWS, MOST = 1 << 13, 1_000_000

# A function from (points, their contexts) to columns of answers.
Ask = Callable[[Any, Any], dict[str, Any]]


class Wanted(NamedTuple):
    """The requested answers per point, beside the mean."""

    level: float
    above: float | None = None
    band: float | None = None
    under: Distortion | None = None


def feature_names(model: SmoothBetaClassifier) -> list[str]:
    """Return the names of the features; x0, x1 and so on if they have none."""
    from betafield import observed

    return list(observed.feature_names(model))


# Answers -----------------------------------------------------------------------------------


def predictions(model: SmoothBetaClassifier, wanted: Wanted) -> Ask:
    """Return the function that computes mean, standard deviation and interval, per class."""
    if wanted.under is not None and wanted.band is not None:
        raise UsageError(
            "--band, --under: guarantees are of the undistorted probability; ask for one"
        )

    def ask(X: Any, context: Any) -> dict[str, Any]:
        posterior = model.posterior(X)
        if context is not None:
            posterior = posterior.under(context)
        low, high = posterior.interval(wanted.level)
        found = {"mean": posterior.mean(), "std": posterior.std(), "low": low, "high": high}
        if wanted.above is not None:
            found["prob_above"] = posterior.prob_above(wanted.above)
        if wanted.band is not None:
            ends = model.band(X, wanted.band, wanted.level)
            found["band_low"], found["band_high"] = ends
        return found if len(model.classes_) == 2 else _by_class(found, model.classes_)

    return ask


def _by_class(found: dict[str, Any], classes: Any) -> dict[str, Any]:
    """Return one column per class; means are called p_<class>."""
    return {
        f"{'p' if name == 'mean' else name}_{label}": values[:, k]
        for k, label in enumerate(classes.tolist())
        for name, values in found.items()
    }


class Certificates:
    """Computes guarantees at points, and keeps the range of further trials they need."""

    def __init__(
        self, model: SmoothBetaClassifier, lipschitz: float, level: float, width: float
    ) -> None:
        self.model, self.asked = model, (lipschitz, level, width)
        self.fewest, self.most = math.inf, 0.0

    def __call__(self, X: Any, _: Any) -> dict[str, Any]:
        """Return the columns of the table."""
        from betafield import guarantees

        known = guarantees.certificate(self.model, X, *self.asked)
        more = known["more_trials"]
        self.fewest = min(self.fewest, float(more.min()))
        self.most = max(self.most, float(more.max()))
        return {name: known[name] for name in known.dtype.names or ()}

    def words(self) -> str:
        """Return how many more trials are needed, and that credible intervals need fewer."""
        lipschitz, level, width = self.asked
        number = f"{self.fewest:,.0f} to {self.most:,.0f}"
        if self.most - self.fewest <= 0.01 * self.most:  # the same at every point, up to rounding
            number = f"{self.most:,.0f}"
        return (
            f"about {number} more trials at a point make its guaranteed interval {width:g} wide or "
            f"less, for any probability that changes by at most {lipschitz:g} over the domain; "
            f"{100 * level:g} % credible intervals, low to high, need far fewer"
        )


# Points ------------------------------------------------------------------------------------


def on_grid(
    model: SmoothBetaClassifier, n: int, ask: Ask, under: Distortion | None, watched: bool
) -> Iterator[Columns]:
    """Return answers on a grid over the domain, with n points per feature."""
    if under is not None and under.columns:
        raise UsageError(
            f"--under: found {under.columns[0]!r}; a grid has no columns, so give a number"
        )
    context = None if under is None else under.context()
    points, names = grid(model, n), feature_names(model)
    with progress("predicting", len(points), watched) as advance:
        for start in range(0, len(points), ROWS):
            some = points[start : start + ROWS]
            columns = dict(zip(names, some.T, strict=True))
            yield _labelled(columns, ask(as_learned(model, names, some), context))
            advance(len(some))


def grid(model: SmoothBetaClassifier, n: int) -> Floats:
    """Return a grid over the domain, with n points per feature, including the ends."""
    import numpy as np

    d = model.n_features_in_
    if model.field_.features.categories.columns:
        raise UsageError("--grid: this model has categories; use --at with a file of points")
    if d > 2:
        raise UsageError(
            f"--grid: this model has {d} features; grids are for one or two, so use --at"
        )
    if n < 2 or n**d > MOST:
        most = int(MOST ** (1 / d) + 1e-9)
        raise UsageError(f"--grid: found {n}; with {d} features it must be from 2 to {most:,}")
    sides = [_evenly(low, high, n) for low, high in model.bounds_]
    return np.stack([axis.ravel() for axis in np.meshgrid(*sides, indexing="ij")], axis=1)


def _evenly(low: float, high: float, n: int) -> Floats:
    """Return numbers from low to high with few digits, and with the exact ends."""
    import numpy as np

    # Twelve digits of the extent, so that steps of 0.1 do not give 0.30000000000000004.
    digits = 12 - math.ceil(math.log10(max(abs(low), abs(high), high - low, 1e-290)))
    inner = np.array([round(x, digits) for x in np.linspace(low, high, n)[1:-1].tolist()])
    return np.unique(np.concatenate([[low], inner, [high]]))


def in_file(
    model: SmoothBetaClassifier,
    given: Given,
    ask: Ask,
    under: Distortion | None,
    watched: bool,
    echo: str = "numbers",
) -> Iterator[Columns]:
    """Return answers at the rows of a file, with its points as numbers or as spelled there."""
    import numpy as np

    from betafield.files import Roles

    table_name = given.files[0].name
    context = None if under is None else under.context()
    names = feature_names(model)
    asked = tuple(names) if hasattr(model, "feature_names_in_") else ()
    known = model.field_.features.categories.columns
    named = [names[a] for a in known] if asked else list(known)
    categories = model.field_.features.categories
    may_miss = tuple(map(str, named)) if categories.has_missing and asked else ()
    roles = Roles(asked, context=context)
    with given.rows(roles, watched, named, ROWS, may_miss) as rows:
        if len(rows.roles.features) != len(names):
            raise ValueError(
                f"{table_name}: has {len(rows.roles.features)} columns; this model has no names of "
                f"features, so {len(names)} columns are needed, in their order"
            )
        some = False
        for batch, spelled in rows.spelled("predicting", echo == "text"):
            with batch.named():
                table = batch.points()
                if known:
                    points = np.stack([np.array(c, object) for c in table.columns], axis=1)
                    answers = ask(table if asked else points, batch.context())
                else:
                    points = np.stack([c.to_numpy() for c in table.columns], axis=1)
                    answers = ask(as_learned(model, names, points), batch.context())
            some = True
            yield _labelled(dict(zip(names, spelled, strict=True)), answers)
    if not some:
        raise ValueError(f"{table_name}: has no rows; at least one point is needed")
    terminal.tell_dropped(rows.dropped)


def as_learned(model: SmoothBetaClassifier, names: list[str], points: Floats) -> Any:
    """Return points with the names of features, if the model has names."""
    from betafield.files import arrow

    if not hasattr(model, "feature_names_in_"):
        return points
    return arrow().table(list(points.T), names)


def _labelled(points: dict[str, Any], answers: dict[str, Any]) -> Columns:
    """Return features and answers; an answer named like a feature gets a prefix."""
    longer = {f"posterior_{n}" if n in points else n: values for n, values in answers.items()}
    return points | longer
