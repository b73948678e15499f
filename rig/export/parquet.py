"""Tables as Parquet, written by DuckDB: the one file that imports it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from rig.errors import MissingLibrary
from rig.export.columns import Table
from rig.export.tables import Row, to_csv

_TYPES = {"text": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "flag": "BOOLEAN"}


def write_parquet(table: Table, rows: Iterable[Row], path: Path) -> None:
    """Writes the rows to `path`. They go through the CSV text, with the types of the columns: the two formats cannot
    say different things. Raises MissingLibrary where DuckDB is not installed."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingLibrary(
            "Parquet needs the library duckdb, which is not installed",
            "duckdb, which is in rig's extra `data`",
            "pip install duckdb, or export --to csv, which needs nothing",
        ) from error
    types = ", ".join(f"'{column.name}': '{_TYPES[column.type]}'" for column in table.columns)
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        plain = Path(folder) / "rows.csv"
        plain.write_bytes(to_csv(table, rows).encode("utf-8", "backslashreplace"))
        connection.execute(
            f"COPY (SELECT * FROM read_csv({_quoted(plain)}, columns = {{{types}}}, header = true, auto_detect = false,"
            f" delim = ',', quote = '\"', escape = '\"', nullstr = '', new_line = '\\n'))"
            f" TO {_quoted(path)} (FORMAT parquet)"
        )


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
