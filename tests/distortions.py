"""Contexts that are drawn: affine ones and polynomials, at the borders too."""

from hypothesis import strategies as st

rates = st.integers(0, 1024).map(lambda n: n / 1024)
affine = st.tuples(rates, rates) | st.sampled_from(
    [
        (0, 1),
        (1, 0),
        (0, 0.5),
        (0.5, 1),
        (0.3, 0.3),
        (0, 0),
        (1, 1),
        (1, 0.25),
        (1e-12, 1),
        (1, 1e-6),
    ]
)
polynomial = st.sampled_from(
    [(0, 1, 1), (0, 1, 1, 1), (0.1, 0.9, 0.9, 0.9), (0.5, 0, 0.5), (0, 1, 0), (0.7, 0.7, 0.7)]
) | st.tuples(rates, rates, rates)
