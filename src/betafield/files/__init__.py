"""Files of trials, read some rows at a time: paths, then record batches, then columns.

    paths     the files that paths, globs and folders name
    sources   Parquet and CSV files, read in pieces
    columns   what each column is for, and its values as arrays
    labels    the classes of an outcome
    schemas   the columns that files have, against those that are needed
    batch     some rows of a file, as arrays
    rows      the rows of all files
    optional  pyarrow and rich, imported where they are used

Parquet and CSV, by pyarrow. Nothing is learned here: `Rows` says which files and columns there
are, and reads them as often as it is asked to; a `Batch` gives its columns as arrays, and names
its file and row in whatever goes wrong with them. Columns are looked for in all files before the
first row is read.

Files are read as data only: no pickle, no code, no types of others.
"""

from betafield.files.batch import Batch
from betafield.files.columns import Roles, roles
from betafield.files.labels import Labels
from betafield.files.optional import arrow
from betafield.files.rows import Rows
from betafield.files.sources import CSV, File, Limits, listed

__all__ = ["CSV", "Batch", "File", "Labels", "Limits", "Roles", "Rows", "arrow", "listed", "roles"]
