"""A mark for tests of rows that torch lays out beforehand."""

import pytest
import torch

from spgcl.engine.fixed_rows import can_pack

needs_packing = pytest.mark.skipif(
    not can_pack(torch.zeros(1)), reason="torch has no library here that lays out rows"
)
