"""The Azure Functions app: registers the blueprints, nothing else."""

import azure.functions as func

from functions import clusters, drops, jobs, status

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
for family in (drops, jobs, clusters, status):
    app.register_functions(family.blueprint)
