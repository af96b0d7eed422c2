"""Ask where to test next, tell what happened.

An experiment is a model, a goal and a list of trials. What it asks next is a function of the
seed and of that list: there is no other state, so that a saved experiment goes on as if it had
never stopped.

    experiment   the object that people use: validates, delegates
    history      the list of trials
    learner      the model, which learns trial by trial
    goals        what is known, and when it is enough
    placing      where to test next
    acquisition  what a trial would be worth
    standing     points that are asked about after every trial
    neighbours   how far earlier trials are
    replaying    an experiment from the list of what happened
    file         all of it as plain values and arrays
"""
