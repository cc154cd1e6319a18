"""Compiled kernels are kept from process to process."""

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
