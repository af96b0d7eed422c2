"""How much of everything is run."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Sizes:
    """Numbers of trials and of runs."""

    runs: int
    t: tuple[int, ...]
    gp_t: tuple[int, ...]  # as far as a cost of t³ allows
    gp_runs: tuple[int, ...]  # at each of them
    shown: int  # trials of the pictures of posterior means
    timed: tuple[int, ...]
    repeats: int
    gp_timed: tuple[int, ...]  # with its kernel given
    gp_repeats: int
    gp_learned: tuple[int, ...]  # timed once, with its kernel learned
    smooth: bool  # whether the smooth function of figure 1 is run as well

    @property
    def all_runs(self) -> tuple[int, ...]:
        """The same number of runs at every t."""
        return (self.runs,) * len(self.t)

    @property
    def early(self) -> tuple[int, ...]:
        """Where priors matter: from ten trials on."""
        return (10, 30, *self.t)


FULL = Sizes(
    runs=20,
    t=(100, 300, 1_000, 3_000, 10_000, 30_000, 100_000),
    gp_t=(100, 300, 1_000, 3_000),
    gp_runs=(20, 20, 20, 5),
    shown=1_000,
    timed=(10_000, 30_000, 100_000, 300_000, 1_000_000),
    repeats=5,
    gp_timed=(750, 1_500, 3_000),
    gp_repeats=3,
    gp_learned=(300, 1_000, 3_000),
    smooth=True,
)
QUICK = Sizes(
    runs=6,
    t=(100, 300, 1_000, 3_000, 10_000, 30_000),
    gp_t=(100, 300, 1_000),
    gp_runs=(5, 5, 4),
    shown=1_000,
    timed=(10_000, 100_000, 1_000_000),
    repeats=5,
    gp_timed=(750, 1_500, 3_000),
    gp_repeats=2,
    gp_learned=(250, 500, 1_000),
    smooth=False,
)
# For tests, which take no times: none of these is long enough to say how time grows.
UNTIMED = replace(
    QUICK, timed=(100, 1_000), repeats=1, gp_timed=(50, 100), gp_repeats=1, gp_learned=(50, 100)
)
# Most of the time is LGP's, after 1,000 trials, and CCBP's, after 10,000.
SMALL = replace(UNTIMED, t=UNTIMED.t[:-2], gp_t=(100, 300), gp_runs=(5, 5), shown=300)
