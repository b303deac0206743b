"""Effects: the SQLite index (WAL) as its one writer opens it: the engine. Those who look are in ``store.opening``."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import QueuePool
from sqlmodel import SQLModel

from store import opening
from store.opening import DamagedIndexError, damage_noticed, prepare_connection, version_error
from store.standing import add_standings
from store.tables import ALL

#: Below this size a damaged page is looked for on each opening (a few milliseconds a megabyte).
QUICK_CHECK_BYTES = 16 << 20

Migration = Callable[[Connection], None]

#: Migration n brings version n to n + 1, up to ``opening.VERSION``; version 1 is the first released schema.
#: Never change one that was released.
MIGRATIONS: dict[int, Migration] = {1: add_standings}


def open_index(path: Path) -> Engine:
    """The index for the engine, made or migrated where needed; transactions begin immediate, threads may share it.

    Raises DamagedIndexError on a file that is not sound, EngineError on one of a newer version, UsageError where it
    cannot be written.
    """
    engine = _engine(path)
    try:
        with damage_noticed(path), _drivers_errors():
            _check(path, engine)
            _prepare(path, engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def reading(engine: Engine) -> Connection:
    """A connection for reads only: it takes no write lock, and each statement sees what is committed by then."""
    return engine.connect().execution_options(reading=True)


def set_aside(path: Path) -> Path | None:
    """Rename a damaged index and its companions; returns the new name, None where there was no file."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{path}.damaged-{stamp}{suffix}")
    aside = Path(f"{path}.damaged-{stamp}")
    return aside if aside.exists() else None


@contextlib.contextmanager
def _drivers_errors() -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        raise error.orig or error from None


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    prepare_connection(connection)
    return connection


def _engine(path: Path) -> Engine:
    # A connection of our own making: in a URL a path with ? or % in it would be another
    engine = create_engine("sqlite://", creator=partial(_connect, path), poolclass=QueuePool)

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        if not connection.get_execution_options().get("reading"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

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
        if found > opening.VERSION:
            raise version_error(path, found)
        if found == 0:
            SQLModel.metadata.create_all(connection, tables=list(ALL))
        elif found < opening.VERSION:
            _keep_old(path, found)
        for version in range(found or opening.VERSION, opening.VERSION):
            MIGRATIONS[version](connection)
        connection.exec_driver_sql(f"PRAGMA user_version={opening.VERSION}")


def _keep_old(path: Path, version: int) -> None:
    with (
        contextlib.closing(sqlite3.connect(path)) as old,
        contextlib.closing(sqlite3.connect(f"{path}.v{version}")) as copy,
    ):
        old.backup(copy)
