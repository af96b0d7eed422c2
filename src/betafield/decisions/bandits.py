"""Pull the arm that pays most, while learning which: a bandit whose arms lie in a field.

Arms are named, and each has a field of its own over what is observed before a pull; or they are
points, few or a continuum, and one field lies over all of them. Either way what is known of an arm
is the posterior of a `SmoothBetaClassifier`, by default one in which trials count for less the
farther they are (`betafield.decisions.zooming`), and a policy is a rule for its quantiles:

    "thompson"  the arm whose quantile at a random level is highest, θ_a = ppf_a(u): a draw from
                its posterior. Named arms have a level each. All points have the same: trials are
                shared by all points near, so what is believed of them rises and falls together,
                and of a thousand draws by themselves the highest would nearly always be one of
                the least known points.
    "ucb"       the arm whose quantile at the level 1 − 1/(2 + log(1 + t)^1.5) is highest, after t
                pulls: 0.92 after 100, 0.97 after 10,000. Pulls whose rewards are still to come
                count as if each had paid what is expected of it, so that a batch does not pull
                one arm only.

Arms of which equally much is believed take turns; the points of a continuum are in an order that
spreads over all of it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield.decisions.arms import Arms
from betafield.decisions.space import seed_of
from betafield.decisions.zooming import Field, belief, blank, highest, suppose
from betafield.estimators import SmoothBetaClassifier
from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]

POLICIES = ("thompson", "ucb")
PENDING, ABANDONED = -1, 2
CLASSES = (0, 1)
# How fast chances may change over the diagonal. Among points the best is sought, and a narrow hill
# that is taken for known is missed for ever; named arms are tried wherever something is observed.
STEEP, EVEN = 2.5, 1.0
# Pulls that are prepared at once.
BLOCK = 256


@dataclass(frozen=True, eq=False)
class Pull(Mapping[str, float]):
    """One pull: a mapping of the features at which it is made.

    Parameters
    ----------
    id : int
        Its number, from 0.
    arm : str, int or dict
        The name of the arm, the number of the point, or a point of a continuum.
    features : dict
        All features: the arm's own, and those observed.
    why : str
        Which quantity decided, with its value.
    index : int
        Which of the arms it is, or in a continuum of its candidates.
    """

    id: int
    arm: Any
    features: dict[str, float]
    why: str
    index: int = field(repr=False)

    def __getitem__(self, name: str) -> float:
        return self.features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)


class FieldBandit:
    """A bandit over arms whose chances are smooth in features.

    Parameters
    ----------
    arms : mapping, table or list
        A mapping of features to (low, high): all points between. An array or dataframe of shape
        (k, d): these points. A list of names: arms that have nothing in common, each with its own
        field over what is observed.
    policy : {"thompson", "ucb"}, default="thompson"
        How to choose, see `betafield.decisions.bandits`.
    observed : mapping, default=None
        Features that are known before a pull and not chosen, with (low, high) of each.
    model : SmoothBetaClassifier, default=None
        Whose options to use; bounds are those of the features. None: one in which trials count
        for less the farther they are, see `betafield.decisions.zooming`.
    random_state : int, default=None
        The same number and the same history give the same pulls. None: a fresh one.

    Examples
    --------
    A price to be found, by what people buy:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bandit = FieldBandit({"price": (0, 10)}, random_state=0)
    >>> for _ in range(300):
    ...     pull = bandit.pull()
    ...     bandit.update(pull, success=rng.uniform() < np.exp(-((pull["price"] - 7) ** 2) / 8))
    >>> bool(abs(bandit.best()["price"] - 7) < 1.5)
    True

    Two named arms, the better of which depends on the age:

    >>> bandit = FieldBandit(["red", "blue"], "ucb", observed={"age": (20, 60)}, random_state=0)
    >>> for age in rng.uniform(20, 60, 300):
    ...     pull = bandit.pull({"age": age})
    ...     bandit.update(pull, success=(pull.arm == "red") == (age < 40))
    >>> bandit.best({"age": 25}).arm, bandit.best({"age": 55}).arm
    ('red', 'blue')
    """

    def __init__(
        self,
        arms: Any,
        policy: str = "thompson",
        *,
        observed: Mapping[str, Any] | None = None,
        model: SmoothBetaClassifier | None = None,
        random_state: int | None = None,
    ) -> None:
        if policy not in POLICIES:
            raise ValueError(f"policy: found {policy!r}; allowed are {', '.join(POLICIES)}")
        self.policy = policy
        self.seed = seed_of(random_state)
        self.arms = Arms.of(arms, observed, self.seed)
        self.model = model
        lipschitz = STEEP if self.arms.names is None else EVEN
        self.models = [blank(model, self.arms.bounds, lipschitz) for _ in range(self.arms.n_fields)]
        self._ahead: list[Field] | None = None
        self._pending: dict[int, Pull] = {}
        # Of every pull: where, which arm, and how it ended; and in which steps that was learned.
        self._rows: list[Floats] = []
        self._index: list[int] = []
        self._ends: list[int] = []
        self._steps: list[tuple[list[int], Floats | None]] = []
        self._settled = 0

    # Acting.

    def pull(self, x: Any = None, n: int | None = None) -> Any:
        """Return the arm to pull next, or a list of several.

        Parameters
        ----------
        x : mapping, table or list of rows, default=None
            What is observed: one mapping for one pull, or a row a pull.
        n : int, default=None
            So many pulls, all at x: those that as many calls would give.

        Returns
        -------
        Pull, or a list of them where x has rows or n is given
        """
        given, alone = self.arms.given(x, n)
        pulls: list[Pull] = []
        for start in range(0, len(given), BLOCK):
            some = given[start : start + BLOCK]
            # A draw heeds no pull that is pending; a bound is lowered by the one before.
            size = len(some) if self.policy == "thompson" else 1
            for first in range(0, len(some), size):
                pulls += self._pulled(some, slice(first, first + size))
        return pulls[0] if alone else pulls

    def update(self, pull: Any, success: Any, context: Any = None) -> None:
        """Learn what pulls brought, in any order and however late.

        Parameters
        ----------
        pull : Pull or its id, or a list of them
        success : bool, or a list of them
        context : array, default=None
            How the trials were distorted, one for all or one a pull: see `betafield.contexts`.
        """
        numbers = self._waiting(pull)
        ends = _outcomes(success, len(numbers), isinstance(pull, Pull | Integral))
        contexts = _contexts(context, len(numbers))
        if numbers:
            self._learn(numbers, ends, contexts)
            self._steps.append((numbers, contexts))
            self._end(numbers, ends.tolist())

    def abandon(self, pull: Any) -> None:
        """Expect no reward any more of a pull, or of a list of them."""
        numbers = self._waiting(pull)
        self._end(numbers, [ABANDONED] * len(numbers))

    # Asking.

    @property
    def pending(self) -> list[Pull]:
        """Pulls whose rewards are still to come, the oldest first."""
        return list(self._pending.values())

    @property
    def n_pulls(self) -> int:
        """Number of pulls so far."""
        return len(self._ends)

    def best(self, x: Any = None) -> Pull:
        """Return the arm with the highest posterior mean; it does not count as a pull."""
        given, _ = self.arms.given(x, None)
        if len(given) > 1:
            raise ValueError(f"x: found {len(given)} rows; the best arm is that of one")
        middle = np.full(self.arms.size, 0.5)
        _, mean = next(self._valued(self.models, given, slice(1), [middle]))
        at = int(np.argmax(mean))
        why = f"its mean, {mean[at]:.3g}, is the highest of {len(mean)}"
        return self._pull_of(self.n_pulls, at, given[0], why)

    def posterior(self, features: Mapping[str, float], arm: Any = None) -> Posterior:
        """Return what is believed of the chance at these features, for one of named arms."""
        row = self.arms.row("features", features)[None]
        return belief(self.models[self.arms.field(arm)], row)

    def save(self, path: Any) -> None:
        """Write the bandit to one file: its options and all that happened, nothing that can run."""
        from betafield.decisions import bandit_state

        bandit_state.save(self, path)

    @classmethod
    def load(cls, path: Any) -> FieldBandit:
        """Return the bandit of a file, which goes on as the saved one would.

        It learns anew all that happened: in one step, or in those of the saved one where widths
        are learned.
        """
        from betafield.decisions import bandit_state

        bandit: FieldBandit = bandit_state.load(path, cls)
        return bandit

    # Choosing.

    def _pulled(self, given: Floats, part: slice) -> list[Pull]:
        """Return pulls where a part of this is observed, none of them aware of the others."""
        models = self._looking_ahead() if self.policy == "ucb" else self.models
        rows, first = given[part], self.n_pulls
        levels = [self._levels(first + i) for i in range(len(rows))]
        valued = self._valued(models, given, part, levels)
        return [
            self._kept(first + i, scores, mean, levels[i], rows[i])
            for i, (scores, mean) in enumerate(valued)
        ]

    def _levels(self, number: int) -> Floats:
        """Return the level of each arm's quantile in the pull of this number."""
        if self.policy == "ucb":
            return np.full(self.arms.size, 1.0 - 1.0 / (2.0 + np.log1p(number) ** 1.5))
        rng = np.random.default_rng([self.seed, number])
        if self.arms.names is not None:
            return rng.uniform(size=self.arms.size)
        return np.full(self.arms.size, rng.uniform())

    def _valued(
        self, models: list[Field], given: Floats, part: slice, levels: list[Floats]
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield, for each pull, the quantiles of all arms at its levels, and their means."""
        if self.arms.names is not None:
            rows = given if given.shape[1] else np.zeros((len(given), 1))
            beliefs = [belief(model, rows, part) for model in models]
            pairs = zip(beliefs, np.transpose(levels), strict=True)
            scores = np.stack([each.ppf(level) for each, level in pairs], axis=1)
            yield from zip(scores, np.stack([b.mean() for b in beliefs], axis=1), strict=True)
            return
        found = None
        for each, level in zip(given[part], levels, strict=True):
            if found is None or each.size:  # where nothing is observed it stays the same
                found = belief(models[0], self.arms.rows(each))
            yield highest(found, float(level[0])), found.mean()

    def _kept(
        self, number: int, scores: Floats, mean: Floats, levels: Floats, given: Floats
    ) -> Pull:
        """Return the pull of the highest score, and wait for its reward."""
        top = np.flatnonzero(scores == scores.max())
        at = int(top[number % len(top)])
        what = "draw from its posterior" if self.policy == "thompson" else "upper bound"
        why = (
            f"its {what}, {scores[at]:.3g} (the {levels[at]:.4g} quantile; mean {mean[at]:.3g}), "
            f"is the highest of {len(scores)}"
        )
        pull = self._pull_of(number, at, given, why)
        self._rows.append(self.arms.row_of(at, given))
        self._index.append(at)
        self._ends.append(PENDING)
        self._pending[number] = pull
        if self._ahead is not None:
            field = self._ahead[self._fields([number])[0]]
            suppose(field, self._rows[-1][None], mean[at : at + 1])
        return pull

    def _pull_of(self, number: int, at: int, given: Floats, why: str) -> Pull:
        features = self.arms.point(self.arms.row_of(at, given))
        return Pull(number, self.arms.arm(at), features, why, at)

    # Learning.

    def _waiting(self, pull: Any) -> list[int]:
        """Return the numbers of pulls, all of which wait for a reward."""
        pulls = [pull] if isinstance(pull, Pull | Integral) else pull
        if isinstance(pulls, str | Mapping) or not hasattr(pulls, "__iter__"):
            raise TypeError(f"pull: found {type(pull).__name__}; a Pull, or a list, is needed")
        numbers = [self._number(each) for each in pulls]
        if len(set(numbers)) < len(numbers):
            twice = next(n for i, n in enumerate(numbers) if n in numbers[:i])
            raise ValueError(f"pull: found {twice} twice; a pull has one reward")
        return numbers

    def _number(self, pull: Any) -> int:
        number = pull.id if isinstance(pull, Pull) else pull
        if not isinstance(number, Integral) or isinstance(number, bool):
            raise TypeError(f"pull: found {pull!r}; a Pull or its id is needed")
        if not 0 <= int(number) < self.n_pulls:
            raise KeyError(f"pull: found {number}; this bandit has made {self.n_pulls} so far")
        if self._ends[number] != PENDING:
            what = "was abandoned" if self._ends[number] == ABANDONED else "has its reward"
            raise ValueError(f"pull: {number} {what} already; nothing was counted")
        if isinstance(pull, Pull) and pull.features != self._pending[int(number)].features:
            raise ValueError(f"pull: found {number} of another bandit, at other features")
        return int(number)

    def _learn(self, numbers: list[int], ends: npt.NDArray[Any], contexts: Floats | None) -> None:
        """Teach the models of the arms pulled, all of them or none."""
        drafts = list(self.models)
        fields, rows = self._fields(numbers), np.array([self._rows[n] for n in numbers])
        for arm in np.unique(fields).tolist():
            mine = fields == arm
            context = contexts if contexts is None or len(contexts) == 1 else contexts[mine]
            drafts[arm] = copy.copy(drafts[arm])
            drafts[arm].partial_fit(rows[mine], ends[mine], classes=CLASSES, context=context)
        self.models = drafts

    def _fields(self, numbers: list[int]) -> npt.NDArray[np.intp]:
        """Return which field each of these pulls tells of."""
        if self.arms.names is None:
            return np.zeros(len(numbers), dtype=np.intp)
        return np.array([self._index[n] for n in numbers], dtype=np.intp)

    def _end(self, numbers: list[int], ends: list[int]) -> None:
        """Wait no more for these pulls."""
        for number, end in zip(numbers, ends, strict=True):
            del self._pending[number]
            self._ends[number] = end
        self._ahead, self._settled = None, self.n_pulls

    def _remember(
        self,
        index: list[int],
        given: Floats,
        ends: list[int],
        steps: list[tuple[list[int], Floats | None]],
        settled: int,
    ) -> None:
        """Learn what happened to a bandit of the same arms."""
        self._rows = [self.arms.row_of(at, row) for at, row in zip(index, given, strict=True)]
        self._index, self._ends = index, ends
        self._steps, self._settled = steps, settled
        model = self.model
        learns = model is not None and (model.bandwidth in ("loo", "auto") or model.scale == "ard")
        if not (learns or any(context is not None for _, context in steps)):
            steps = [([n for numbers, _ in steps for n in numbers], None)] if steps else []
        for numbers, context in steps:
            self._learn(numbers, np.array([ends[n] for n in numbers]), context)

    def _looking_ahead(self) -> list[Field]:
        """Return the models as if pending pulls had brought what is expected of them."""
        if self._ahead is None:
            ahead = [copy.copy(model) for model in self.models]
            # In the steps in which they came, so that what is loaded goes on as what was saved.
            self._suppose(ahead, [n for n in self._pending if n < self._settled])
            for number in self._pending:
                if number >= self._settled:
                    self._suppose(ahead, [number])
            self._ahead = ahead
        return self._ahead

    def _suppose(self, ahead: list[Field], numbers: list[int]) -> None:
        """Teach models that pulls bring what is expected of them: a part of a success each."""
        fields = self._fields(numbers)
        for arm in np.unique(fields).tolist():
            mine = np.flatnonzero(fields == arm)
            rows = np.array([self._rows[numbers[i]] for i in mine])
            suppose(ahead[arm], rows, belief(ahead[arm], rows).mean())


def _outcomes(success: Any, n: int, alone: bool) -> npt.NDArray[np.int64]:
    """Return one outcome a pull, 0 or 1."""
    found = np.asarray(success)
    if found.shape != (() if alone else (n,)):
        need = "one" if alone else f"a list of {n}"
        raise ValueError(f"success: found shape {found.shape}; {need} is needed, as of pulls")
    if found.dtype.kind not in "biuf" or not np.isin(found, CLASSES).all():
        wrong = [v for v in np.atleast_1d(found).tolist() if v not in CLASSES]
        raise ValueError(f"success: found {wrong[0]!r}; True, False, 1 and 0 are possible")
    return np.atleast_1d(found).astype(np.int64)


def _contexts(context: Any, n: int) -> Floats | None:
    """Return contexts of shape (1, p + 1) or (n, p + 1)."""
    if context is None:
        return None
    try:
        found: Floats = np.atleast_2d(np.asarray(context, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise type(error)(f"context: rows of numbers are needed ({error})") from None
    if found.ndim != 2 or len(found) not in (1, n):
        raise ValueError(f"context: found shape {found.shape}; one for all or {n} are needed")
    return found
