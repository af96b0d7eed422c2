"""Pull the arm that pays most, while learning which: a bandit whose arms lie in a field.

bandit    the object that people use: validates, delegates
arms      what can be pulled
pulls     the list of pulls
policies  which arm to pull, by the posteriors of all
fields    what is believed of arms
zoom      a field for trials that crowd
file      all of it as plain values and arrays
regret    what a bandit loses while it learns
"""
