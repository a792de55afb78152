"""Log as a published script does: metrics by step, parameters, a file, a registered model. Nothing is set."""

import sys

import mlflow

with mlflow.start_run() as run:
    mlflow.log_param("alpha", 0.5)
    for step in range(3):
        mlflow.log_metric("loss", 1.0 / 2**step, step=step)
    mlflow.log_text("flavors: {}\n", "model/MLmodel")
    mlflow.register_model(f"runs:/{run.info.run_id}/model", sys.argv[1])
    print("LOGGED TO", run.info.run_id)
