"""A mark for tests of rows that torch packs."""

import pytest
import torch

from spgcl.engine.fixed_rows import can_pack

needs_packing = pytest.mark.skipif(not can_pack(torch.zeros(1)), reason="torch cannot pack rows here")
