#!/usr/bin/env bash
# Build wheel and sdist, install the wheel in an empty environment, and use it there.
# tests/wheel.sh PYTHON, a Python that has `build`.
set -euo pipefail
python=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "building wheel and sdist, and trying the wheel in an empty environment: two minutes"
"$python" -m build --outdir "$folder/dist" . >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
"$python" -m venv "$folder/venv"
wheel=$(ls "$folder"/dist/*.whl)
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel[cli,files]"
"$folder/venv/bin/pip" check
cd "$folder"
venv/bin/python - <<'PYTHON'
import betafield
from betafield import SmoothBetaClassifier

assert "site-packages" in betafield.__file__, betafield.__file__
X = [[i / 100] for i in range(100)]
model = SmoothBetaClassifier().fit(X, [i >= 50 for i in range(100)])
low, high = model.posterior([[0.05], [0.95]]).mean()
assert low < 0.2 < 0.8 < high, (low, high)
PYTHON
venv/bin/betafield demo
echo "the wheel works"
