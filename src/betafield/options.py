"""The options of a model, checked."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from betafield import bandwidth as widths
from betafield import categories, checks, monotonic, success
from betafield.metrics import ORDERS
from betafield.refusals import refused
from betafield.wraps import Wraps
from betafield.wraps import checked as check_wraps
from betafield.wraps import of as wrapping

METHODS = ("auto", "process", "windows")
SHARINGS = ("exact", "mean")


class Options(NamedTuple):
    """A snapshot of the options of `SmoothBetaClassifier`."""

    bandwidth: float | str = "auto"
    method: str = "auto"
    lipschitz: float = 1.0
    metric: str = "euclidean"
    scale: Any = "auto"
    bounds: Any = None
    pos_label: Any = None
    prior: Any = (1.0, 1.0)
    sharing: str = "exact"
    monotonic_cst: Any = None
    categorical_features: Any = "from_dtype"
    interactions: Any = ()
    missing: str = "error"
    periodic: Any = None
    geographic: Any = None
    n_jobs: int | None = None

    @classmethod
    def of(cls, model: Any) -> Options:
        """Return the options of an estimator."""
        return cls(*operator.attrgetter(*cls._fields)(model))

    def checked(self) -> Options:
        """Return the options; raise for the first invalid one."""
        widths.check(self.bandwidth)
        checks.one_of("method", self.method, METHODS)
        checks.one_of("metric", self.metric, ORDERS)
        checks.one_of("sharing", self.sharing, SHARINGS)
        checks.positive("lipschitz", self.lipschitz)
        success.require_label(self.pos_label)
        monotonic.checked(self.monotonic_cst)
        categories.missing_of(self.missing)
        if isinstance(self.categorical_features, str):
            known = (categories.BY_DTYPE,)
            checks.one_of("categorical_features", self.categorical_features, known, categories.RULE)
        check_wraps(self.periodic, self.geographic)
        self._require_round()
        if self.n_jobs is not None:
            rule = "allowed are None, positive whole numbers, and -1 for all cores"
            checks.whole("n_jobs", self.n_jobs, low=-checks.MOST, high=checks.MOST, rule=rule)
            checks.require(self.n_jobs, "n_jobs", self.n_jobs, rule)
        if self.is_smooth:
            self._require_smooth()
        else:
            self._require_windows()
        return self

    def _require_round(self) -> None:
        """Raise for a metric or scale that periodic and geographic features cannot have."""
        for name, found in (("periodic", self.periodic), ("geographic", self.geographic)):
            if found and self.metric != "euclidean":
                raise refused(
                    "metric", f"found {self.metric!r} with {name} features; 'euclidean' is needed"
                )
            if found and self.scales_by("std"):
                raise refused(
                    "scale",
                    f"found 'std' with {name} features, whose standard deviation is not "
                    "defined; 'auto', 'range', None or numbers are allowed",
                )

    def wraps(self, features: Any) -> Wraps:
        """Return which of these features wrap around."""
        return wrapping(self.periodic, self.geographic, features.number, features.names)

    def _require_windows(self) -> None:
        """Raise for options that only a process has."""
        if self.method == "process":
            raise refused(
                "bandwidth",
                f"found {checks.spelled(self.bandwidth)} with method='process', which "
                "has no windows; leave one of the two out",
            )
        if self.monotonic_cst is not None:
            raise refused(
                "monotonic_cst",
                f"found {checks.spelled(self.monotonic_cst)} with windows, which "
                "cannot be monotone; leave bandwidth out and method='auto'",
            )

    def _require_smooth(self) -> None:
        """Raise for options that only windows have."""
        usual = isinstance(self.prior, list | tuple) and len(self.prior) == 2
        if not (usual and all(checks.is_number(each) and each == 1.0 for each in self.prior)):
            raise refused(
                "prior",
                f"found {checks.spelled(self.prior)} with method={self.method!r}, which "
                "learns its own prior; priors are for windows, so give method='windows' or a "
                "bandwidth",
            )
        if self.sharing != "exact":
            raise refused(
                "sharing",
                f"found {self.sharing!r} with method={self.method!r}, which takes every "
                "trial by its own context; 'mean' is for windows, so give method='windows' or a "
                "bandwidth",
            )

    @property
    def asked(self) -> categories.Asked:
        """The options about columns of X."""
        return categories.Asked(self.categorical_features, self.interactions, self.missing)

    @property
    def is_smooth(self) -> bool:
        """Whether the options ask for a process; a given bandwidth means windows."""
        return (
            self.method != "windows"
            and isinstance(self.bandwidth, str)
            and self.bandwidth == "auto"
        )

    def is_as(self, other: Options) -> bool:
        """Return whether both are equal; functions and arrays are compared by identity."""
        return all(map(operator.is_, self, other)) or all(map(_is_as, self, other))

    def scales_by(self, *names: str) -> bool:
        """Return whether `scale` is one of these names."""
        return isinstance(self.scale, str) and self.scale in names


def _is_as(a: Any, b: Any) -> bool:
    # Copying a model may copy its numbers, so compare these by value.
    return a is b or (type(a) is type(b) and isinstance(a, str | bytes | int | float) and a == b)
