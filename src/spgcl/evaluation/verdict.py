"""What split-half reliability says about a graph, in words."""

import math
from collections.abc import Mapping
from typing import Literal

# Reliabilities up to this, or up to twice their deviation over halves, are taken for chance.
CHANCE = 0.01
# From this weight on, degrees count.
DEGREES_COUNT = 0.1
# From this mean cosine similarity of two nodes on, vectors are nearly all equal.
COLLAPSED = 0.99
NEARBY = ("one hop", "two hops", "neighbours", "their neighbours")

Channels = Mapping[str, Mapping[str, float]]


def verdict(channels: Channels) -> list[str]:
    """Sentences on where the signal is, whether edges help, what counts most, and what to try.

    Args:
        channels: Reliability, deviation and weight per channel, see `spgcl.evaluation.split_half`.
    """
    best = most_reliable(channels)
    own, near = channels["own"]["reliability"], channels[best]["reliability"]
    if by_chance(channels["own"]) and by_chance(channels[best]):
        return [
            "Neither features nor neighbours repeat themselves in two halves of the graph: there is little "
            "to learn from, or the graph is too small to tell.",
            "Try: more feature columns or more edges. Vectors of any method may be noise.",
        ]
    numbers = f"reliability {near:.2f} ({best}), against {own:.2f} of a node's own features"
    weights = _weights(channels)
    said = edges_say(channels)
    if said == "help":
        sentence, advice = "Edges help", "spgcl beside auto; it learns on smoothed features."
    elif said == "unclear":
        sentence = "Whether edges help is too close to tell"
        advice = "auto, which keeps both apart; more feature columns would tell more."
    else:
        amount = "nothing about your features" if said == "nothing" else "less than your features"
        sentence = f"Your edges say {amount}"
        advice = "auto or raw features; methods that mix a node with its neighbours may lose."
    degrees = _degrees(channels) if said == "help" else []
    return [f"{sentence}: {numbers}.", *degrees, weights, f"Try: {advice}"]


def most_reliable(channels: Channels) -> str:
    """The channel of what is near a node that repeats itself best."""
    return max(NEARBY, key=lambda name: channels[name]["reliability"])


def edges_say(channels: Channels) -> Literal["help", "unclear", "less", "nothing"]:
    """Whether what is near a node is more reliable than its own features, and if not, whether it is noise."""
    own, near = channels["own"], channels[most_reliable(channels)]
    behind = own["reliability"] - near["reliability"]
    if behind < 0:
        return "help"
    if behind <= 2 * math.hypot(own["deviation"], near["deviation"]):
        return "unclear"
    return "nothing" if by_chance(channels["neighbours"]) else "less"


def unmeasured(problem: str) -> list[str]:
    """What to do with a graph whose halves cannot be compared, for the reason given."""
    return [
        f"Where the signal is cannot be measured: {problem}.",
        "Auto then counts features, neighbours, region and degrees alike.",
        "Try: spgcl compare, with labels for some nodes.",
    ]


def on_vectors(mean_cosine: float) -> list[str]:
    """A sentence if the mean cosine similarity of two nodes shows that vectors are nearly all equal."""
    if mean_cosine < COLLAPSED:
        return []
    return [
        f"The vectors are nearly all equal (mean cosine similarity {mean_cosine:.3f}): the training may have "
        "collapsed. Try: fewer steps, a lower learning rate, or auto."
    ]


def by_chance(channel: Mapping[str, float]) -> bool:
    """Whether a reliability may be that of noise."""
    return channel["reliability"] <= max(CHANCE, 2 * channel["deviation"])


def _degrees(channels: Channels) -> list[str]:
    if channels["degrees"]["weight"] < DEGREES_COUNT:
        return []
    return ["Structure helps: degrees go with the features around a node."]


def _weights(channels: Channels) -> str:
    heaviest = sorted(channels, key=lambda name: -channels[name]["weight"])[:3]
    named = ", ".join(f"{name} ({channels[name]['weight']:.2f})" for name in heaviest)
    return f"Auto gives most weight to {named}."
