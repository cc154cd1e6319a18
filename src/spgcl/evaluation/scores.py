"""The result of an evaluation: the mean, the deviation and what it is taken over, and every single score."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

# Metrics and protocols of stored records, and how they are displayed.
METRICS = {
    "accuracy": "accuracy",
    "roc_auc": "ROC-AUC",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro-F1",
}
PROTOCOLS = {"paper": "paper's probe", "tuned": "tuned probe", "predictions": "own predictions"}


@dataclass(frozen=True)
class SplitScore:
    """Score of one classifier, in percent, and what was chosen by its validation score.

    Attributes:
        start: Which random restart of the classifier.
        validation: Score on the validation part, the only one that choices depend on.
        epoch: Epoch whose weights were kept, counted from 1, if epochs were compared.
        strength: L2 strength that was kept, if strengths were compared.
        others: Test scores of the same classifier by other metrics.
    """

    split: int
    start: int
    validation: float
    test: float
    epoch: int | None = None
    strength: float | None = None
    others: dict[str, float] | None = None


@dataclass(frozen=True)
class Scores:
    """Test scores of an evaluation in percent.

    Attributes:
        protocol: How the classifiers were made.
        std: Population standard deviation (ddof = 0), over the means of splits or over restarts.
        std_over: Which of the two, and restarts of what.
        splits: One record per split and restart.
    """

    metric: str
    protocol: str
    mean: float
    std: float
    std_over: Literal["splits", "probe starts", "training starts"]
    splits: tuple[SplitScore, ...]

    @classmethod
    def of(
        cls,
        records: Sequence[SplitScore],
        *,
        metric: str,
        protocol: str,
        starts_of: Literal["probe starts", "training starts"] = "probe starts",
    ) -> "Scores":
        """Summarise records; every split has the same number of restarts."""
        starts = len({record.start for record in records})
        tests = np.array([record.test for record in records]).reshape(-1, starts)
        one_split = len(tests) == 1 and starts > 1
        return cls(
            metric=metric,
            protocol=protocol,
            mean=float(tests.mean()),
            std=float(tests.std() if one_split else tests.mean(axis=1).std()),
            std_over=starts_of if one_split else "splits",
            splits=tuple(records),
        )

    @property
    def others(self) -> dict[str, float]:
        """Mean test scores of the same classifiers by other metrics."""
        known = [score.others for score in self.splits if score.others]
        return {name: float(np.mean([one[name] for one in known])) for name in (known[0] if known else {})}

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON, without the fields that are empty for this protocol."""
        record = {**asdict(self), **({"others": self.others} if self.others else {})}
        record["splits"] = [
            {name: value for name, value in score.items() if value is not None} for score in record["splits"]
        ]
        return record

    def __repr__(self) -> str:
        return f"Scores({self})"

    def __str__(self) -> str:
        count = len({(score.split if self.std_over == "splits" else score.start) for score in self.splits})
        over = self.std_over if count > 1 else self.std_over.removesuffix("s")
        return f"{self.mean:.2f} ± {self.std:.2f} {METRICS[self.metric]} over {count} {over}"
