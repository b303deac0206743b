"""Effects: the index (SQLite, WAL) opened by those who only look, or ask something of an engine.

The standard library's driver alone: to import SQLAlchemy takes longer than all that a viewer asks before its first
screen. The tables themselves, and whatever writes them, are in ``store.tables`` and ``store.index``.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from kbtui.errors import EngineError, UsageError

#: Of the tables; a migration leads from each to the next (``store.index``).
VERSION = 2
BUSY_TIMEOUT_MS = 10_000

_WRITABLE = "its folder must be writable and have room; copy it to such a place and give --workspace DIR"


class DamagedIndexError(Exception):
    """The file is not a sound SQLite database."""


class EmptyIndexError(Exception):
    """The file is there, its tables are not: its engine is just starting, or died when it was."""


def open_for_reading(path: Path) -> sqlite3.Connection:
    """One connection for short reads, each seeing what is committed by then; it cannot write. Threads may share it.

    Rows are read by the names of their columns. Raises DamagedIndexError, EmptyIndexError, EngineError on another
    version, UsageError where it cannot be opened.
    """
    with damage_noticed(path):
        connection = _connect(path)
        try:
            connection.execute("PRAGMA query_only=ON")
            (found,) = connection.execute("PRAGMA user_version").fetchone()
        except BaseException:
            connection.close()
            raise
    if found != VERSION:
        connection.close()
        raise version_error(path, found) if found else EmptyIndexError(path)
    return connection


@contextlib.contextmanager
def asking(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction for a viewer's insert: it begins immediate, and nothing is made or migrated.

    Raises sqlite3.OperationalError where it cannot be written.
    """
    with contextlib.closing(_connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            yield connection


def prepare_connection(connection: sqlite3.Connection) -> None:
    """What every connection has: our own BEGIN (the driver's is deferred, and fails when it upgrades), and patience."""
    connection.isolation_level = None
    for pragma in (f"busy_timeout={BUSY_TIMEOUT_MS}", "synchronous=NORMAL", "journal_size_limit=16777216"):
        connection.execute(f"PRAGMA {pragma}")


def version_error(path: Path, found: int) -> EngineError:
    if found > VERSION:
        return EngineError(f"{path} was written by a newer kbtui (index version {found})", "update kbtui")
    return EngineError(f"{path} has index version {found}, this kbtui reads {VERSION}", "run `kbtui reindex`")


@contextlib.contextmanager
def damage_noticed(path: Path) -> Iterator[None]:
    """Tells a damaged file (DamagedIndexError) from one that cannot be opened (UsageError)."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        said = str(error).lower()
        if "not a database" in said or "malformed" in said:
            raise DamagedIndexError(said) from None
        if isinstance(error, sqlite3.OperationalError):
            raise UsageError(f"{path} cannot be opened: {error}", _WRITABLE) from None
        raise


def _connect(path: Path) -> sqlite3.Connection:
    """Never makes the file.

    Readers of a WAL share memory beside the file. On a disk mounted read-only they cannot, and need not where all of
    the log is in the file: nobody writes there.
    """
    how = "immutable=1" if _is_at_rest(path) else "mode=rw"
    connection = sqlite3.connect(f"file:{quote(os.fsencode(path))}?{how}", uri=True, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        prepare_connection(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_at_rest(path: Path) -> bool:
    try:
        read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
    log = Path(f"{path}-wal")
    return read_only and not (log.exists() and log.stat().st_size)
