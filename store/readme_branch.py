"""Effects: the branch ``kbtui/readme``, which tells a person with only git how to read this repository."""

from datetime import datetime

from store.ledger import read_commit, write_commit
from store.objects import ObjectStore
from store.refs import RefMovedError, move_ref, read_ref

REF = "refs/heads/kbtui/readme"

TEXT = """\
# Kernels found by kbtui

Every candidate kernel is a commit that holds `kernel.py`; its parent is the candidate it was made from.
Every run is a branch, `runs/NAME`: one commit for each thing that happened, the numbers as JSON in its message,
and in its tree the best verified kernel so far. Second parents lead to the candidates.

With X for a run's name, as `git branch` lists them:

    git branch --list 'runs/*'                            the runs
    git log --first-parent --oneline runs/X               the story, newest first
    git log --first-parent --oneline -p runs/X -- kernel.py
                                                          the improvements alone, as diffs
    git show runs/X:kernel.py                             the best kernel so far
    git worktree add --detach DIR runs/X                  the same, as a file on disk
    git blame runs/X -- kernel.py                         which candidate brought each line
    git show 'runs/X^{/^c0031 }'                          one candidate: what made it, and its change
    git diff 'runs/X^{/^c0001 }' 'runs/X^{/^c0031 }'      two candidates side by side
    git log --oneline 'runs/X^{/^c0031 }'                 a candidate's line of descent
    git log --graph --oneline runs/X                      everything, with the candidates' tree
    git log --first-parent --grep 'c0031 ' runs/X         what became of a candidate, with all its numbers
    git log --format='%h %(trailers:key=Operator,valueonly,separator=%x2C) %s' runs/X
                                                          what made each candidate
    git push REMOTE runs/X                                take a run elsewhere, candidates included

Do not commit on these branches: kbtui refuses to go on with a run in which it finds a commit that is not its own.
"""


def write_readme_branch(objects: ObjectStore, now: datetime) -> None:
    """Bring the branch up to date where it is missing or kbtui's text has changed; a person's commit there stays."""
    tip = read_ref(objects.git_dir, REF)
    blob = objects.write(b"blob", TEXT.encode())
    tree = objects.write(b"tree", b"100644 README.md\0" + bytes.fromhex(blob))
    if tip is not None and read_commit(objects, tip).tree == tree:
        return
    parents = (tip,) if tip else ()
    commit = write_commit(objects, tree, parents, "Say how to read this repository\n", int(now.timestamp()))
    objects.sync()
    try:
        move_ref(objects.git_dir, REF, commit, tip)
    except RefMovedError:
        return  # another writer was first; it wrote the same
