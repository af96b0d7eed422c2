"""How near is near: which windows to use, as asked for or as they predict best.

choice      what was asked for, and when windows are weighed anew
candidates  windows as a table
weighing    candidates weighed on growing samples
scoring     how windows predict trials that are left out
local       polynomials fitted to the trials of a window
around      widths around those in use, for pictures
"""

from betafield.choosing.choice import Choice, Chosen
from betafield.choosing.weighing import Weighing

__all__ = ["Choice", "Chosen", "Weighing"]
