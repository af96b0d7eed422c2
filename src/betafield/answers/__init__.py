"""Answers on the joint posterior of a field: draws, averages, contrasts.

`draws` has fields drawn from the joint posterior, at any points; `asking` the methods of an
estimator that ask for answers.
"""
