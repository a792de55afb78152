"""The Azure Functions app: registers the blueprints, nothing else."""

import gc

gc.disable()  # what is imported stays: looking for garbage in it is a tenth of a cold start

import azure.functions as func

from functions import (
    access,
    attribution,
    clusters,
    costs,
    data,
    jobs,
    models,
    monitor,
    notices,
    page,
    queues,
    removals,
    runs,
    schedules,
    status,
    uploads,
)

attribution.prepare_logging()
monitor.prepare()
app = func.FunctionApp(http_auth_level=access.level())
for family in (queues, data, jobs, runs, clusters, notices, schedules, removals, models, status, costs, page, uploads):
    app.register_functions(family.blueprint)
gc.freeze()  # nor is it looked through again
gc.enable()
