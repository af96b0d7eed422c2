"""Compiled quadrature: from a row's log-density to its moments, tails and quantiles.

For one row at a time:

1. The mode. ℓ'(u) is looked at on the lattice of trials, where every φ'(u + s_j) stands in a
   table, and the cells are halved until one is left in which it changes its sign. With polynomials
   there may be several modes, and all cells are looked at.
2. Nodes, equally spaced in u, out to where the density is e^−DROP of its peak. For wide rows they
   are points of the lattice halved a few times, so that φ(u + s_j) is a table again, and ℓ at all
   nodes is a correlation of amounts and table. For narrow rows the trials on the lattice are a
   Taylor series around the mode, and what else there is comes as differences from the mode
   without cancellation: φ(u + x) − φ(u) = log1p(φ'(u) expm1(x)).
3. Sums over nodes. The integrand is smooth and vanishes at both ends, so the trapezoid rule errs
   by about e^−(2π²σ²/h²); that even and odd nodes agree is checked, and else h is halved.
4. For tails, ℓ between two nodes is a polynomial through the SPAN nearest, and each cell is
   integrated by Gauss's rule. Beyond the nodes the density is exponential in u.

The rooms, in that order: `log_density`, `nodes`, `moments`, `tails`; `answers` asks them for all
rows, `tables` makes what they look up, and `layout` says where things are in the arrays that they
pass on.
"""
