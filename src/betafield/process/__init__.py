"""The smooth part: a low-rank Gaussian process on sums by place, and windows of its residuals.

All functions are pure and all values immutable; nothing here depends on the estimators. In the
order in which data pass through them:

    model         from sums by place to posteriors anywhere: `find`, `build`, `Smooth`
    unknown       contexts whose rates are unknown: quadrature nodes of the rates' posterior
    finding       hyper-parameters of processes and windows;  found: them as plain values, to save
    sums          trials by place;  boxes: from own units, ranks or logarithms to the unit box
    scales        which of these units, by evidence;  correlations: ρ between the trials of a row
    rows          trials gathered by place or by cell
    basis         products of cosines, and the prior variances of their coefficients; level effects
    blocks        levels of categories, and their prior variances;  pooled: their curvature
    links         π = g(f);  likelihood: the likelihood of f under contexts
    design        products with the design matrix, by sums of cosines (`cosines`) or dense
    curvature     I + Φ̃′WΦ̃, factored: dense, or block-arrow if there are levels
    laplace       the mode, its evidence and their derivatives, given hyper-parameters
    fit           hyper-parameters by evidence; links weighed by it
    law           one normal distribution of f per point and link;  mixtures: moments and quantiles
    sampling      from Laplace's approximation to the exact posterior, under contexts
    companion     a rougher process, for the variance where trials say little
    leaving       leave-one-out predictions without refitting
    residuals     scores and weights that the process leaves, and windows of them
    trees         sums over windows;  ladder: the same by brute force, all widths at once
    following     how the residuals of the others change when a trial is left out
    scores        process and windows weighed by leave-one-out;  groups: places or levels left out
    ensemble      the joint posterior, a list of members;  draws: fields from it;  noise: their seed
    centring      fields with the posterior's mean at each point;  slices: fields made monotone
    steps         curves that jump, the limit of steep ones
    sound         whether the values in a file can be the result of `find`

`linear`, `averages` and `cosines` are tools: linear algebra whose sums have a fixed order, means
over normal distributions, and sums over products of cosines.

Examples
--------
>>> import numpy as np
>>> from betafield.process import fit, law, mixtures, rows
>>> x = np.array([[0.0], [0.25], [0.75], [1.0]])
>>> fits = fit.fit_links(rows.gather(x, np.full(4, 100), np.array([20, 20, 80, 80])))
>>> mixtures.mean(law.laws(fits, x)).round(1)
array([0.2, 0.2, 0.8, 0.8])
"""
