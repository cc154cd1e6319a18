"""NumPy arrays to Arrow and back, without importing pandas."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from spgcl.io.arrow import from_arrow, to_arrow

NUMBERS = [
    np.array([3, -1, 2**62], dtype=np.int64),
    np.array([0.5, -np.inf, np.nan], dtype=np.float32),
    np.arange(12, dtype=np.float64).reshape(3, 4)[:, 1],
    np.empty(0, dtype=np.int32),
]


@pytest.mark.parametrize("values", NUMBERS, ids=lambda values: f"{values.dtype} {len(values)}")
def test_numbers_there_and_back(values):
    arrow = to_arrow(values)
    arrow.validate(full=True)
    assert arrow.equals(pa.array(values)) or np.isnan(values).any()
    back = from_arrow(arrow)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


def test_chunks_are_joined_and_slices_keep_their_offset():
    whole = to_arrow(np.arange(10))
    chunks = pa.chunked_array([whole.slice(2, 3), whole.slice(0, 0), whole.slice(7)])
    assert from_arrow(chunks).tolist() == [2, 3, 4, 7, 8, 9]
    assert from_arrow(pa.chunked_array([], type=pa.float32())).dtype == np.float32


WORDS = [["a", "", "naïve", "節点", "a\nb\0"], [], ["x" * 5000, "y"], ["", ""]]


@pytest.mark.parametrize("words", WORDS, ids=len)
def test_text_is_what_arrow_makes_of_it(words):
    arrow = to_arrow(np.array(words, dtype=object))
    arrow.validate(full=True)
    assert arrow.type == pa.string()
    assert arrow.equals(pa.array(words, type=pa.string()))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("words", WORDS, ids=len)
def test_text_comes_back_as_it_was(words, kind):
    back = from_arrow(pa.array(words, type=kind))
    assert back.dtype == object
    assert back.tolist() == words


def test_text_of_chunks_and_slices():
    whole = pa.array(["one", "zwei", "três", "四"])
    chunks = pa.chunked_array([whole.slice(1, 2), whole.slice(0, 0), whole.slice(3)])
    assert from_arrow(chunks).tolist() == ["zwei", "três", "四"]


@pytest.mark.parametrize("values", [["a", "b"], [True, False, True], [1, 2], [0.5, 1.5]], ids=str)
def test_any_column_comes_back_as_its_kind(values):
    back = from_arrow(pa.chunked_array([values[:1], pa.array([], pa.array(values).type), values[1:]]))
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
SHORT = ["--method", "spgcl", "--steps", "2", "--set", "hidden=8"]


def assert_pandas_is_not_imported(folder, *arguments):
    """Run commands in one process in which pandas can be imported, and check after each that it was not."""
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
    assert_pandas_is_not_imported(tmp_path, ["fit", "csbm-homophilic", "--out", out, *SHORT], ["eval", out])


@pytest.mark.parametrize("named", ["{}", "node-{}"], ids=["numbers", "text"])
def test_text_tables_are_read_without_pandas(tmp_path, named):
    ids = [named.format(number) for number in range(30)]
    tables = {
        "edges.csv": ["source,target", *(f"{a},{b}" for a, b in pairwise(ids))],
        "features.csv": ["node,x,y", *(f"{node},{len(node)}.5,{index}" for index, node in enumerate(ids))],
        "labels.csv": ["node,label", *(f"{node},{'ab'[index % 2]}" for index, node in enumerate(ids))],
    }
    for name, lines in tables.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    edges, features, labels = (str(tmp_path / name) for name in tables)
    out = str(tmp_path / "run")
    assert_pandas_is_not_imported(
        tmp_path,
        ["fit", edges, "--features", features, "--out", out, *SHORT],
        ["eval", out, "--labels", labels],
    )
