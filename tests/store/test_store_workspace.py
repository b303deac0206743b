import pytest

from kbtui.errors import UsageError
from store.filesystems import file_system_of, is_network
from store.workspace import create_workspace, open_workspace, refuse_network

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 filer:/home rw,vers=4.2
31 30 0:41 / /home/ada/scratch rw - xfs /dev/nvme0n1 rw
32 22 0:42 / /mnt/with\\040space rw - fuse.sshfs far: rw
33 22 0:43 / /mnt/twice rw - ext4 /dev/sdb rw
34 22 0:44 / /mnt/twice rw master:3 - lustre mds:/x rw
35 22 0:45 / /mnt/local rw - fuse.gocryptfs /x rw
"""


@pytest.mark.parametrize(
    ("path", "kind", "network"),
    [
        ("/var/tmp/kbtui", "ext4", False),
        ("/home/ada/kbtui", "nfs4", True),
        ("/homework", "ext4", False),
        ("/home/ada/scratch", "xfs", False),
        ("/home/ada/scratch/x", "xfs", False),
        ("/mnt/with space/x", "fuse.sshfs", True),
        ("/mnt/twice", "lustre", True),
        ("/mnt/local/x", "fuse.gocryptfs", False),
    ],
)
def test_file_system_is_that_of_the_innermost_mount(path, kind, network):
    assert file_system_of(path, MOUNTS) == kind
    assert is_network(kind) is network


def test_network_file_system_is_refused_with_the_reason_and_a_way_out(tmp_path):
    mounts = f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:40 / {tmp_path} rw - nfs4 filer:/home rw\n"
    with pytest.raises(
        UsageError, match=r"on nfs4, a network file system.*--workspace /var/tmp/kbtui-.*KBTUI_WORKSPACE"
    ):
        refuse_network(tmp_path / "ws", mounts)


def test_workspace_is_made_once_and_stays_out_of_a_project_around_it(tmp_path, git):
    git(tmp_path, "init", "--quiet", ".")
    workspace = create_workspace(tmp_path / ".kbtui")
    assert create_workspace(tmp_path / ".kbtui") == workspace == open_workspace(tmp_path / ".kbtui")
    assert git(tmp_path, "status", "--porcelain", "--", ".kbtui") == ""
    assert git(workspace.git_dir, "rev-parse", "--is-bare-repository").strip() == "true"


def test_missing_workspace_says_how_to_get_one(tmp_path):
    with pytest.raises(UsageError, match=r"no workspace at .*; start a search there with `kbtui run`"):
        open_workspace(tmp_path / "nothing")


def test_workspace_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot make a workspace at .*; give --workspace DIR"):
        create_workspace(tmp_path / "file" / "ws")
