"""When is a flight from New York late? A probability over the day of the year and the hour.

Reads every flight of 2013, learns the probability of arriving over 15 minutes late, prints what
it believes at some well-known times, and draws the whole map beside its uncertainty.

It describes these flights, day by day, and takes them as independent given day and hour: it is
no forecast for the same date of another year.
"""

from datetime import date
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from betafield import SmoothBetaClassifier

DATA = Path(__file__).parent / "data" / "flights.parquet"
PICTURE = Path("out") / "flights.png"
FEATURES = ["day_of_year", "departure_hour"]
DAYS = np.arange(1, 366)
HOURS = np.arange(4, 24 + 1e-9, 1 / 12)  # no flight is scheduled before five in the morning
WIDEST = 0.5  # a wider 95 % interval is hatched: too few flights to colour
MOMENTS = [
    ("New Year's Day", date(2013, 1, 1), 9.0),
    ("before the blizzard", date(2013, 2, 8), 9.0),
    ("in the blizzard", date(2013, 2, 8), 18.0),
    ("Independence Day", date(2013, 7, 4), 9.0),
    ("a summer evening", date(2013, 7, 10), 20.0),
    ("an autumn noon", date(2013, 9, 25), 12.0),
    ("the eve of Thanksgiving", date(2013, 11, 27), 18.0),
    ("Thanksgiving", date(2013, 11, 28), 10.0),
    ("Christmas Eve", date(2013, 12, 24), 12.0),
    ("dead of night", date(2013, 7, 10), 2.0),
]


def moments(days, hours):
    """Return a table of moments, with the columns that the model learned from."""
    return pa.table(dict(zip(FEATURES, (days, hours), strict=True)))


def day_of_year(day):
    """Return 1 for 1 January."""
    return day.timetuple().tm_yday


def clock(hour):
    """Return an hour as a clock shows it: 17.5 is 17:30."""
    return f"{int(hour):02d}:{round(hour % 1 * 60):02d}"


def print_moments(model):
    """Print mean and 95 % interval at each of MOMENTS."""
    days = [day_of_year(day) for _, day, _ in MOMENTS]
    posterior = model.posterior(moments(days, [hour for *_, hour in MOMENTS]))
    mean, (low, high) = posterior.mean(), posterior.interval(0.95)
    # A share of n trials has the variance m(1 − m)/n.
    worth = mean * (1 - mean) / posterior.var()
    print(f"{'':25}{'':16}{'late':>6}  {'95 % interval':17}{'flights worth':>14}")
    for (name, day, hour), m, lo, hi, n in zip(MOMENTS, mean, low, high, worth, strict=True):
        when = f"{day:%d %b} {clock(hour)}"
        print(f"{name:25}{when:16}{m:6.1%}  {lo:6.1%} to {hi:6.1%} {n:16,.0f}")


def draw(axes, values, known, ticks, **colours):
    """Draw one map, hatched where hardly any flights say anything."""
    axes.set_facecolor("0.93")
    axes.contourf(DAYS, HOURS, ~known, levels=[0.5, 1.5], colors="none", hatches=["////"])
    image = axes.pcolormesh(DAYS, HOURS, np.where(known, values, np.nan), **colours)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.02, ticks=ticks, format="{x:.0%}")
    bar.minorticks_off()
    axes.set_yticks(range(4, 25, 4), labels=[clock(hour) for hour in range(4, 25, 4)])
    months = [date(2013, month, 1) for month in range(1, 13)]
    firsts = [day_of_year(first) for first in months]
    axes.set_xticks(firsts, labels=[""] * 12)
    axes.set_xticks(np.add(firsts, 15), labels=[f"{first:%b}" for first in months], minor=True)
    axes.tick_params(axis="x", which="minor", length=0)


def save_map(posterior):
    """Save the map of the mean beside the map of the width of the 95 % interval."""
    low, high = posterior.interval(0.95)
    mean, width = (values.reshape(len(HOURS), -1) for values in (posterior.mean(), high - low))
    known = width <= WIDEST
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    figure.suptitle("Flights from New York, 2013", x=0.01, ha="left", weight="bold")
    left, right = figure.subplots(1, 2, sharey=True)
    left.set_title("Probability of arriving over 15 minutes late", loc="left")
    draw(left, mean, known, np.arange(0, 1.01, 0.1), cmap="viridis", vmin=0)
    right.set_title(f"Width of the 95 % interval (hatched: over {WIDEST:.0%})", loc="left")
    draw(
        right, width, known, [0.02, 0.05, 0.1, 0.2, 0.5], cmap="cividis", norm=LogNorm(0.02, WIDEST)
    )
    left.set_ylabel("scheduled departure")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


def timed(action, *arguments):
    """Return what the action returns, and the seconds that it took."""
    started = perf_counter()
    result = action(*arguments)
    return result, perf_counter() - started


def learn(model: SmoothBetaClassifier, flights: pa.Table) -> SmoothBetaClassifier:
    """Learn from flights; forget earlier ones."""
    return model.fit(flights.select(FEATURES), flights["late"])


def main():
    """Learn, tell, draw."""
    flights = pq.read_table(DATA)
    days, hours = np.meshgrid(DAYS, HOURS)
    grid = moments(days.ravel(), hours.ravel())

    first = flights.select(FEATURES)[:1]
    # Flights of one day tend to be late together, more than the days around it tell: that days
    # differ, and how far is near, is learned from the flights.
    model = SmoothBetaClassifier(n_jobs=2)
    _, ready = timed(lambda: learn(model, flights[:1000]).posterior(first))
    _, learned = timed(learn, model, flights)
    posterior, asked = timed(model.posterior, grid)
    near_days, near_hours = model.length_scales_
    windows = model.weights_["weight"][model.weights_["part"] == "windows"].sum()

    print_moments(model)
    print()
    print(f"ready       in {ready:.2f} s (the first run compiles, later ones find that done)")
    print(f"learned     {model.n_trials_:,} flights in {learned:.2f} s")
    print(f"near        {near_days:.1f} days, {near_hours:.1f} hours, for what is smooth")
    print(f"beyond that {windows:.0%} of the weight: flights of a day and hour are late together")
    print(f"map         {grid.num_rows:,} posteriors, {asked / grid.num_rows * 1e6:.2f} µs each")
    save_map(posterior)
    print(f"picture     {PICTURE}")


if __name__ == "__main__":
    main()
