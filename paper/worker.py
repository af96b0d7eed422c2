"""Compute units and keep them: ``python -m paper.worker FOLDER``, a JSON list on standard input.

Says a byte on standard output for every unit that is kept; whatever else is printed goes to
standard error.
"""

import gc
import json
import os
import sys
from pathlib import Path

from threadpoolctl import threadpool_limits

from paper import measures
from paper.harness import Cache, Measure, Unit, compute


def main(folder: str, measure: Measure = measures.measure) -> None:
    """Take one thread: as many processes as there are cores run at a time."""
    cache, units = Cache(Path(folder)), json.load(sys.stdin)
    say = os.dup(1)
    os.dup2(2, 1)
    with threadpool_limits(1):
        for unit in units:
            compute(Unit(**unit), cache, measure)
            gc.collect()  # what a unit held is given back before the next one asks for more
            os.write(say, b".")


if __name__ == "__main__":
    main(sys.argv[1])
