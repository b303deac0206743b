"""Effects: the SQLite index (WAL). One engine writes; viewers read short and insert commands."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import NullPool, QueuePool
from sqlmodel import SQLModel

from kbtui.errors import EngineError, UsageError
from store.standing import add_standings
from store.tables import ALL

BUSY_TIMEOUT_MS = 10_000
#: Below this size a damaged page is looked for on each opening (a few milliseconds a megabyte).
QUICK_CHECK_BYTES = 16 << 20

_WRITABLE = "its folder must be writable and have room; copy it to such a place and give --workspace DIR"

Migration = Callable[[Connection], None]

#: Migration n brings version n to n + 1; version 1 is the first released schema. Never change one that was released.
MIGRATIONS: dict[int, Migration] = {1: add_standings}
VERSION = 1 + len(MIGRATIONS)


class DamagedIndexError(Exception):
    """The file is not a sound SQLite database."""


class EmptyIndexError(Exception):
    """The file is there, its tables are not: its engine is just starting, or died when it was."""


def open_index(path: Path) -> Engine:
    """The index for the engine, made or migrated where needed; transactions begin immediate, threads may share it.

    Raises DamagedIndexError on a file that is not sound, EngineError on one of a newer version, UsageError where it
    cannot be written.
    """
    engine = _engine(path, QueuePool, "BEGIN IMMEDIATE")
    try:
        with _damage_noticed(path):
            _check(path, engine)
            _prepare(path, engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def reading(engine: Engine) -> Connection:
    """A connection for reads only: it takes no write lock, and each statement sees what is committed by then."""
    return engine.connect().execution_options(reading=True)


def open_for_commands(path: Path) -> Engine:
    """For a viewer's insert: nothing is made or migrated, no connection is kept."""
    return _engine(path, NullPool, "BEGIN IMMEDIATE")


def open_for_reading(path: Path) -> Connection:
    """One connection for short reads, each seeing what is committed by then; it cannot write.

    Readers of a WAL share memory beside the file. On a disk mounted read-only they cannot, and need not where all of
    the log is in the file: nobody writes there.
    """
    engine = _engine(path, NullPool, None, at_rest=_is_at_rest(path))
    with _damage_noticed(path):
        connection = engine.connect()
        connection.exec_driver_sql("PRAGMA query_only=ON")
        found = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if found != VERSION:
        connection.close()
        raise _version_error(path, found) if found else EmptyIndexError(path)
    return connection


def set_aside(path: Path) -> Path | None:
    """Rename a damaged index and its companions; returns the new name, None where there was no file."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{path}.damaged-{stamp}{suffix}")
    aside = Path(f"{path}.damaged-{stamp}")
    return aside if aside.exists() else None


def _is_at_rest(path: Path) -> bool:
    try:
        read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
    log = Path(f"{path}-wal")
    return read_only and not (log.exists() and log.stat().st_size)


def _engine(path: Path, pool: type[QueuePool] | type[NullPool], begin: str | None, *, at_rest: bool = False) -> Engine:
    where = f"sqlite:///file:{quote(str(path))}?immutable=1&uri=true" if at_rest else f"sqlite:///{path}"
    engine = create_engine(where, poolclass=pool, connect_args={"check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # BEGIN is ours: the driver's own is deferred, and fails when it upgrades
        for pragma in (f"busy_timeout={BUSY_TIMEOUT_MS}", "synchronous=NORMAL", "journal_size_limit=16777216"):
            connection.execute(f"PRAGMA {pragma}")

    if begin:

        @event.listens_for(engine, "begin")
        def _begun(connection: Connection) -> None:
            if not connection.get_execution_options().get("reading"):
                connection.exec_driver_sql(begin)

    return engine


def _check(path: Path, engine: Engine) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    with contextlib.closing(raw):
        raw.execute("PRAGMA journal_mode=WAL")
        if path.stat().st_size < QUICK_CHECK_BYTES and raw.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise DamagedIndexError(path)


def _prepare(path: Path, engine: Engine) -> None:
    with engine.begin() as connection:
        found = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        if found > VERSION:
            raise _version_error(path, found)
        if found == 0:
            SQLModel.metadata.create_all(connection, tables=list(ALL))
        elif found < VERSION:
            _keep_old(path, found)
        for version in range(found or VERSION, VERSION):
            MIGRATIONS[version](connection)
        connection.exec_driver_sql(f"PRAGMA user_version={VERSION}")


def _keep_old(path: Path, version: int) -> None:
    with (
        contextlib.closing(sqlite3.connect(path)) as old,
        contextlib.closing(sqlite3.connect(f"{path}.v{version}")) as copy,
    ):
        old.backup(copy)


def _version_error(path: Path, found: int) -> EngineError:
    if found > VERSION:
        return EngineError(f"{path} was written by a newer kbtui (index version {found})", "update kbtui")
    return EngineError(f"{path} has index version {found}, this kbtui reads {VERSION}", "run `kbtui reindex`")


@contextlib.contextmanager
def _damage_noticed(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, DatabaseError) as error:
        said = str(error).lower()
        if "not a database" in said or "malformed" in said:
            raise DamagedIndexError(said) from None
        if isinstance(error, sqlite3.OperationalError | OperationalError):
            why = getattr(error, "orig", None) or error
            raise UsageError(f"{path} cannot be opened: {why}", _WRITABLE) from None
        raise
