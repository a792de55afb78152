"""Log as a published script does: autolog, metrics by step, a file, a registered model. Nothing is set."""

import mlflow
from sklearn.linear_model import Ridge

mlflow.sklearn.autolog()
with mlflow.start_run() as run:
    Ridge(alpha=0.5).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0])
    for step in range(3):
        mlflow.log_metric("loss", 1.0 / 2**step, step=step)
    mlflow.log_text("hello", "notes/note.txt")
    mlflow.register_model(f"runs:/{run.info.run_id}/model", "corpus-doubles")
    print("LOGGED TO", run.info.run_id)
