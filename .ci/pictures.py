"""Copy the pictures that the page's tests made to docs/, with few colours so that they stay small.

.trainyard/venv/bin/python -m pytest tests/page/test_page.py && .trainyard/venv/bin/python .ci/pictures.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
MADE, DOCS = ROOT / ".trainyard" / "page", ROOT / "docs"
WANTED = {"runs-light-1440": "page-runs", "run-light-1440": "page-run", "compare-dark-1440": "page-compare"}
TALLEST = 1000  # pixels; the beginning of a view says enough


def main() -> int:
    for made, wanted in WANTED.items():
        with Image.open(MADE / f"{made}.png") as picture:
            part = picture.convert("RGB").crop((0, 0, picture.width, min(picture.height, TALLEST)))
            part.quantize(160).save(DOCS / f"{wanted}.png", optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
