"""Arrays of NumPy as Arrow's and back, and that pandas is left alone on the way."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from spgcl.io.arrow import (
    from_arrow,
    numbers_from_arrow,
    numbers_to_arrow,
    text_from_arrow,
    text_to_arrow,
    truths_from_arrow,
)

NUMBERS = [
    np.array([3, -1, 2**62], dtype=np.int64),
    np.array([0.5, -np.inf, np.nan], dtype=np.float32),
    np.arange(12, dtype=np.float64).reshape(3, 4)[:, 1],
    np.empty(0, dtype=np.int32),
]


@pytest.mark.parametrize("values", NUMBERS, ids=lambda values: f"{values.dtype} {len(values)}")
def test_numbers_there_and_back(values):
    arrow = numbers_to_arrow(values)
    arrow.validate(full=True)
    assert arrow.equals(pa.array(values)) or np.isnan(values).any()
    back = numbers_from_arrow(arrow)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


def test_chunks_are_joined_and_slices_keep_their_place():
    whole = numbers_to_arrow(np.arange(10))
    chunks = pa.chunked_array([whole.slice(2, 3), whole.slice(0, 0), whole.slice(7)])
    assert numbers_from_arrow(chunks).tolist() == [2, 3, 4, 7, 8, 9]
    assert numbers_from_arrow(pa.chunked_array([], type=pa.float32())).dtype == np.float32


WORDS = [["a", "", "naïve", "節点", "a\nb\0"], [], ["x" * 5000, "y"], ["", ""]]


@pytest.mark.parametrize("words", WORDS, ids=len)
def test_text_is_what_arrow_makes_of_it(words):
    arrow = text_to_arrow(np.array(words, dtype=object))
    arrow.validate(full=True)
    assert arrow.type == pa.string()
    assert arrow.equals(pa.array(words, type=pa.string()))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("words", WORDS, ids=len)
def test_text_comes_back_as_it_was(words, kind):
    back = text_from_arrow(pa.array(words, type=kind))
    assert back.dtype == object
    assert back.tolist() == words


def test_text_of_chunks_and_slices():
    whole = pa.array(["one", "zwei", "três", "四"])
    chunks = pa.chunked_array([whole.slice(1, 2), whole.slice(0, 0), whole.slice(3)])
    assert text_from_arrow(chunks).tolist() == ["zwei", "três", "四"]


def test_truths_of_chunks():
    chunks = pa.chunked_array([[True, False], [], [True]], type=pa.bool_())
    back = truths_from_arrow(chunks)
    assert back.dtype == np.bool_
    assert back.tolist() == [True, False, True]


@pytest.mark.parametrize("values", [["a", "b"], [True, False], [1, 2], [0.5, 1.5]], ids=str)
def test_any_column_comes_back_as_its_kind(values):
    back = from_arrow(pa.chunked_array([values]))
    assert back.tolist() == values
    assert back.dtype == (object if isinstance(values[0], str) else np.array(values).dtype)


FRESH = """
import sys
from spgcl.cli import run
for words in ARGUMENTS:
    assert run(words) == 0, words
    assert "pandas" not in sys.modules, words
import pandas
assert pandas.__file__.startswith(sys.argv[1]), "there was none to be imported"
"""
SHORT = ["--steps", "2", "--set", "hidden=8"]


def assert_pandas_is_left_alone(folder, *arguments):
    """Run commands in one process that has a pandas to import, and ask after each whether it did."""
    package = folder / "installed" / "pandas"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "99.0.0"\n', encoding="utf-8")
    installed = str(package.parent)
    done = subprocess.run(
        [sys.executable, "-c", FRESH.replace("ARGUMENTS", repr(list(arguments))), installed],
        env={**os.environ, "PYTHONPATH": installed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_fit_and_eval_do_not_import_pandas_where_it_is_installed(tmp_path):
    out = str(tmp_path / "run")
    assert_pandas_is_left_alone(tmp_path, ["fit", "csbm-homophilic", "--out", out, *SHORT], ["eval", out])


@pytest.mark.parametrize("named", ["{}", "node-{}"], ids=["numbers", "text"])
def test_text_tables_are_read_without_pandas(tmp_path, named):
    ids = [named.format(number) for number in range(30)]
    tables = {
        "edges.csv": ["source,target", *(f"{a},{b}" for a, b in pairwise(ids))],
        "features.csv": ["node,x,y", *(f"{node},{len(node)}.5,{place}" for place, node in enumerate(ids))],
        "labels.csv": ["node,label", *(f"{node},{'ab'[place % 2]}" for place, node in enumerate(ids))],
    }
    for name, lines in tables.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    edges, features, labels = (str(tmp_path / name) for name in tables)
    out = str(tmp_path / "run")
    assert_pandas_is_left_alone(
        tmp_path,
        ["fit", edges, "--features", features, "--out", out, *SHORT],
        ["eval", out, "--labels", labels],
    )
