"""Memory and time of learning from files: ``python benchmarks/files.py``.

Trials with two features, at 1,000 places or each at its own. A line per file: its size; the most
memory that a process takes, beyond what it had when it had learned from a few trials; its time;
and the same for `fit` on the file read whole.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

SIZES = (200_000, 1_000_000, 2_000_000, 8_000_000)
PLACES = 1_000
CHUNK = 1_000_000

LEARN = """
import sys, time
import numpy as np
import pyarrow.csv, pyarrow.parquet
from betafield import SmoothBetaClassifier

def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

path, how = sys.argv[1:]
rng = np.random.default_rng(0)
model = SmoothBetaClassifier(0.1).fit(rng.uniform(size=(200, 2)), rng.integers(0, 2, 200))
model.posterior([[0.5, 0.5]]).mean()
before, start = peak(), time.perf_counter()
if how == "fit_files":
    model.fit_files(path, outcome="died")
else:
    read = pyarrow.csv.read_csv if path.endswith("csv") else pyarrow.parquet.read_table
    table = read(path)
    model.fit(table.select(["a", "b"]), table["died"])
print((peak() - before) / 1024, time.perf_counter() - start)
"""


def write(path: Path, t: int, n_places: int | None) -> None:
    """Write t trials, a chunk at a time."""
    rng = np.random.default_rng(0)
    places = rng.uniform(size=(n_places or 1, 2))
    schema = pa.schema([("a", pa.float64()), ("b", pa.float64()), ("died", pa.int64())])
    kind = pa.csv.CSVWriter if path.suffix == ".csv" else pa.parquet.ParquetWriter
    with kind(path, schema) as writer:
        for start in range(0, t, CHUNK):
            n = min(CHUNK, t - start)
            at = places[rng.integers(0, n_places, n)] if n_places else rng.uniform(size=(n, 2))
            writer.write_table(pa.table([*at.T, rng.integers(0, 2, n)], schema=schema))


def learned(path: Path, how: str) -> tuple[float, float]:
    """Return the memory in MiB and the seconds that a process of its own takes to learn."""
    command = [sys.executable, "-c", LEARN, str(path), how]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(told[0]), float(told[1])


def main() -> None:
    """Print a line per file."""
    print(f"{'rows':>10}{'places':>10}  {'file':<16}{'fit_files':>22}{'fit':>22}")
    for n_places in (PLACES, None):
        for suffix in (".parquet", ".csv"):
            for t in SIZES if n_places else SIZES[1:3]:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder, f"trials{suffix}")
                    write(path, t, n_places)
                    size = f"{path.stat().st_size / 1e6:.0f} MB {suffix}"
                    cells = [learned(path, how) for how in ("fit_files", "fit")]
                told = "".join(f"{memory:>10.0f} MiB {time:>6.1f} s" for memory, time in cells)
                print(f"{t:>10,}{n_places or t:>10,}  {size:<16}{told}", flush=True)


if __name__ == "__main__":
    main()
