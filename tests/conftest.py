"""Settings of all tests: generated cases are the same in every run."""

import numba
from hypothesis import HealthCheck, settings

settings.register_profile(
    "betafield", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("plain", settings.get_profile("betafield"), max_examples=10)

# Kernels as plain Python are run for their lines to be seen; compiled ones meet all cases.
PLAIN = bool(numba.config.DISABLE_JIT)
settings.load_profile("plain" if PLAIN else "betafield")


def pytest_collection_modifyitems(items):
    """Do not watch the lines of generated cases: it takes half as long again, for few lines more.

    What they alone would run is not covered, so `--cov-fail-under` asks for more than it says.
    """
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False) and not PLAIN:
            item.add_marker("no_cover")
