"""Answers from the joint posterior of a field: draws, averages, contrasts.

`draws` has fields drawn from the joint posterior, at any points; `area` has averages over points
and their differences; `asking` has the estimator's methods for these answers.
"""
