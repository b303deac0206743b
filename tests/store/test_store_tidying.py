"""What a killed writer left half done goes; what others may still be writing stays."""

import os

import pytest

from store.tidying import CACHE_QUIET_S, QUIET_S, bound_cache, sweep
from store.workspace import create_workspace

NOW_S = 2_000_000_000.0


def leave(path, age_s=0.0, size=10):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (NOW_S - age_s, NOW_S - age_s))
    return path


def test_half_written_files_of_ours_go_at_once(workspace):
    left = [
        leave(workspace.git_dir / "objects" / "a1" / "tmp_obj_kbtui_x1"),
        leave(workspace.artifacts / ".part-abc"),
        leave(workspace.scratch / "import-abc" / "import.git" / "HEAD"),
    ]
    kept = [leave(workspace.artifacts / ("ab" * 32)), leave(workspace.scratch / "interpreter.log")]
    sweep(workspace, NOW_S)
    assert [path.exists() for path in (*left, *kept)] == [False, False, False, True, True]


@pytest.mark.parametrize("name", ["obj1f_k2", "pack/tmp_pack_1", "pack/tmp_idx_1", "a1/tmp_obj_Xy"])
def test_what_a_git_may_still_be_writing_goes_only_when_it_is_old(workspace, name):
    path = leave(workspace.git_dir / "objects" / name, age_s=QUIET_S / 2)
    sweep(workspace, NOW_S)
    assert path.exists()
    leave(path, age_s=QUIET_S * 2)
    assert sweep(workspace, NOW_S) == 1
    assert not path.exists()


def test_in_a_users_repository_only_what_bears_our_name_goes(tmp_path, git):
    git(tmp_path, "init", "--quiet", "theirs")
    workspace = create_workspace(tmp_path / "ws", repo=tmp_path / "theirs")
    theirs = leave(workspace.git_dir / "objects" / "a1" / "tmp_obj_Xy", age_s=QUIET_S * 9)
    ours = leave(workspace.git_dir / "objects" / "a1" / "tmp_obj_kbtui_x", age_s=QUIET_S * 2)
    of_another_workspace = leave(workspace.git_dir / "objects" / "a1" / "tmp_obj_kbtui_y", age_s=QUIET_S / 2)
    sweep(workspace, NOW_S)
    assert (theirs.exists(), ours.exists(), of_another_workspace.exists()) == (True, False, True)


def kernels(cache, ages_s):
    for number, age_s in enumerate(ages_s):
        leave(cache / f"{number:024d}" / "k.cubin", age_s, size=1000)
        os.utime(cache / f"{number:024d}", (NOW_S - age_s, NOW_S - age_s))
    return cache


def left_in(cache):
    return sorted(int(folder.name) for folder in cache.iterdir() if folder.name.isdecimal())


def test_oldest_compiled_kernels_go_until_the_rest_fits(tmp_path):
    cache = kernels(tmp_path, [9 * CACHE_QUIET_S, 3 * CACHE_QUIET_S, 5 * CACHE_QUIET_S, 2 * CACHE_QUIET_S])
    assert bound_cache(cache, 2500, NOW_S) == 2
    assert left_in(cache) == [1, 3]
    assert bound_cache(cache, 2500, NOW_S) == 0


def test_compiled_kernels_that_may_be_in_use_and_what_they_share_stay(tmp_path):
    cache = kernels(tmp_path, [CACHE_QUIET_S / 2, 9 * CACHE_QUIET_S])
    shared = leave(cache / "launchers" / "x.so", 99 * CACHE_QUIET_S, size=5000)
    assert bound_cache(cache, 0, NOW_S) == 1
    assert left_in(cache) == [0]
    assert shared.exists()


def test_workspace_that_has_compiled_nothing_has_nothing_to_bound(tmp_path):
    assert bound_cache(tmp_path / "compiled") == 0
