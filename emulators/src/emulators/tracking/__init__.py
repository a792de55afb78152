"""MLflow's own tracking server and model registry, as the workspace of emulators.azureml has them.

The server is MLflow's: its routes, its checks, its database. What is added is what a workspace adds: each job is a run,
and each model a registered one. The control plane starts it at the first request, since its import alone takes seconds.

    database       its file, which a kill at any moment leaves whole
    records        jobs as runs and models as versions, written into MLflow's database
    __main__       the server: one process, one SQLite file, a port that asks for a secret
"""
