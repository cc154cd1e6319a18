"""The examples in docstrings."""

import doctest
import importlib
from pathlib import Path

import pytest

import spgcl

SOURCE = Path(spgcl.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_give_what_they_show(name):
    found = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert found.attempted and not found.failed


def test_there_are_examples():
    assert len(WITH_EXAMPLES) >= 3
