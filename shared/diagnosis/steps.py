"""Find the lines of a log that report progress of the training: a step, an epoch, a progress bar."""

from __future__ import annotations

import re

NUMBER = r"[-+]?(?:nan|inf(?:inity)?|\d+\.?\d*(?:e[-+]?\d+)?)"
UNIT = r"\b(?:epoch|step|iter(?:ation)?|batch|global_step|update|train(?:ing)?)s?\b"
NAMED = (
    r"(?:loss|acc(?:uracy)?|error|err|lr|learning[_ ]rate|ppl|psnr|m?ap|mae|r?mse|logloss|auc|f1|m?iou|dice|[wc]er"
    r"|reward|eta|time)"
)
METRIC = rf"\b(?:\w+[_/-])?{NAMED}\b\W{{0,6}}{NUMBER}\b"
STEP = re.compile(
    r"(?i)\d{1,3}%\|"  # tqdm
    r"|\d(?:it/s|s/it|step/s|s/step)\b|\d[mun]?s/(?:step|batch|epoch)\b"
    r"|\bsec/(?:tick|kimg|step|iter|it|batch|epoch)\b"
    r"|\b\d+/\d+ \[[=>.]"  # Keras
    rf"|{UNIT}[^a-z0-9]{{0,6}}\d+\b.*?{METRIC}|{METRIC}.*?{UNIT}[^a-z0-9]{{0,6}}\d+\b"
    rf"|^.{{0,60}}?{UNIT}[^a-z0-9]{{0,4}}\d+ ?(?:/|of) ?\d+"
    rf"|^\W*(?:\w+: *)?{UNIT}[^a-z0-9]{{0,4}}\d+\W*$"
    rf"|^.{{0,60}}?\[ *\d+(?:/\d+)?\].*{METRIC}"
    rf"|^\W*{METRIC}\W*$"
    r"|^\s*\d+/\d+ +[\d.]+[GM] "  # YOLO
    r"|^\s*\d+: [\d.]+, [\d.]+ avg"  # darknet
    r"|^\s*\d+:\s+learn: [\d.]+"  # CatBoost
    r"|^\|\s+(?:iterations|total_timesteps)\s+\| \d+"  # stable-baselines
    r"|^\s*\d+ +\d+(?: +\d+\.\d\d){3,}$"  # spaCy
    r"|^epoch \d+ (?:done|took|finished|completed)"
)
SENTENCE = re.compile(r"\bI\b(?!/)|\bI'|\?\s*$|\b(?:my|please|thanks|because)\b")
SOURCE = re.compile(
    r'^\s*(?:[│|]\s*)?File "[^"]+", line \d+|^\s*(?:#|//|import |from \w+ import|def |class |parser\.|--\w)'
)
LONGEST = 400


def reports_step(text: str) -> bool:
    """Return whether the line reports a step. A person's sentence, a frame and source code do not count."""
    return bool(STEP.search(text[:LONGEST])) and not SENTENCE.search(text) and not SOURCE.match(text)
