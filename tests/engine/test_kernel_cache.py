"""Compiled kernels are kept from process to process."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spgcl.engine.kernels.compiled import compiled_once


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "spgcl" / "kernels"


def compiler(calls: list[str], source: str = "source") -> Callable[[], bytes]:
    def compile_source() -> bytes:
        calls.append(source)
        return f"binary of {source}".encode()

    return compile_source


def test_a_source_is_compiled_once_for_a_target(folder: Path) -> None:
    calls: list[str] = []
    for source, target in [("a", "sm_90"), ("a", "sm_90"), ("a", "sm_80"), ("b", "sm_90"), ("b", "sm_90")]:
        binary = compiled_once(source, target, compiler(calls, source))
        assert binary == f"binary of {source}".encode()

    assert calls == ["a", "a", "b"]
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b"short", bytes(64)])
def test_a_damaged_file_is_compiled_again(folder: Path, damage: bytes) -> None:
    calls: list[str] = []
    compiled_once("a", "sm_90", compiler(calls))
    (stored,) = folder.iterdir()
    stored.write_bytes(damage)

    assert compiled_once("a", "sm_90", compiler(calls)) == b"binary of source"
    assert compiled_once("a", "sm_90", compiler(calls)) == b"binary of source"
    assert len(calls) == 2


def test_without_a_writable_folder_every_process_compiles(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file where the folder should be")
    calls: list[str] = []

    for _ in range(2):
        assert compiled_once("a", "sm_90", compiler(calls)) == b"binary of source"
    assert len(calls) == 2
    assert folder.is_file()


def stored_binary(folder: Path) -> Path:
    """A cached binary, which is loaded as long as nobody else can have changed it."""
    calls: list[str] = []
    compiled_once("a", "sm_90", compiler(calls))
    compiled_once("a", "sm_90", compiler(calls))
    assert len(calls) == 1
    (stored,) = folder.iterdir()
    return stored


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no such permissions")
@pytest.mark.parametrize(
    "change", ["folder of all", "folder of the group", "file of all", "link", "linked folder"]
)
def test_item_8_binaries_that_others_could_have_written_are_not_loaded(folder: Path, change: str) -> None:
    stored = stored_binary(folder)
    if change.startswith("folder"):
        folder.chmod(0o777 if change.endswith("all") else 0o770)
    elif change.startswith("file"):
        stored.chmod(0o666)
    elif change == "link":
        stored.rename(folder / "elsewhere")
        stored.symlink_to(folder / "elsewhere")
    else:
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to(folder.with_name("elsewhere"))
    calls: list[str] = []
    assert compiled_once("a", "sm_90", compiler(calls)) == b"binary of source" and len(calls) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("whose", ["folder", "file"])
def test_item_8_binaries_of_another_user_are_not_loaded(folder: Path, whose: str) -> None:
    stored = stored_binary(folder)
    os.chown(folder if whose == "folder" else stored, 54321, 54321)
    calls: list[str] = []
    assert compiled_once("a", "sm_90", compiler(calls)) == b"binary of source" and len(calls) == 1


def test_item_8_a_binary_under_the_name_of_another_is_not_loaded(folder: Path) -> None:
    first = stored_binary(folder)
    calls: list[str] = []
    compiled_once("b", "sm_90", compiler(calls, "b"))
    (second,) = [path for path in folder.iterdir() if path != first]
    second.write_bytes(first.read_bytes())
    assert compiled_once("b", "sm_90", compiler(calls, "b")) == b"binary of b" and len(calls) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no such permissions")
def test_item_8_the_folder_and_its_files_are_the_users_alone(folder: Path) -> None:
    stored = stored_binary(folder)
    assert folder.stat().st_mode & 0o777 == 0o700 and stored.stat().st_mode & 0o777 == 0o600
