"""Baselines: the methods that the paper compares with, under the same API.

    ContinuousCorrelatedBeta  a fixed kernel in place of a window that shrinks with the trials
    RadiusNeighbors           the share of successes in the window, without prior or posterior
    LogisticGP                a Gaussian process of log-odds, whose cost grows as t³

All are for two classes, and measure distances in the features' own units.
"""

from betafield.baselines.ccbp import ContinuousCorrelatedBeta
from betafield.baselines.logistic_gp import LogisticGP
from betafield.baselines.logit_normal import LogitNormal
from betafield.baselines.radius import RadiusNeighbors

__all__ = ["ContinuousCorrelatedBeta", "LogisticGP", "LogitNormal", "RadiusNeighbors"]
