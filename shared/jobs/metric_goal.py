"""Whether a higher or a lower value of a metric is better. Pure.

The route, the sweep, or the trainer (in model.json) can state the direction. Otherwise the words of the metric's name
decide, if one of the two lists below contains one of them: `test_rmse` is minimized, and so is `valLoss`. `blossom`
contains no such word, so its direction is unknown.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Goal(StrEnum):
    """The words of Azure ML's sweep jobs."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


MINIMIZED = frozenset(
    {
        *("loss", "error", "errors", "err", "cost", "regret", "perplexity", "ppl", "bpb", "bpc", "deviance"),
        *("mae", "mse", "rmse", "rmsle", "msle", "mape", "smape", "mase", "wape", "nll", "logloss", "brier", "ece"),
        *("wer", "cer", "ter", "eer", "fid", "kid", "lpips", "fpr", "fnr", "hausdorff"),
        *("seconds", "milliseconds", "ms", "latency", "wait", "waiting"),
    }
)
MAXIMIZED = frozenset(
    {
        *("accuracy", "acc", "auc", "auroc", "auprc", "ap", "map", "mrr", "ndcg", "precision", "prec", "recall"),
        *("f1", "dice", "iou", "miou", "jaccard", "bleu", "rouge", "meteor", "r2", "mcc", "kappa", "psnr", "ssim"),
        *("sensitivity", "specificity", "tpr", "tnr", "reward", "throughput", "pearson", "spearman", "elbo"),
    }
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[^a-z0-9]+")
_PER = re.compile(r"(?<![a-z])per[_ -][a-z]+")  # images_per_second


def words_of(metric: str) -> frozenset[str]:
    """Return the words of a name: val and loss for valLoss; both map50 and map for map50."""
    plain = _PER.sub("", _CAMEL.sub("_", metric).lower())
    words = [word for word in _BETWEEN.split(plain) if word]
    return frozenset({*words, *(word.rstrip("0123456789") for word in words)})


def goal_of(metric: str) -> Goal | None:
    """Return the goal suggested by a metric's name; None without a known word, or with words of both lists."""
    words = words_of(metric)
    goals = [goal for goal, known in ((Goal.MINIMIZE, MINIMIZED), (Goal.MAXIMIZE, MAXIMIZED)) if words & known]
    return goals[0] if len(goals) == 1 else None


def lower_is_better(metric: str) -> bool:
    """Return whether lists and curves show the lowest value as the best: only if the metric's name implies it."""
    return goal_of(metric) is Goal.MINIMIZE
