"""Make a pool for --device replay:POOL out of a recorded run.

usage: python benchmarks/make_pool.py FROM OUT.jsonl.gz [--run NAME] [--driver 580.159.04] [--version torch=2.11.0] ...

FROM is a workspace, or a git bundle of its branches (then no raw samples are at hand, and times are drawn from the
recorded intervals). Effects: reads the run; a bundle is unpacked in a temporary folder.
"""

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kbtui.domain.event import RunStarted
from kbtui.domain.pool import Pool
from kbtui.pool_file import pool_of_run, write_pool
from kbtui.problems import load_problem
from store.artifacts import read_artifact
from store.reader import Reader
from store.reindex import reindex
from store.workspace import Workspace, create_workspace, open_workspace


@contextmanager
def reader_of(path: Path) -> Iterator[Reader]:
    """A reader on a workspace, or on one made from a bundle alone."""
    if path.is_dir():
        with Reader(open_workspace(path)) as reader:
            yield reader
        return
    with (
        tempfile.TemporaryDirectory(prefix="kbtui-pool-") as folder,
        Reader(unbundled(path, Path(folder))) as reader,
    ):
        yield reader


def unbundled(bundle: Path, folder: Path) -> Workspace:
    """A workspace in that folder with all that a bundle holds. Raises CalledProcessError where it is none."""
    workspace = create_workspace(folder)
    fetch = ("fetch", "-q", str(bundle.resolve()), "+refs/*:refs/*")
    subprocess.run(["git", f"--git-dir={workspace.git_dir}", *fetch], check=True)
    reindex(workspace)
    return workspace


def make_pool(reader: Reader, run: str, driver: str, versions: tuple[tuple[str, str], ...]) -> Pool:
    """The pool of one run; its problem is read from the samples, under the name the run gave it."""

    def artifact_of(sha256: str) -> bytes | None:
        if not (reader.workspace.artifacts / sha256).exists():
            return None
        return read_artifact(reader.workspace.artifacts, sha256)

    envelopes = reader.envelopes(run)
    started = envelopes[0].event
    assert isinstance(started, RunStarted)
    there = Path(started.problem_path).exists()
    problem = load_problem(started.problem_path if there else started.problem)
    return pool_of_run(envelopes, problem, reader.source, artifact_of, driver, versions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, metavar="FROM")
    parser.add_argument("out", type=Path)
    parser.add_argument("--run", help="default: the latest")
    parser.add_argument("--driver", default="unknown")
    parser.add_argument("--version", action="append", default=[], metavar="NAME=VERSION")
    args = parser.parse_args()
    versions = tuple((name, version) for name, _, version in (v.partition("=") for v in args.version))
    with reader_of(args.source) as reader:
        pool = make_pool(reader, args.run or reader.runs()[0].run, args.driver, versions)
    write_pool(args.out, pool)
    print(f"{args.out}: {len(pool.candidates)} candidates, {args.out.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
