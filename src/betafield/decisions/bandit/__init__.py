"""A bandit whose arms lie in a field: it pulls the best arm while learning which that is.

bandit    the object that users see: it validates and delegates
arms      what can be pulled
pulls     the list of pulls
policies  which arm to pull, given the posteriors of all
fields    the posteriors of arms
zoom      a field for trials that cluster
file      a bandit as plain values and arrays
regret    what a bandit loses while it learns
"""
