"""The Azure Functions app: registers the blueprints, nothing else."""

import azure.functions as func

from functions import access, clusters, data, drops, jobs, notices, runs, status

app = func.FunctionApp(http_auth_level=access.level())
for family in (drops, data, jobs, runs, clusters, notices, status):
    app.register_functions(family.blueprint)
