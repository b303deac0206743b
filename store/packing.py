"""Effects: loose objects into packs, in a git process of low priority. Never called while something is timed."""

from store.gitio import run_git
from store.workspace import Workspace

#: Loose objects below this many are not worth a pack.
WORTH_PACKING = 2_000


def loose_objects(workspace: Workspace) -> int:
    """About how many there are: one of the 256 folders counted, as git itself estimates it."""
    sample = workspace.git_dir / "objects" / "17"
    return 256 * sum(1 for _ in sample.iterdir()) if sample.is_dir() else 0


def pack(workspace: Workspace) -> bool:
    """Pack what branches reach, a few packs at most. False where it gains nothing, or the repository is the user's.

    Safe beside a running engine: objects not reachable yet stay loose, and readers find packed ones through git.
    """
    if not workspace.own_repository or loose_objects(workspace) < WORTH_PACKING:
        return False
    run_git("repack", "-d", "-l", "-q", "--geometric=2", git_dir=workspace.git_dir, nice=True)
    return True
