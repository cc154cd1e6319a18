import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from spgcl.errors import Note


def pytest_configure(config: pytest.Config) -> None:
    # Importing PyTorch Geometric runs torch.jit.script once, which torch calls deprecated.
    config.addinivalue_line("filterwarnings", "ignore:`torch.jit.script:DeprecationWarning")


@pytest.fixture(scope="session")
def benchmark_folder() -> Path:
    """The verified benchmark files; tests that need them are skipped where they are not."""
    chosen = os.environ.get("SPGCL_DATA")
    if not chosen or not (Path(chosen) / "MANIFEST.json").is_file():
        pytest.skip("SPGCL_DATA does not name a folder with the benchmark files")
    return Path(chosen)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], list[str]]:
    """Which kernels of a module run from now on, in order: a list that grows."""

    def watch(module: ModuleType) -> list[str]:
        names: list[str] = []
        launch = module._launch

        def noted(name: str, *arguments: object) -> None:
            names.append(name)
            launch(name, *arguments)

        monkeypatch.setattr(module, "_launch", noted)
        return names

    return watch


@pytest.fixture
def use_threads() -> Iterator[Callable[[int], None]]:
    """`torch.set_num_threads`, undone after the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def notes() -> Iterator[list[str]]:
    """Notes that the library has issued so far, by a list that grows."""
    texts: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        warnings.showwarning = lambda message, *_: texts.append(str(message))
        yield texts
