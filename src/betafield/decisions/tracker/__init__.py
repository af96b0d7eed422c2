"""A risk that moves, and alarms where it passes a threshold.

    tracker       the object that people use: validates, delegates
    state         what it has seen, an immutable value
    memory        sums of trials by place and span of time
    cells         the places
    file          all of it as plain values and arrays
    false_alarms  how often it is wrong

A tracker forgets: seen from time t, a trial made at s counts for 2^(−(t − s)/half_life), or for 1
as long as it is in the window (`memory`). With such weights w the posterior is that of
`SmoothBetaClassifier`,

    π(x) ~ Beta(α + Σ w y, β + Σ w (1 − y)),         trials within the bandwidth of x,

and a place is in alarm once P(π(x) > threshold) is above the level `alarm`.

What an alarm promises
----------------------
At each look, that the risk is above the threshold with that posterior probability. Many looks at
many places see more of what is rare. For a sliding window, trials without contexts, and a prior
with α ≤ 1 ≤ β, this much is certain: at a time that was not chosen by outcomes, and at a place near
which no trial in the window had a risk above the threshold τ,

    P(P(π(x) > τ) > alarm) ≤ (1 − alarm)/τ.

For with n trials and S events P(π(x) > τ) ≤ P(Bin(n + 1, τ) ≤ S), so that it is above the level
only where S ≥ k, the least k for which P(Bin(n + 1, τ) > k) < 1 − alarm. One event more has
probability τ, so P(Bin(n + 1, τ) > k) ≥ τ P(Bin(n, τ) ≥ k); and P(S ≥ k) ≤ P(Bin(n, τ) ≥ k) where
no risk is above τ. Adding up, m places looked at k times begin no more than m k (1 − alarm)/τ false
alarms on average. There are far fewer, for one look is much like the next: `false_alarm_rate`
counts them for given settings.
"""
