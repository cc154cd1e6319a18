import collections
import os
import pickle
import subprocess

import numpy as np
import pytest
from scipy import sparse

from spgcl.datasets.unpickle import load_pickle, load_pickled_array
from spgcl.errors import InputError


class _Planted:
    """Pickles as a call of `function`."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def _write(path, value, protocol=2):
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_matrices_and_containers_come_back(tmp_path, protocol):
    neighbours = collections.defaultdict(list, {0: [1, 2], 1: [0]})
    value = {
        "dense": np.arange(6, dtype=np.float32).reshape(2, 3),
        "number": np.float64(2.5),
        "matrices": [sparse.csr_matrix(np.eye(3)).asformat(layout) for layout in ("csr", "csc", "coo")],
        "neighbours": neighbours,
        "plain": ([1, "two"], {3.0: None}, (True, b"bytes")),
    }
    read = load_pickle(_write(tmp_path / "value.pickle", value, protocol))
    np.testing.assert_array_equal(read["dense"], value["dense"])
    assert read["number"] == 2.5 and read["plain"] == value["plain"]
    assert all(np.array_equal(matrix.toarray(), np.eye(3)) for matrix in read["matrices"])
    assert read["neighbours"] == neighbours and read["neighbours"].default_factory is list


@pytest.mark.parametrize(
    "function, arguments, named",
    [
        (os.system, ("touch {}",), "system"),
        (eval, ("open('{}', 'w')",), "builtins.eval|__builtin__.eval"),
        (subprocess.check_call, (["touch", "{}"],), "subprocess.check_call"),
        (np.save, ("{}", 1), "numpy.save"),
        (np.ndarray.tofile, (np.zeros(1), "{}"), "getattr"),
    ],
)
def test_planted_calls_are_refused_and_do_not_run(tmp_path, function, arguments, named):
    trace = tmp_path / "trace"
    filled = [
        [part.format(trace) for part in argument] if isinstance(argument, list)
        else argument.format(trace) if isinstance(argument, str) else argument
        for argument in arguments
    ]  # fmt: skip
    path = _write(tmp_path / "planted.pickle", {"x": [_Planted(function, *filled)]}, protocol=4)
    with pytest.raises(InputError, match=rf"planted\.pickle: .*({named})"):
        load_pickle(path)
    assert not list(tmp_path.glob("trace*"))


def test_a_call_planted_inside_an_npy_is_refused(tmp_path):
    trace = tmp_path / "trace"
    path = tmp_path / "splits.npy"
    records = np.array([{"train": _Planted(os.system, f"touch {trace}")}, {}], dtype=object)
    np.save(path, records, allow_pickle=True)
    with pytest.raises(InputError, match=r"splits\.npy: .*system"):
        load_pickled_array(path)
    assert not trace.exists()


def test_records_inside_an_npy_come_back(tmp_path):
    path = tmp_path / "splits.npy"
    np.save(path, np.array([{"train": [0, 1]}, {"train": np.array([2])}], dtype=object), allow_pickle=True)
    first, second = load_pickled_array(path)
    assert first == {"train": [0, 1]} and second["train"].tolist() == [2]


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"not a pickle", b"\x80\x02]q\x00("])
def test_broken_pickles_are_one_line(tmp_path, content):
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"broken: .*pickle"):
        load_pickle(path)
    with pytest.raises(InputError, match=r"broken: .*NumPy"):
        load_pickled_array(path)


def test_a_plain_npy_is_not_taken_for_records(tmp_path):
    np.save(tmp_path / "plain.npy", np.arange(3))
    with pytest.raises(InputError, match=r"plain\.npy: .*int64"):
        load_pickled_array(tmp_path / "plain.npy")
