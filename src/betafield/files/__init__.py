"""Files of trials, read in batches: paths, then record batches, then columns.

    paths     the files that paths, globs and folders name
    pieces    what every kind of file can be asked for
    text      CSV files
    sources   Parquet files, and files by their names
    columns   the roles of columns, and their values as arrays
    labels    the classes of an outcome
    schemas   checks of the columns that files have
    batch     a batch of rows of one file, as arrays
    rows      the rows of all files
    optional  pyarrow and rich, imported on use

Parquet and CSV files are read by pyarrow. Nothing is learned here: `Rows` finds the files and
columns, and reads them as often as needed; a `Batch` gives its columns as arrays, and names its
file and row in errors about them. The columns of all files are checked before the first row is
read.

Files are read as data only: no pickle, no code, no extension types.
"""

from betafield.files.batch import Batch
from betafield.files.columns import Roles, roles
from betafield.files.labels import Labels
from betafield.files.optional import arrow
from betafield.files.pieces import File
from betafield.files.rows import Rows
from betafield.files.sources import Limits, listed
from betafield.files.text import CSV

__all__ = ["CSV", "Batch", "File", "Labels", "Limits", "Roles", "Rows", "arrow", "listed", "roles"]
