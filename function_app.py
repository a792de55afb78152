"""The Azure Functions app: registers the blueprints, nothing else."""

import azure.functions as func

from functions import access, clusters, costs, data, drops, jobs, page, runs, status

app = func.FunctionApp(http_auth_level=access.level())
for family in (drops, data, jobs, runs, clusters, costs, status, page):
    app.register_functions(family.blueprint)
