"""The smooth part: a low-rank Gaussian process on sums by place, and windows of its residuals.

Pure functions of immutable values; nothing here knows of estimators. In the order of the data:

    model         sums by place → what is believed anywhere: `find`, `build`, `Smooth`
    unknown       rates of contexts that are not known: nodes of their posterior
    finding       what process and windows are to be like;  found: plain values to be kept
    sums          trials by place;  boxes: own units, ranks or logarithms to the unit box
    scales        which of them, by evidence
    rows          trials gathered by place or by cell
    basis         products of cosines, and what is believed of their coefficients; levels
    blocks        levels of categories, and what is believed of them;  pooled: their curvature
    links         π = g(f);  likelihood: what trials under contexts say of f
    design        products with the basis at points, by sums of cosines (`cosines`) or dense
    curvature     I + Φ̃′WΦ̃, factored: whole, or an arrow if there are levels
    laplace       the mode, its evidence and slopes, given hyper-parameters
    fit           hyper-parameters by evidence; links weighed by it
    law           one normal law of f per point and link;  mixtures: what is read off them
    leaving       what would have been said of a trial, had it not been seen
    residuals     what is left over, and windows of it
    trees         sums over windows;  ladder: the same by brute force, all widths at once
    ensemble      the joint posterior: processes at hyper-parameters about the best
    noise         random fields that a seed decides;  draws: fields from the joint posterior
    following     how residuals move when a trial leaves
    scores        process and windows weighed by leaving trials out;  groups: places and levels
    ensemble      the joint posterior, a list of members;  draws: fields from it;  noise: their seed
    sound         whether what a file says was found can have been found

`linear`, `averages` and `cosines` are the tools: sums in a fixed order, means over normal laws and
sums over products of cosines.

Examples
--------
>>> import numpy as np
>>> from betafield.process import fit, law, mixtures, rows
>>> x = np.array([[0.0], [0.25], [0.75], [1.0]])
>>> fits = fit.fit_links(rows.gather(x, np.full(4, 100), np.array([20, 20, 80, 80])))
>>> mixtures.mean(law.laws(fits, x)).round(1)
array([0.2, 0.2, 0.8, 0.8])
"""
