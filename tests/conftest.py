import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="session")
def script() -> Callable[[str], ModuleType]:
    """A module of benchmarks/, which is no package, by its name."""

    def load(name: str) -> ModuleType:
        sys.path.insert(0, str(BENCHMARKS))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(str(BENCHMARKS))

    return load


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
