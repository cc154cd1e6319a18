"""The graph that stands for ogbn-papers100M has the size asked for and the degrees of a power law."""

import pytest
import torch
from graphs import CPU
from store_cuda import power_law


@pytest.mark.parametrize(("num_nodes", "num_entries"), [(1000, 15_000), (1234, 98_765), (50_000, 727_391)])
def test_a_graph_has_the_number_of_entries_asked_for(num_nodes, num_entries):
    matrix = power_law(num_nodes, num_entries, CPU)
    degrees = matrix.rows.diff()
    assert len(matrix.columns) == num_entries == int(matrix.rows[-1]) and int(degrees.min()) >= 1
    assert torch.equal(matrix.columns[matrix.rows[:-1].long()].long(), torch.arange(num_nodes))
    sums = torch.zeros(num_nodes).index_add_(
        0, torch.arange(num_nodes).repeat_interleave(degrees), matrix.values.float()
    )
    assert float((sums - 1).abs().max()) < 1e-2
    # P(degree > d) ~ d^-2: the largest of many nodes is far above the mean.
    assert float(degrees.max()) > 5 * float(degrees.float().mean())
