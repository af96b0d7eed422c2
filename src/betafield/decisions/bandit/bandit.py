"""`FieldBandit`, which applies a policy and records the pulls.

Arms either have names, and each has its own field over the observed features; or they are points,
a few or a continuum, and share one field. Either way, what is known about an arm is a posterior
(`fields`), and a policy is a rule for its quantiles (`policies`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from betafield import checks, families
from betafield._locks import writing
from betafield.decisions.bandit.arms import Arms
from betafield.decisions.bandit.fields import ArmField, blank
from betafield.decisions.bandit.file import Saved, load, save
from betafield.decisions.bandit.policies import POLICIES, chosen, highest, levels
from betafield.decisions.bandit.pulls import Pull, Pulls, Step
from betafield.decisions.results import contexts, outcomes
from betafield.decisions.space import seed_of
from betafield.estimators import SmoothBetaClassifier
from betafield.options import Options
from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]

# How fast success probabilities may change over the diagonal: among points, and for named arms.
# The best of many points is sought, and a narrow peak that seems known already would never be
# found; named arms are tried wherever features are observed.
STEEP, EVEN = 2.5, 1.0
# Pulls prepared at once.
BLOCK = 256


class FieldBandit:
    """A bandit whose success probabilities are smooth functions of features.

    Parameters
    ----------
    arms : mapping, table or list
        A mapping of features to (low, high): all points between the bounds. An array or dataframe
        of shape (k, d): these points. A list of names: unrelated arms, each with its own field over
        the observed features.
    policy : {"thompson", "ucb"}, default="thompson"
        How to choose; see `betafield.decisions.bandit.policies`.
    observed : mapping, default=None
        Features that are known before a pull and cannot be chosen, with (low, high) for each.
    model : SmoothBetaClassifier, default=None
        The model whose options to use; bounds are those of the features. None: a field in which
        trials count for less the further away they are; see `betafield.decisions.bandit.zoom`.
    random_state : int, default=None
        The seed. The same seed and the same history give the same pulls. None: a random seed.

    Examples
    --------
    Find the best price from what people buy:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bandit = FieldBandit({"price": (0, 10)}, random_state=0)
    >>> for _ in range(300):
    ...     pull = bandit.pull()
    ...     bandit.update(pull, success=rng.uniform() < np.exp(-((pull["price"] - 7) ** 2) / 8))
    >>> bool(abs(bandit.best()["price"] - 7) < 1.5)
    True

    Two named arms; which one is better depends on age:

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
        self.policy = str(checks.one_of("policy", policy, POLICIES))
        self.seed = seed_of(random_state)
        self.arms = Arms.of(arms, observed, self.seed)
        self.model = model
        steep = STEEP if self.arms.names is None else EVEN
        # The fields; and the same as if pending pulls had brought their expected rewards, or None
        # if that has not been computed.
        self._fields = [blank(model, self.arms.bounds, steep) for _ in range(self.arms.n_fields)]
        self._ahead: list[ArmField] | None = None
        self._pulls = Pulls(self.arms)

    # Acting.

    def pull(self, x: Any = None, n: int | None = None) -> Any:
        """Return the arm to pull next, or a list of several.

        Parameters
        ----------
        x : mapping, table or list of rows, default=None
            The observed features: one mapping for one pull, or one row per pull.
        n : int, default=None
            The number of pulls, all at x. They are the same as those of n single calls.

        Returns
        -------
        Pull, or a list of them if x has rows or n is given
        """
        given, alone = self.arms.given(x, n)
        pulls: list[Pull] = []
        with writing(self):
            for start in range(0, len(given), BLOCK):
                some = given[start : start + BLOCK]
                # Draws ignore pending pulls, but an upper bound is lowered by the pull before.
                size = len(some) if self.policy == "thompson" else 1
                for first in range(0, len(some), size):
                    pulls += self._pulled(some, slice(first, first + size))
        return pulls[0] if alone else pulls

    def update(self, pull: Any, success: Any, context: Any = None) -> None:
        """Learn the rewards of pulls, in any order and however late.

        Parameters
        ----------
        pull : Pull or its id, or a list of them
        success : bool, or a list of them
        context : array, default=None
            How the trials were distorted, one context for all or one per pull; see
            `betafield.contexts`. Its rates must be known.
        """
        families.refuse("context", context)
        with writing(self):
            numbers = self._waiting(pull)
            alone = isinstance(pull, Pull | Integral)
            ends = np.atleast_1d(outcomes(success, () if alone else (len(numbers),)))
            step = Step(numbers, contexts(context, len(numbers)))
            if numbers:
                self._fields = self._learned(step, ends)
                self._pulls.learn(step, ends.tolist())
                self._ahead = None

    def abandon(self, pull: Any) -> None:
        """Stop waiting for the reward of a pull, or of a list of pulls."""
        with writing(self):
            self._pulls.abandon(self._waiting(pull))
            self._ahead = None

    # Asking.

    @property
    def pending(self) -> list[Pull]:
        """Pulls that are waiting for their rewards, the oldest first."""
        with writing(self):
            return self._pulls.pending

    @property
    def n_pulls(self) -> int:
        """Number of pulls so far."""
        return len(self._pulls)

    def best(self, x: Any = None) -> Pull:
        """Return the arm with the highest posterior mean, without pulling it."""
        given, _ = self.arms.given(x, None)
        if len(given) > 1:
            raise ValueError(f"x: found {len(given)} rows; give one row to get its best arm")
        middle = np.full(self.arms.size, 0.5)
        _, mean = next(self._valued(self._fields, given, slice(1), [middle]))
        at = int(np.argmax(mean))
        why = f"its mean, {mean[at]:.3g}, is the highest of {len(mean)}"
        return self._pulls.made(self.n_pulls, at, given[0], why)

    def posterior(self, features: Mapping[str, float], arm: Any = None) -> Posterior:
        """Return the posterior at these features; for named arms, that of the given arm."""
        row = self.arms.row("features", features)[None]
        return self._fields[self.arms.field(arm)].posterior(row)

    def save(self, path: Any) -> None:
        """Write the bandit to one file: its options and its history, and no code."""
        with writing(self):
            save(path, Saved(self.policy, self.seed, self.model, self._pulls))

    @classmethod
    def load(cls, path: Any) -> Self:
        """Return the bandit from a file; it continues as the saved one would.

        It learns its history again: in one step, or in the original steps if the model depends on
        them.
        """
        return load(path, cls._restored)

    @classmethod
    def _restored(cls, saved: Saved) -> Self:
        pulls = saved.pulls
        bandit = cls(pulls.arms, saved.policy, model=saved.model, random_state=saved.seed)
        bandit._pulls = pulls
        ends = pulls.ledger.ends
        for step in _replayed(pulls.steps, saved.model):
            bandit._fields = bandit._learned(step, np.array([ends[n] for n in step.numbers]))
        return bandit

    # Choosing.

    def _pulled(self, given: Floats, part: slice) -> list[Pull]:
        """Return pulls for a part of the observed rows, each independent of the others."""
        fields = self._looking_ahead() if self.policy == "ucb" else self._fields
        rows, first = given[part], self.n_pulls
        at = [levels(self.policy, self.arms, self.seed, first + i) for i in range(len(rows))]
        valued = self._valued(fields, given, part, at)
        return [self._kept(scores, mean, at[i], rows[i]) for i, (scores, mean) in enumerate(valued)]

    def _valued(
        self, fields: list[ArmField], given: Floats, part: slice, at: list[Floats]
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield, for each pull, the quantiles of all arms at its levels, and their means."""
        if self.arms.names is not None:
            rows = given if given.shape[1] else np.zeros((len(given), 1))
            beliefs = [field.posterior(rows, part) for field in fields]
            pairs = zip(beliefs, np.transpose(at), strict=True)
            scores = np.stack([each.ppf(level) for each, level in pairs], axis=1)
            yield from zip(scores, np.stack([b.mean() for b in beliefs], axis=1), strict=True)
            return
        found = None
        for each, level in zip(given[part], at, strict=True):
            if found is None or each.size:  # without observed features it stays the same
                found = fields[0].posterior(self.arms.rows(each))
            yield highest(found, float(level[0])), found.mean()

    def _kept(self, scores: Floats, mean: Floats, at: Floats, given: Floats) -> Pull:
        """Record and return the pull of the arm with the highest score."""
        arm = chosen(scores, self.n_pulls)
        why = (
            f"its {POLICIES[self.policy]}, {scores[arm]:.3g} (the {at[arm]:.4g} quantile; "
            f"mean {mean[arm]:.3g}), is the highest of {len(scores)}"
        )
        pull = self._pulls.add(arm, given, why)
        if self._ahead is not None:
            self._ahead = self._supposing(self._ahead, [pull.id])
        return pull

    # Learning.

    def _waiting(self, pull: Any) -> list[int]:
        """Return the numbers of pulls, all of which must be pending."""
        alone = isinstance(pull, Pull | Integral)
        pulls = [pull] if alone else checks.items("pull", pull, "a Pull, or a list, is needed")
        numbers = [self._number(each) for each in pulls]
        if len(set(numbers)) < len(numbers):
            twice = next(n for i, n in enumerate(numbers) if n in numbers[:i])
            raise ValueError(f"pull: found {twice} twice; a pull has one reward")
        return numbers

    def _number(self, pull: Any) -> int:
        number = pull.id if isinstance(pull, Pull) else pull
        if not (isinstance(number, Integral) and checks.is_number(number)):
            raise TypeError(f"pull: found {checks.spelled(pull)}; a Pull or its id is needed")
        if not 0 <= int(number) < self.n_pulls:
            made = f"this bandit has made {self.n_pulls} so far"
            raise ValueError(f"pull: found {checks.spelled(number)}; {made}")
        self._pulls.ledger.require_pending("pull", int(number))
        if isinstance(pull, Pull) and pull.features != self._pulls.pull(pull.id).features:
            raise ValueError(
                f"pull: found {number} with other features, so it is from another bandit"
            )
        return int(number)

    def _learned(self, step: Step, ends: npt.NDArray[Any]) -> list[ArmField]:
        """Return the fields after learning the rewards of these pulls."""
        fields, rows, contexts = list(self._fields), self._pulls.rows(step.numbers), step.contexts
        for i, mine in self._pulls.by_field(step.numbers):
            context = contexts if contexts is None or len(contexts) == 1 else contexts[mine]
            fields[i] = fields[i].learned(rows[mine], ends[mine], context)
        return fields

    def _looking_ahead(self) -> list[ArmField]:
        """Return the fields as if pending pulls had brought their expected rewards."""
        if self._ahead is None:
            self._ahead = self._supposing(self._fields, self._pulls.ledger.pending)
        return self._ahead

    def _supposing(self, fields: list[ArmField], numbers: list[int]) -> list[ArmField]:
        """Return fields as if these pulls had brought their posterior means."""
        ahead = list(fields)
        for i, mine in self._pulls.by_field(numbers):
            rows = self._pulls.rows([numbers[k] for k in mine])
            ahead[i] = ahead[i].supposing(rows, self._fields[i].posterior(rows).mean())
        return ahead


def _replayed(steps: list[Step], model: SmoothBetaClassifier | None) -> list[Step]:
    """Return the steps in which to learn the history again: one, unless the steps matter."""
    if _learns_in_steps(model) or any(step.contexts is not None for step in steps):
        return steps
    return [Step([n for step in steps for n in step.numbers], None)] if steps else []


def _learns_in_steps(model: SmoothBetaClassifier | None) -> bool:
    """Return whether the answers of a model depend on the steps in which it has learned.

    The length scales of a process may be those for up to a tenth fewer trials, and the standard
    deviations of features are those of the first step.
    """
    if model is None:
        return False
    options = Options.of(model)
    return options.is_smooth or options.scales_by("std")
