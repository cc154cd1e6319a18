"""Which methods a benchmark trains on which graphs, as its command line asks for them."""

from collections.abc import Iterable, Sequence

Pair = tuple[str, str]
PAIRS_HELP = "GRAPH for every method that is asked for, or METHOD:GRAPH for one"


def asked_pairs(words: Iterable[str], methods: Sequence[str]) -> list[Pair]:
    """Method and graph of every word; a word that names no method stands for all of them."""
    pairs = []
    for word in words:
        method, _, graph = word.rpartition(":")
        pairs += [(name, graph) for name in ([method] if method else methods)]
    return pairs
