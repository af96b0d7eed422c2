"""Compiled quadrature: from a row's log-density to its moments, tails and quantiles.

For one row at a time:

1. The mode. ℓ'(u) is evaluated on the lattice of trials, where every φ'(u + s_j) is in a table, and
   bisection finds the cell in which it changes sign. With polynomials there may be several modes,
   so all cells are examined.
2. Nodes, equally spaced in u, out to where the density is e^−DROP of its peak. For wide rows they
   are points of the lattice halved a few times, so that φ(u + s_j) is in a table again, and ℓ at
   all nodes is a correlation of amounts and table. For narrow rows the trials on the lattice are
   expanded in a Taylor series around the mode, and all other terms are differences from the mode
   without cancellation: φ(u + x) − φ(u) = log1p(φ'(u) expm1(x)).
3. Sums over nodes. The integrand is smooth and vanishes at both ends, so the error of the trapezoid
   rule is about e^−(2π²σ²/h²); if even and odd nodes disagree, h is halved.
4. For tails, ℓ between two nodes is the polynomial through the SPAN nearest ones, and each cell is
   integrated by Gauss's rule. Beyond the nodes the density is exponential in u.

The modules, in that order: `log_density`, `nodes`, `moments`, `tails`; `answers` runs them for all
rows, `tables` makes the lookup tables, and `layout` describes the arrays that they share.
"""
