"""The Azure Functions app: registers the blueprints, nothing else."""

import azure.functions as func

from functions import access, clusters, data, drops, jobs, runs, status

app = func.FunctionApp(http_auth_level=access.level())
for family in (drops, data, jobs, runs, clusters, status):
    app.register_functions(family.blueprint)
