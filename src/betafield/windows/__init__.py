"""Windows: sums of the trials' statistics near a point.

Every index answers one question: what are the sums over the trials within a radius of each query?
`Brute` checks all trials and serves as the oracle for the others, `Line` is for one dimension and
`KDTree` for more, and `Forest` combines several of them so that trials can be added and models
merged. `Standing` repeats queries while trials arrive.
"""

from betafield.windows.base import Index, Places, Shifts
from betafield.windows.brute import Brute
from betafield.windows.forest import Forest, Standing
from betafield.windows.kdtree import KDTree
from betafield.windows.line import Line

__all__ = ["Brute", "Forest", "Index", "KDTree", "Line", "Places", "Shifts", "Standing"]
