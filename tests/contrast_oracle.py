"""GRACE's objective as loops, written from the equations of its paper."""

import math


def cosine(one, other):
    inner = sum(a * b for a, b in zip(one, other, strict=True))
    return inner / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def naive_pair(own, others, node, temperature):
    """-l(u_i, v_i) of Eq. 1: the positive, the others of the other view, the others of the own view."""
    positive = math.exp(cosine(own[node], others[node]) / temperature)
    between = sum(
        math.exp(cosine(own[node], others[other]) / temperature) for other in range(len(own)) if other != node
    )
    within = sum(
        math.exp(cosine(own[node], own[other]) / temperature) for other in range(len(own)) if other != node
    )
    return -math.log(positive / (positive + between + within))


def naive_loss(first, second, temperature):
    """-J of Eq. 2."""
    first, second = first.tolist(), second.tolist()
    pairs = [
        naive_pair(first, second, node, temperature) + naive_pair(second, first, node, temperature)
        for node in range(len(first))
    ]
    return sum(pairs) / (2 * len(pairs))
