"""The theorems of the paper as numbers on a graph, one module per theorem."""
