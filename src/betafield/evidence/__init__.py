"""How a trial is counted, and what counts mean.

columns  the layout of counts, said once
encode   outcomes and contexts → counts that can be added up
decode   sums of counts → posteriors
"""

from betafield.evidence.columns import Polynomial, Totals
from betafield.evidence.decode import Decoder
from betafield.evidence.encode import Evidence

__all__ = ["Decoder", "Evidence", "Polynomial", "Totals"]
