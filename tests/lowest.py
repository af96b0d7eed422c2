"""Print the lowest release of each dependency that pyproject.toml allows, as pip constraints.

Run by `make test-lowest`, with any Python that the library supports and without other packages.
"""

import re
import sys
import tomllib
from pathlib import Path

# Older releases have no wheels for the Python that runs this.
WHEELS = {
    (3, 13): {"numpy": "2.1.0"},
    (3, 14): {
        "numba": "0.63.0",
        "numpy": "2.3.2",
        "pyarrow": "22.0.0",
        "scikit-learn": "1.7.2",
        "scipy": "1.16.1",
    },
}
EXTRAS = ("cli", "files")


def main():
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = list(project["dependencies"])
    for extra in EXTRAS:
        listed += project["optional-dependencies"][extra]
    above = WHEELS.get(sys.version_info[:2], {})
    for requirement in listed:
        name, low = re.match(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement).groups()
        sys.stdout.write(f"{name}=={above.get(name, low)}{'' if name in above else '.*'}\n")


if __name__ == "__main__":
    main()
