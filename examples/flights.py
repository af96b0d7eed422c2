"""When is a flight from New York late? A curve over the hour, and a map of the year.

Takes 1,000 of the 327,346 flights of 2013, learns the probability of arriving over 15 minutes late
by the scheduled hour of departure, and compares it with the other flights, which it has not seen.
Then learns from all flights how that changes from month to month. All settings are the defaults.

It describes the flights of that year, and takes them as independent given their hour and month.
"""

from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from betafield import SmoothBetaClassifier
from betafield.cli.terminal import announce_compiling

DATA = Path(__file__).parent / "data" / "flights.parquet"
PICTURE = Path("out") / "flights.png"
SEEN = 1000  # flights that the curve is learned from
HOURS = np.arange(5, 24)
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
FIRSTS = np.cumsum([1, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30])  # days of the year
TOLD = [("early morning", 6.5), ("noon", 12.0), ("late afternoon", 17.0), ("evening", 20.5)]


def flights():
    """Return all flights: month (1 to 12), hour of departure, and whether each was late."""
    table = pq.read_table(DATA)
    month = np.searchsorted(FIRSTS, table["day_of_year"].to_numpy(), side="right")
    return pa.table({"month": month, "hour": table["departure_hour"], "late": table["late"]})


def sampled(table):
    """Return some flights, drawn at random, and all others."""
    order = np.random.default_rng(2013).permutation(table.num_rows)
    return table.take(order[:SEEN]), table.take(order[SEEN:])


def learn(table, *features):
    """Return the default model of lateness by these features."""
    return SmoothBetaClassifier().fit(table.select(features), table["late"])


def at_hours(hours):
    """Return a table of points for the curve."""
    return pa.table({"hour": np.asarray(hours, dtype=float)})


def shares(table):
    """Return, per hour of the clock, the mean hour of its flights, how many, and the share late."""
    hour, late = table["hour"].to_numpy(), table["late"].to_numpy().astype(float)
    which = hour.astype(int) - HOURS[0]
    count, total, sum_late = (
        np.bincount(which, w, len(HOURS)) for w in (np.ones(len(hour)), hour, late)
    )
    kept = count > 0
    return total[kept] / count[kept], count[kept], sum_late[kept] / count[kept]


def clock(hour):
    """Return an hour as a clock shows it: 17.5 is 17:30."""
    return f"{int(hour):02d}:{round(hour % 1 * 60):02d}"


def tell(curve, others):
    """Print what the curve says, and how it compares with flights that it has not seen."""
    posterior = curve.posterior(at_hours([hour for _, hour in TOLD]))
    mean, (low, high) = posterior.mean(), posterior.interval(0.95)
    for (name, hour), m, a, b in zip(TOLD, mean, low, high, strict=True):
        print(f"{name:15}{clock(hour)}  {m:4.0%} are late (95 % interval: {a:.0%} to {b:.0%})")
    hour, _, share = shares(others)
    posterior = curve.posterior(at_hours(hour))
    low, high = posterior.interval(0.95)
    inside, off = np.sum((low <= share) & (share <= high)), np.abs(posterior.mean() - share)
    print(
        f"checked against the {others.num_rows:,} other flights: {inside} of {len(hour)} hourly"
        f" shares lie in the 95 % band;\nthe curve is off by {off.mean() * 100:.1f} percentage"
        " points on average"
    )


def draw_curve(axes, curve, seen, others):
    """Draw the curve with its band, the shares it was learned from, and those of other flights."""
    grid = np.linspace(HOURS[0], 24, 400)
    posterior = curve.posterior(at_hours(grid))
    axes.fill_between(
        grid, *posterior.interval(0.95), color="C0", alpha=0.2, lw=0, label="95 % interval"
    )
    axes.plot(grid, posterior.mean(), color="C0", lw=2, label="learned probability")
    hour, count, share = shares(seen)
    label = f"raw shares of these {SEEN:,} flights, by hour"
    axes.scatter(hour, share, 4 + 1.2 * count, "0.35", alpha=0.7, lw=0, label=label)
    hour, _, share = shares(others)
    axes.plot(hour, share, "x", color="C3", label=f"the {others.num_rows:,} flights not seen")
    axes.set(xlim=(HOURS[0], 24), ylim=(0, 0.7), xlabel="scheduled departure")
    axes.set_xticks(range(6, 25, 3), labels=[clock(hour) for hour in range(6, 25, 3)])
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_title(f"Late flights, learned from {SEEN:,}", loc="left")
    axes.legend(loc="upper left", frameon=False)


def draw_map(axes, model):
    """Draw the probability by month and hour, paler where it is less sure."""
    months, hours = np.meshgrid(np.arange(1, 13), np.arange(HOURS[0], 24, 1 / 6))
    points = pa.table({"month": months.ravel(), "hour": hours.ravel()})
    posterior = model.posterior(points)
    low, high = posterior.interval(0.95)
    mean, width = (v.reshape(months.shape) for v in (posterior.mean(), high - low))
    sure = np.clip(1.3 - width / 0.3, 0.1, 1.0)
    image = axes.pcolormesh(months, hours, mean, cmap="viridis", vmin=0, vmax=0.6, alpha=sure)
    axes.set_xticks(range(1, 13), labels=MONTHS)
    axes.set_yticks(range(6, 25, 3), labels=[clock(hour) for hour in range(6, 25, 3)])
    axes.set_title("All flights, by month and hour (pale: less sure)", loc="left")
    axes.figure.colorbar(image, ax=axes, pad=0.02, format="{x:.0%}").solids.set_alpha(1)


def timed(what, action, *arguments):
    """Say what is done and, afterwards, how long it took; return the result."""
    print(f"{what} … ", end="", flush=True)
    started = perf_counter()
    result = action(*arguments)
    print(f"{perf_counter() - started:.1f} s")
    return result


def main(picture=PICTURE):
    """Learn, tell, draw."""
    table = flights()
    seen, others = sampled(table)
    announce_compiling()
    curve = timed(f"learning from {SEEN:,} flights", learn, seen, "hour")
    tell(curve, others)
    print()
    everything = f"learning from all {table.num_rows:,} flights (about 7 s)"
    model = timed(everything, learn, table, "month", "hour")
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    figure.suptitle(
        "Flights from New York, 2013: probability of arriving over 15 minutes late",
        x=0.01,
        ha="left",
        weight="bold",
    )
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
    draw_curve(left, curve, seen, others)
    timed("asking at 1,368 points of the map (about 2 s)", draw_map, right, model)
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=120)
    print(f"picture  {picture}")


if __name__ == "__main__":
    main()
