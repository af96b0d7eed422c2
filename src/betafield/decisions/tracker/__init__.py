"""A risk that changes over time, and alarms where it exceeds a threshold.

    tracker       the object that users see: it validates and delegates
    state         what it has seen, an immutable value
    memory        sums of trials by place and span of time
    cells         the places
    file          a tracker as plain values and arrays
    false_alarms  how often it raises a false alarm

A tracker forgets: at time t, a trial made at s counts for 2^(−(t − s)/half_life), or for 1 as long
as it is in the window (`memory`). With these weights w the posterior is that of
`SmoothBetaClassifier`,

    π(x) ~ Beta(α + Σ w y, β + Σ w (1 − y)),         trials within the bandwidth of x,

and a place is in alarm once P(π(x) > threshold) is above the level `alarm`.

What an alarm guarantees
------------------------
At a single look, an alarm means that the risk is above the threshold with that posterior
probability. With many looks at many places, rare events become likely. For a sliding window, trials
without contexts, and a prior with α ≤ 1 ≤ β, there is a bound: at a time that was not chosen by
outcomes, and at a place near which no trial in the window had a risk above the threshold τ,

    P(P(π(x) > τ) > alarm) ≤ (1 − alarm)/τ.

Proof: with n trials and S events, P(π(x) > τ) ≤ P(Bin(n + 1, τ) ≤ S), so it is above the level only
if S ≥ k, the least k for which P(Bin(n + 1, τ) > k) < 1 − alarm. One more event has probability τ,
so P(Bin(n + 1, τ) > k) ≥ τ P(Bin(n, τ) ≥ k); and P(S ≥ k) ≤ P(Bin(n, τ) ≥ k) if no risk is above τ.
Summed up, m places with k looks each begin at most m k (1 − alarm)/τ false alarms on average. In
fact there are far fewer, because successive looks are similar: `false_alarm_rate` counts them for
given settings.
"""
