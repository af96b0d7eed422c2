"""Posterior distributions of the success probability, one per row."""

import betafield.posteriors.under  # noqa: F401  # what `Posterior.under` calls
from betafield.posteriors.base import Posterior
from betafield.posteriors.beta import Beta
from betafield.posteriors.contextual import Contextual
from betafield.posteriors.dirichlet import Dirichlet
from betafield.posteriors.latent import LatentNormal
from betafield.posteriors.mixture import Mixture
from betafield.posteriors.reference import constant_offset_mixture, exact_mixture
from betafield.posteriors.sampled import Sampled

__all__ = [
    "Beta",
    "Contextual",
    "Dirichlet",
    "LatentNormal",
    "Mixture",
    "Posterior",
    "Sampled",
    "constant_offset_mixture",
    "exact_mixture",
]
