"""Importing the package: quick, and with its public names."""

import functools
import operator
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import betafield

HEAVY = {"numba", "matplotlib", "pandas", "polars", "pyarrow", "dask"}
# scikit-learn's own imports, some of which depend on what is installed.
SKLEARN = "import sklearn.base, sklearn.utils.multiclass, sklearn.utils.validation"


@functools.cache
def modules_after(code):
    """Return the names of the packages that a fresh interpreter has loaded after the code."""
    told = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{told}"], capture_output=True, text=True, check=True
    )
    return frozenset(run.stdout.split())


def test_the_estimator_needs_no_heavy_package_beyond_scikit_learn():
    loaded = modules_after("import betafield; betafield.SmoothBetaClassifier(bandwidth=0.1)")
    assert {"betafield", "sklearn"} <= loaded
    assert (loaded - modules_after(SKLEARN)) & HEAVY == set()


def test_the_package_itself_is_imported_without_numpy():
    assert modules_after("import betafield") & {"numpy", "scipy", "sklearn", *HEAVY} == set()


def test_learning_from_arrays_needs_no_dataframe_package():
    code = (
        "from betafield import SmoothBetaClassifier\n"
        "SmoothBetaClassifier().fit([[0], [1]], [0, 1]).posterior([[0.5]]).mean()"
    )
    assert (modules_after(code) - modules_after(SKLEARN)) & HEAVY == {"numba"}


def test_the_public_names_are_listed_and_there():
    assert {"SmoothBetaClassifier", "Prior", "__version__"} <= set(dir(betafield))
    assert all(getattr(betafield, name) is not None for name in dir(betafield))
    assert betafield.SmoothBetaClassifier.__module__ == "betafield.estimators"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"betafield.*'Classifier'"):
        operator.attrgetter("Classifier")(betafield)


def test_the_version_is_that_of_the_project():
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert betafield.__version__ == tomllib.loads(project.read_text())["project"]["version"]
