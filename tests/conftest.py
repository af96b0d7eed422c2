"""Settings of all tests: generated cases are the same in every run, or other ones in long runs."""

import numba
from hypothesis import HealthCheck, settings

settings.register_profile(
    "betafield", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("plain", settings.get_profile("betafield"), max_examples=10)
# Chosen by --hypothesis-profile. What fails is printed with the line that repeats it.
settings.register_profile(
    "long", settings.get_profile("betafield"), derandomize=False, print_blob=True
)
MORE = 10  # times as many cases in long runs

# Kernels as plain Python are run for their lines to be seen; compiled ones meet all cases.
PLAIN = bool(numba.config.DISABLE_JIT)
settings.load_profile("plain" if PLAIN else "betafield")


def pytest_collection_modifyitems(items):
    """Do not watch the lines of generated cases: it takes half as long again, for few lines more.

    What they alone would run is not covered, so `--cov-fail-under` asks for more than it says.
    """
    generated = [
        item for item in items if getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    ]
    if not PLAIN:
        for item in generated:
            item.add_marker("no_cover")
    if not settings.default.derandomize:
        for test in {getattr(item.obj, "__func__", item.obj) for item in generated}:
            ask_for_more(test)


def ask_for_more(test):
    """Multiply the number of cases, also where a test says its own; there is no public way."""
    said = test._hypothesis_internal_use_settings
    test._hypothesis_internal_use_settings = settings(said, max_examples=MORE * said.max_examples)
