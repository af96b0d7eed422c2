"""Settings of the tests of baselines."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    # Matrices this small are factored more slowly where threads wait for each other.
    with threadpool_limits(1):
        yield
