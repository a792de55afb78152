"""Tell red points from blue ones: a folder of code of one's own, as small as it gets.

python train.py --data ../points-data --lr 0.1 --metrics metrics
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas
from sklearn.linear_model import SGDClassifier

EPOCHS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder with points.csv: x, y, color")
    parser.add_argument("--lr", type=float, default=0.1, help="step of the gradient descent")
    parser.add_argument("--metrics", type=Path, default=Path("outputs"), help="where metrics.jsonl goes")
    options = parser.parse_args()

    points = pandas.read_csv(options.data / "points.csv")
    test = points.sample(frac=0.25, random_state=0)
    train = points.drop(test.index)
    classifier = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=options.lr, random_state=0)

    options.metrics.mkdir(parents=True, exist_ok=True)
    with (options.metrics / "metrics.jsonl").open("w") as file:
        for epoch in range(EPOCHS):
            classifier.partial_fit(train[["x", "y"]], train["color"], classes=["blue", "red"])
            accuracy = classifier.score(test[["x", "y"]], test["color"])
            file.write(json.dumps({"step": epoch, "test_accuracy": accuracy}) + "\n")
            print(f"epoch={epoch} test_accuracy={accuracy:.3f}")

    weights = {"weights": classifier.coef_[0].tolist(), "bias": float(classifier.intercept_[0])}
    Path("outputs").mkdir(exist_ok=True)
    Path("outputs", "model.json").write_text(json.dumps(weights))


if __name__ == "__main__":
    main()
