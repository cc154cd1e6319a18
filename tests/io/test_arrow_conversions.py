"""Arrays of NumPy as Arrow's and back, and that pandas is left alone on the way."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from spgcl.io.arrow import numbers_from_arrow, numbers_to_arrow, text_to_arrow

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


@pytest.mark.parametrize("words", [["a", "", "naïve", "節点", "a\nb\0"], [], ["x" * 5000, "y"]], ids=len)
def test_text_is_what_arrow_makes_of_it(words):
    arrow = text_to_arrow(np.array(words, dtype=object))
    arrow.validate(full=True)
    assert arrow.type == pa.string()
    assert arrow.equals(pa.array(words, type=pa.string()))


FRESH = """
import sys
from spgcl.cli import run
out = sys.argv[1]
words = {
    "fit": ["csbm-homophilic", "--out", out, "--steps", "2", "--set", "hidden=8"],
    "eval": [out],
}
for command, rest in words.items():
    assert run([command, *rest]) == 0, command
    assert "pandas" not in sys.modules, command
import pandas
assert pandas.__file__.startswith(sys.argv[2]), "there was none to be imported"
"""


def test_fit_and_eval_do_not_import_pandas_where_it_is_installed(tmp_path):
    package = tmp_path / "installed" / "pandas"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "99.0.0"\n', encoding="utf-8")
    folder = str(package.parent)
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(tmp_path / "run"), folder],
        env={**os.environ, "PYTHONPATH": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
