"""Which file system a path is on, and whether SQLite's locks and shared memory can be trusted there."""

from pathlib import Path

#: Names as in /proc/self/mountinfo; with ``fuse.`` taken off. SQLite: "WAL does not work over a network filesystem".
NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "sshfs",
        "lustre",
        "ceph",
        "ceph-fuse",
        "glusterfs",
        "beegfs",
        "gpfs",
        "afs",
    }
    | {
        "ocfs2",
        "gfs2",
        "s3fs",
        "gcsfuse",
        "rclone",
        "juicefs",
        "goofys",
        "davfs",
        "curlftpfs",
        "pvfs2",
        "coda",
        "panfs",
    }
    | {"weka", "wekafs", "vboxsf"}
)


def file_system_of(path: str, mountinfo: str) -> str:
    """Type of the mount that holds an absolute path: the longest mount point above it, the last mounted of equals."""
    best, kind = "", "unknown"
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        parts = fields.split()
        if len(parts) < 5 or not rest:
            continue
        point = parts[4].encode().decode("unicode_escape")  # spaces stand as \040
        inside = point == "/" or path == point or path.startswith(point + "/")
        if inside and len(point) >= len(best):
            best, kind = point, rest.split()[0]
    return kind


def is_network(kind: str) -> bool:
    return kind.removeprefix("fuse.") in NETWORK


def read_mountinfo() -> str:
    """Effects: reads /proc; empty where there is none."""
    try:
        return Path("/proc/self/mountinfo").read_text()
    except OSError:
        return ""
