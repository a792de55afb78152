"""The Azure Functions app. It only registers the blueprints."""

import gc

gc.disable()  # what is imported stays: looking for garbage in it is a tenth of a cold start

import azure.functions as func

from functions import access, api, attribution, monitor, page, queues, timers

attribution.prepare_logging()
monitor.prepare()
app = func.FunctionApp(http_auth_level=access.level())
for family in (queues, timers, api, page):
    app.register_functions(family.blueprint)
gc.freeze()  # nor is it looked through again
gc.enable()
