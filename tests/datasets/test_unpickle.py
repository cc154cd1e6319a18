import collections
import os
import pickle
import subprocess

import numpy as np
import pytest
from scipy import sparse

from spgcl.datasets.entries import entries
from spgcl.datasets.unpickle import load_pickle, load_pickled_array
from spgcl.errors import InputError


class _Planted:
    """Pickles as a call of `function`, and a state for its result if there is one."""

    def __init__(self, function, *arguments, state=None):
        self.call = (function, arguments) if state is None else (function, arguments, state)

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
        "matrix": sparse.csr_matrix(np.eye(3)),
        "neighbours": neighbours,
        "plain": ([1, "two"], {3.0: None}, (True, b"bytes")),
    }
    read = load_pickle(_write(tmp_path / "value.pickle", value, protocol))
    np.testing.assert_array_equal(read["dense"], value["dense"])
    assert read["number"] == 2.5 and read["plain"] == value["plain"]
    assert np.array_equal(read["matrix"].toarray(), np.eye(3))
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


_RECONSTRUCT = np.empty(0).__reduce__()[0]
_BEGUN = (np.ndarray, (0,), b"b")


def _array(shape, dtype, data):
    return _Planted(_RECONSTRUCT, *_BEGUN, state=(1, shape, dtype, False, data))


def _dtype(text, *state):
    return _Planted(np.dtype, text, False, True, state=(3, "|", *state))


_OBJECT = np.dtype("O")


@pytest.mark.parametrize(
    "value",
    [
        # An object in a field of bytes that claim to hold none: SciPy followed the pointer in it.
        _array((1,), _dtype("V8", None, ("a",), {"a": (_OBJECT, 0)}, 8, 1, 0), b"A" * 8),
        _array((1,), _dtype("f8", None, ("a",), {"a": (_OBJECT, 0)}, 8, 1, 0), b"A" * 8),
        _array((1,), _OBJECT, b"A" * 8),
        _array((3,), np.dtype("f8"), b"A" * 8),
        _array((-1,), np.dtype("f8"), b""),
        _array((2**62, 4), np.dtype("f8"), b""),
        _array((True,), np.dtype("f8"), b"A" * 8),
        _array((1,), "f8", b"A" * 8),
        _Planted(np.ndarray, (2**40,)),
        _Planted(np.dtype, {"names": ["a"], "formats": ["O"]}),
        _Planted(np.dtype, "O", False, True, state=(None, {"__class__": 1})),
        _Planted(np.float64(0).__reduce__()[0], _OBJECT, b"A" * 8),
        _Planted(collections.defaultdict, int),
        _Planted(list, "text"),
        {(1, 2): 3},
    ],
)
def test_item_5_arrays_are_only_built_from_checked_parts(tmp_path, value):
    path = _write(tmp_path / "crafted.pickle", value, protocol=3)
    with pytest.raises(InputError, match=r"crafted\.pickle: "):
        load_pickle(path)


@pytest.mark.parametrize(
    ("indices", "rows"),
    [([0, 7], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 9, 2]), ([0, 1], [0, 2**40, 2])],
)
def test_item_5_a_matrix_that_points_outside_itself_is_refused(tmp_path, indices, rows):
    matrix = sparse.csr_matrix(np.eye(2))
    matrix.indices, matrix.indptr = np.array(indices), np.array(rows)
    with pytest.raises(InputError, match=r"crafted\.pickle: "):
        load_pickle(_write(tmp_path / "crafted.pickle", matrix, protocol=3))


_CSR = b"cscipy.sparse._csr\ncsr_matrix\n"


@pytest.mark.parametrize(
    "opcodes",
    [
        # BUILD with a state of two parts sets attributes, here `csr_matrix.__init__`.
        _CSR + b"N}U\x08__init__c__builtin__\nlist\ns\x86b.",
        b"cnumpy\ndtype\nN}U\x0c__defaults__)s\x86b.",
        _CSR + b")\x81N}U\x04datac__builtin__\nlist\ns\x86b.",
        # Claims of memory: long bytes, a far index of the memo.
        b"\x8e" + (2**40).to_bytes(8, "little") + b"x.",
        b"B\xff\xff\xff\x7fx.",
        b"]r\xff\xff\xff\x7f0.",
        # A dictionary's key that overflows the stack of the process when it is hashed.
        b"})" + 200_000 * b"\x85" + b"Ns.",
        b"}]Ns.",
        b"]}a(0u.",
        b"h\x05.",
        b"0.",
        b"(lp0\n.",
    ],
)
def test_item_5_opcodes_that_set_attributes_or_exhaust_memory_are_refused(tmp_path, opcodes):
    path = tmp_path / "crafted.pickle"
    path.write_bytes(b"\x80\x02" + opcodes)
    with pytest.raises(InputError, match=r"crafted\.pickle: "):
        load_pickle(path)


def test_item_5_arrays_of_the_same_bytes_do_not_fill_memory(tmp_path):
    shared = b"a" * 4096
    path = _write(tmp_path / "crafted.pickle", [_array((4096,), np.dtype("u1"), shared)] * 1, protocol=3)
    assert load_pickle(path)[0].tobytes() == shared
    many = [_array((4096,), np.dtype("u1"), shared) for _ in range(400)]
    with pytest.raises(InputError, match="arrays of this size"):
        load_pickle(_write(path, many, protocol=3))


def test_item_5_every_pickle_but_one_has_a_sha256():
    # Of genius only git's id is published, and its file is opened by the interpreter alone.
    roles = {"planetoid": {"x", "y", "allx", "ally", "tx", "ty", "graph"}}
    weak = [
        (name, role)
        for name, entry in entries().items()
        for role, file in entry.files.items()
        if role in roles.get(entry.reader, {"splits"}) and any(form.sha256 is None for form in file.forms)
    ]
    assert weak == [("genius", "splits")]
