"""How far clusters of the embeddings are the classes."""

import warnings
from typing import Any

import numpy as np

from spgcl.evaluation.checks import checked_classes, checked_embeddings

_STARTS = 3


def cluster(embeddings: Any, labels: Any, *, seed: int = 0) -> dict[str, float]:
    """Agreement of k-means with the classes, in percent: `nmi` and `ari` (adjusted for chance).

    There are as many clusters as classes, rows are divided by their L2 norm, and the best of three seeded
    starts by the k-means objective counts. Nodes without a label are clustered but not compared.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    vectors = checked_embeddings(embeddings)
    values, _ = checked_classes(labels, len(vectors))
    labelled = values >= 0
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    means = KMeans(len(np.unique(values[labelled])), n_init=_STARTS, random_state=seed)
    with warnings.catch_warnings():
        # Collapsed embeddings have fewer distinct rows than classes: the scores say so well enough.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = means.fit_predict(rows)
    return {
        "nmi": 100 * float(normalized_mutual_info_score(values[labelled], found[labelled])),
        "ari": 100 * float(adjusted_rand_score(values[labelled], found[labelled])),
    }
