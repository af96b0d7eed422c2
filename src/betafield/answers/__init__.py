"""Answers on the joint posterior of a field: draws, averages, contrasts.

`draws` has fields drawn from the joint posterior, at any points; `area` averages over points and
their differences; `asking` the methods of an estimator that ask for answers.
"""
