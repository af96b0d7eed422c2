"""Settings of all tests: generated cases are the same in every run."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "betafield", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("betafield")
