"""A demonstration without data: knowledge, learned from answers of which some are guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import betafield.cli.terminal as terminal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from betafield.estimators import SmoothBetaClassifier

    Floats = npt.NDArray[np.float64]

ANSWERS = 20_000
GUESS = 0.25
STORY = (
    f"{ANSWERS:,} simulated answers to questions with four choices, of difficulty 0 to 1.\n"
    "People who do not know the answer guess. What share of people know it?"
)
TOLD = (0.1, 0.3, 0.5, 0.7, 0.9)


def known(difficulty: Any) -> Any:
    """Return the true probability that the answer to a question is known."""
    return (1.0 - difficulty**2) ** 2


def learn(seed: int = 0) -> SmoothBetaClassifier:
    """Return a model of simulated answers to questions with four choices."""
    import numpy as np

    from betafield import SmoothBetaClassifier, contexts
    from betafield.files import arrow

    rng = np.random.default_rng(seed)
    difficulty = rng.uniform(size=ANSWERS).round(3)
    right = rng.uniform(size=ANSWERS) < GUESS + (1.0 - GUESS) * known(difficulty)
    X = arrow().table({"difficulty": difficulty})
    model = SmoothBetaClassifier(bounds=[(0.0, 1.0)])
    return model.fit(X, right, context=contexts.guess_lapse(GUESS))


def tell(model: SmoothBetaClassifier) -> None:
    """Print the posterior beside the truth."""
    import numpy as np

    from betafield.files import arrow

    at = np.array(TOLD)
    posterior = model.posterior(arrow().table({"difficulty": at}))
    low, high = posterior.interval(0.95)
    terminal.table(
        [("difficulty", True), ("truth", True), ("learned", True), ("95 % interval", True)],
        [
            (f"{x:.1f}", f"{truth:.1%}", f"{mean:.1%}", f"{a:.1%} to {b:.1%}")
            for x, truth, mean, a, b in zip(
                TOLD, known(at), posterior.mean(), low, high, strict=True
            )
        ],
    )
