"""Pictures of fitted models, by scikit-learn's convention: `from_estimator`, then `plot(ax=...)`.

    FieldDisplay        the probability over one feature or two, and how sure it is
    ExceedanceDisplay   how likely the probability is above a level
    CalibrationDisplay  what was predicted against what happened
    ComponentsDisplay   how far a model looks along each feature, and what its components weigh
    ThresholdDisplay    where the probability reaches a level
    BandwidthDisplay    how well windows of each width predict
    WindowDisplay       what the posterior at one point is made of

Each display keeps all the data it shows, so that it can be drawn again, elsewhere or with other
tools. The colours are safe for colour-blind readers, and names come from the data.
"""

from betafield.plots.bandwidth import BandwidthDisplay
from betafield.plots.calibration import CalibrationDisplay
from betafield.plots.components import ComponentsDisplay
from betafield.plots.exceedance import ExceedanceDisplay
from betafield.plots.field import FieldDisplay
from betafield.plots.threshold import ThresholdDisplay
from betafield.plots.window import WindowDisplay

__all__ = [
    "BandwidthDisplay",
    "CalibrationDisplay",
    "ComponentsDisplay",
    "ExceedanceDisplay",
    "FieldDisplay",
    "ThresholdDisplay",
    "WindowDisplay",
]
