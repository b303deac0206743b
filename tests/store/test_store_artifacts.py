import hashlib
import os

import pytest

from kbtui.domain.candidate import Attachment
from kbtui.errors import UsageError
from store.artifacts import read_artifact, store_artifact


@pytest.fixture
def folder(workspace):
    return workspace.artifacts


def test_file_is_named_by_its_content(folder):
    ref = store_artifact(folder, Attachment("prompt.txt", b"hello"))
    assert ref.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert read_artifact(folder, ref.sha256) == b"hello"
    assert store_artifact(folder, Attachment("other name", b"hello")).sha256 == ref.sha256
    assert os.listdir(folder) == [ref.sha256]


def test_damaged_file_is_not_passed_on(folder):
    ref = store_artifact(folder, Attachment("prompt.txt", b"hello"))
    (folder / ref.sha256).write_bytes(b"hell")
    with pytest.raises(UsageError, match="is damaged; copy it from"):
        read_artifact(folder, ref.sha256)


def test_write_that_fails_leaves_no_file(folder, monkeypatch):
    def full(_source, _target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        store_artifact(folder, Attachment("prompt.txt", b"hello"))
    assert os.listdir(folder) == []
