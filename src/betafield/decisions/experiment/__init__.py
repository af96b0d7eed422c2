"""Ask where to test next, tell what happened.

An experiment is a model, a goal and a list of trials. What it asks next is a function of the
seed and of that list. There is no other state, so a saved experiment continues as if it had never
stopped.

    experiment   the object that users see: it validates and delegates
    history      the list of trials
    learner      the model, which learns trial by trial
    goals        what is known, and when it is enough
    placing      where to test next
    acquisition  the value of testing each candidate
    standing     points that are queried after every trial
    neighbours   distances to earlier trials
    replaying    an experiment rebuilt from the list of what happened
    file         an experiment as plain values and arrays
"""
