import warnings
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from spgcl.errors import Note


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
def notes() -> Iterator[list[str]]:
    """Notes that the library has issued so far, by a list that grows."""
    texts: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        warnings.showwarning = lambda message, *_: texts.append(str(message))
        yield texts
