"""Effects: files named by the SHA-256 of their content, for what belongs to an event but not in git."""

import hashlib
import os
import tempfile
from pathlib import Path

from kbtui.domain.candidate import ArtifactRef, Attachment
from kbtui.errors import UsageError

#: Begins the name of a file while it is written.
PART = ".part-"


def store_artifact(folder: Path, attachment: Attachment) -> ArtifactRef:
    """Write the content under its hash, whole or not at all; once only for one content."""
    digest = hashlib.sha256(attachment.content).hexdigest()
    target = folder / digest
    if not target.exists():
        _write_whole(target, attachment.content)
    return ArtifactRef(attachment.name, digest)


def read_artifact(folder: Path, sha256: str) -> bytes:
    """Raises UsageError where the file is not there, or is not what its name says."""
    try:
        content = (folder / sha256).read_bytes()
    except FileNotFoundError:
        raise UsageError(f"artifact {sha256[:12]} is not in {folder}", "copy it from the machine of the run") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UsageError(f"artifact {sha256[:12]} in {folder} is damaged", "copy it from the machine of the run")
    return content


def _write_whole(target: Path, content: bytes) -> None:
    fd, name = tempfile.mkstemp(prefix=PART, dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
