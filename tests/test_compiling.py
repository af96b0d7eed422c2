"""The kernels compiled for a first answer: users wait for them, so they are counted."""

import subprocess
import sys

import pytest

CODE = """
import sys
import numpy as np
from betafield import SmoothBetaClassifier, contexts
from betafield._jit import numba

rng = np.random.default_rng(0)
X, y = rng.random((1000, {d})), rng.integers(0, 2, 1000)
SmoothBetaClassifier().fit(X, y, context={context}).posterior(X[:10]).interval(0.95)
for name, module in list(sys.modules.items()):
    if name.startswith("betafield."):
        for each in vars(module).values():
            if isinstance(each, numba.core.dispatcher.Dispatcher) and each.__module__ == name:
                print(*[each.__name__] * len(each.signatures))
"""
# Dense linear algebra with a fixed order of summation, which would be slow in NumPy.
NEEDED = ["_solve", "add_product", "add_rows", "eliminate"]
# Under contexts, coefficients are drawn for their exact moments.
DRAWN = ["substitute"]


@pytest.mark.parametrize("d", [pytest.param(1, marks=pytest.mark.long), 2])
@pytest.mark.parametrize(
    "context", [pytest.param("None", marks=pytest.mark.long), "contexts.guess_lapse(0.3, 0.05)"]
)
def test_a_first_answer_compiles_each_of_a_few_kernels_once(d, context, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    run = [sys.executable, "-c", CODE.format(d=d, context=context)]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert sorted(found.split()) == NEEDED + ([] if context == "None" else DRAWN)
