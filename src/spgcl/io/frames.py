"""Tables in memory, of any library that hands out Arrow data: pandas, polars, PyArrow, DuckDB and others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from spgcl.errors import InputError
from spgcl.io.objects import comes_from
from spgcl.io.tables import Table, decoded


def table_in_memory(value: Any) -> Table:
    """The columns of a table in memory; the index of a pandas object, if it is one of ids, comes first."""
    origin = f"the {type(value).__module__.split('.')[0].strip('_')} {type(value).__name__}"
    if comes_from(value, "pandas"):
        value = value.to_frame() if value.ndim == 1 else value
        value = value if comes_from(value.index, "pandas", "RangeIndex") else value.reset_index()
        value = value.rename(columns=str)
    elif isinstance(value, Mapping):
        value, origin = {"node": list(value), "value": list(value.values())}, "the dict"
    try:
        table = pa.table(value)
        columns = [decoded(column) for column in table.columns]
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"{origin} cannot be read as a table ({reason}); give columns of one type") from None
    if not table.num_rows or not columns:
        raise InputError(f"{origin} holds no rows")
    return Table(Path(origin), tuple(table.column_names), columns, True, (), lambda index: index)
