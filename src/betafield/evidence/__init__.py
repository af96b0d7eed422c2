"""How trials are counted, and what the counts mean.

columns  the layout of counts, defined once
encode   outcomes and contexts → additive counts
decode   sums of counts → posteriors
"""

from betafield.evidence.columns import Polynomial, Totals
from betafield.evidence.decode import Decoder
from betafield.evidence.encode import Evidence

__all__ = ["Decoder", "Evidence", "Polynomial", "Totals"]
