"""Claims of the paper, whether they hold here, and the evidence in numbers."""

from dataclasses import dataclass

from spgcl.experiments import rank_claims, training_claims
from spgcl.experiments.paper import claimed
from spgcl.experiments.verdicts import Check, Found, Verdict


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and what the results here say of it."""

    text: str
    verdict: Verdict
    evidence: str = ""


def claims(found: Found) -> list[Claim]:
    """Every claim that the results can be asked about."""
    return [Claim(text, *CHECKS[name](found)) for name, text in claimed().items()]


# By the name that the claim has in paper.toml.
CHECKS: dict[str, Check] = {
    "heterophilic": rank_claims.first_on_heterophilic,
    "homophilic": rank_claims.first_on_homophilic,
    "training": rank_claims.training_helps,
    "memory": rank_claims.memory,
    "start": training_claims.more_homophilic_at_start,
    "end": training_claims.training_raises_homophily,
    "distance": training_claims.nodes_gather,
    "cover": training_claims.every_node_is_chosen,
    "batch_norm": training_claims.batch_norm_scores,
    "weights": training_claims.batch_norm_weights,
    "l2": training_claims.spread_of("table7"),
    "positives": training_claims.spread_of("fig-topk"),
    "hops": training_claims.spread_of("fig-thop"),
    "encoders": rank_claims.every_encoder_gains,
    "degree": rank_claims.degree_helps,
}
