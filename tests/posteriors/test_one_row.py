"""A posterior at one point can be evaluated at many values at once, whatever its kind."""

import numpy as np
import pytest

from betafield import SmoothBetaClassifier, contexts

X = np.linspace(0, 1, 50)[:, None]
Y = np.arange(50) * 7 % 5 < 2
CHANCE = contexts.guess_lapse(guess=0.3)
VALUES = np.linspace(0.1, 0.9, 5)
KINDS = {
    "Beta": ({"bandwidth": 0.3}, None),
    "LatentNormal": ({}, None),
    "Contextual": ({"bandwidth": 0.3}, CHANCE),
    "LatentNormal of contexts": ({}, CHANCE),
}


@pytest.fixture(params=list(KINDS))
def posterior(request):
    options, context = KINDS[request.param]
    found = SmoothBetaClassifier(**options).fit(X, Y, context=context).posterior([[0.5]])
    assert type(found).__name__ == request.param.split()[0]
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("method", ["pdf", "cdf", "prob_above", "ppf"])
@pytest.mark.parametrize("shape", [(5,), (5, 1), (1, 5), (1, 5, 1), (0,)])
@pytest.mark.parametrize("moved", [False, True], ids=["itself", "under a context"])
def test_one_row_answers_many_values(posterior, method, shape, moved):
    if moved:
        posterior = posterior.under(contexts.attenuated(0.5))
    ask = getattr(posterior, method)
    values = VALUES[: np.prod(shape)].reshape(shape)
    found = ask(values)
    assert found.shape == shape
    one_by_one = [ask(value)[0] for value in values.ravel()]
    np.testing.assert_allclose(found.ravel(), one_by_one, rtol=1e-12)
