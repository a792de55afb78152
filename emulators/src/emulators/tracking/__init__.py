"""MLflow's own tracking server and model registry for the workspace of emulators.azureml.

The server, with its routes, checks and database, is MLflow's. As in a workspace, each job is also a run, and each model
is also a registered model. The control plane starts the server at the first request, because its import takes seconds.

    database       its file, which stays complete after a kill at any moment
    records        jobs as runs and models as versions, written into MLflow's database
    __main__       the server: one process, one SQLite file, a port that requires a secret
"""
