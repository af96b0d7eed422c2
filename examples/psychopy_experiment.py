"""The contrast that is just seen, with PsychoPy: a handler whose loop is that of `QuestHandler`.

    python examples/psychopy_experiment.py                     # simulated: no PsychoPy, no server
    python examples/psychopy_experiment.py --screen            # with PsychoPy, on this computer
    python examples/psychopy_experiment.py --screen http://127.0.0.1:8000/studies/contrast TOKEN

The same loop runs over an `Experiment` of this program or over a study on a server, where others
may run it at the same time. Only `main` needs PsychoPy, and only with `--screen`.
"""

import sys

import numpy as np

from betafield.client import Study
from betafield.decisions import Experiment, LevelSet

SPACE = {"contrast": (0.0, 0.5)}
TRIALS = 60


class BetafieldHandler:
    """Where to test next, for the loop of PsychoPy's `QuestHandler`.

    >>> experiment = Experiment(SPACE, LevelSet(0.75), random_state=0)
    >>> handler = BetafieldHandler(experiment, nTrials=3)
    >>> for contrast in handler:
    ...     handler.addResponse(contrast > 0.2)
    >>> handler.results == [int(contrast > 0.2) for contrast in handler.intensities]
    True

    If a study has several features, the loop gives all of them, as the loop of a `TrialHandler`:

    >>> space = {"contrast": (0.0, 0.5), "frequency": (1.0, 20.0)}
    >>> handler = BetafieldHandler(Experiment(space, LevelSet(0.75), random_state=0), nTrials=3)
    >>> for shown in handler:
    ...     handler.addResponse(shown["contrast"] > 0.02 * shown["frequency"])
    >>> sorted(handler.intensities[0])
    ['contrast', 'frequency']

    Parameters
    ----------
    study : Experiment or betafield.client.Study
        With the goal `LevelSet(pThreshold)`.
    nTrials : int
        Trials at the most; it ends before if the study has enough.
    pThreshold : float
        The share of right answers at the threshold.
    participant : str or None
        Who is tested; for studies on a server.
    fixed : dict or None
        Values of features that are not to be chosen, such as those that are observed.
    """

    def __init__(self, study, nTrials=TRIALS, pThreshold=0.75, participant=None, fixed=None):
        self.study, self.nTrials, self.pThreshold = study, nTrials, pThreshold
        self.intensities, self.results, self.otherData = [], [], {}
        self.thisTrialN, self.finished = -1, False
        given = {"fixed": fixed, "participant": participant}
        self._asked = {name: value for name, value in given.items() if value is not None}
        self._trial, self._names = None, list(SPACE)

    def __iter__(self):
        return self

    def __next__(self):
        """Return the intensity to test next; of several features, a dict."""
        is_over = self.thisTrialN + 1 >= self.nTrials or getattr(self.study, "enough", False)
        if self.finished or is_over:
            self.finished = True
            raise StopIteration
        if self._trial is not None:
            raise RuntimeError("addResponse was not called for the last trial")
        self.thisTrialN += 1
        self._trial = self.study.ask(**self._asked)
        self._names = list(self._trial)
        return self._shown()

    next = __next__

    def _shown(self):
        """Return what the trial is to show."""
        values = dict(self._trial)
        return values if len(values) > 1 else values[self._names[0]]

    def _values(self, intensity):
        """Return a trial by its features."""
        return dict(intensity) if isinstance(intensity, dict) else {self._names[0]: intensity}

    def addResponse(self, result, intensity=None):
        """Say whether the answer was right; `intensity` if something else was shown."""
        shown = self._shown() if intensity is None else intensity
        if self._values(shown) == dict(self._trial):
            self.study.tell(self._trial, success=bool(result))
        else:
            self.study.tell(self._values(shown), success=bool(result))
            self.study.abandon(self._trial)
        self.intensities.append(shown)
        self.results.append(int(result))
        self._trial = None

    def addOtherData(self, name, value):
        """Keep something else of a trial, such as the time of reaction."""
        self.otherData.setdefault(name, []).append(value)

    def importData(self, intensities, results):
        """Tell trials of an earlier session; of several features, dicts."""
        for intensity, result in zip(intensities, results, strict=True):
            self.study.tell(self._values(intensity), success=bool(result))

    # What is known. A study on a server tells it to tokens that may see it. Of several features,
    # the threshold is along one of them: `feature="contrast"`, and `at={"frequency": 4.0}`, or on
    # average over the trials.

    def threshold(self, feature=None, at=None):
        """Return where the share of right answers is reached."""
        number = self._names.index  # the model knows features by their numbers
        along = None if feature is None else number(feature)
        there = None if at is None else {number(name): at[name] for name in at}
        return self.study.model.threshold(self.pThreshold, along, there, random_state=0)

    def mean(self, **where):
        """Return the mean of the threshold's posterior."""
        return float(np.mean(self.threshold(**where).draws))

    def sd(self, **where):
        """Return its standard deviation."""
        return float(np.std(self.threshold(**where).draws))

    def quantile(self, p=0.5, **where):
        """Return a quantile of it."""
        return float(np.quantile(self.threshold(**where).draws, p))

    def confInterval(self, getDifference=False, **where):
        """Return the 90 % interval, or how wide it is."""
        low, high = np.quantile(self.threshold(**where).draws, [0.05, 0.95]).tolist()
        return high - low if getDifference else [low, high]


# Two alternatives ------------------------------------------------------------------------------


def probability(contrast, threshold=0.2):
    """Return how probable a right answer is of a simulated observer."""
    return 0.5 + 0.48 * (1.0 - np.exp(-np.log(2) * (contrast / threshold) ** 3))


def simulated(rng):
    """Return an observer that needs no screen."""
    return lambda contrast: rng.uniform() < probability(contrast)


def on_screen():
    """Return an observer in front of a screen, who says left or right of the cross."""
    from psychopy import core, event, visual

    window = visual.Window(fullscr=True, units="height", color=0)
    grating = visual.GratingStim(window, mask="gauss", sf=12, size=0.35, ori=45)
    cross = visual.TextStim(window, "+", height=0.06, color=-1)

    def observe(contrast):
        side = int(np.random.default_rng().choice([-1, 1]))
        grating.pos, grating.contrast = (0.3 * side, 0), contrast
        cross.draw()
        window.flip()
        core.wait(0.4)
        grating.draw()
        cross.draw()
        window.flip()
        core.wait(0.5)
        cross.draw()
        window.flip()
        (key, *_) = event.waitKeys(keyList=["left", "right", "escape"])
        if key == "escape":
            window.close()
            core.quit()
        return (key == "right") == (side == 1)

    return observe


def run(handler, observe):
    """Run the loop, as with any handler of PsychoPy."""
    for contrast in handler:
        handler.addResponse(observe(contrast))
    return handler


def main(arguments):
    """Run it, and print what was found."""
    is_shown = "--screen" in arguments
    address = [each for each in arguments if each != "--screen"]
    if address:
        study = Study(*address, journal="contrast.jsonl")
    else:
        study = Experiment(SPACE, LevelSet(0.75), random_state=0)
    observe = on_screen() if is_shown else simulated(np.random.default_rng(0))
    handler = run(BetafieldHandler(study), observe)
    print(f"trials     {len(handler.results)}, {np.mean(handler.results):.0%} right")
    try:
        low, high = handler.confInterval()
        print(f"threshold  {handler.quantile(0.5):.3f}, 90 % interval {low:.3f} to {high:.3f}")
    except PermissionError:  # a token that only runs the study
        print("threshold  see the dashboard")


if __name__ == "__main__":
    main(sys.argv[1:])
