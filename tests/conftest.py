from collections.abc import Callable
from types import ModuleType

import pytest


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
