"""Folders that are sent for a job: where each file goes."""

import azure.functions as func

from functions import access
from functions.http import answer, handled
from functions.on_demand import on_demand
from shared.bootstrap import system as the_system

with on_demand():
    from shared.api import requests
    from shared.jobs import uploads
    from shared.jobs.readers.place_text import place_text
    from shared.kernel import parsing

blueprint = func.Blueprint()


@blueprint.route("uploads", methods=["POST"])
@handled
def begin_upload(req: func.HttpRequest) -> func.HttpResponse:
    """Which files of a folder are missing, each with the address that takes it. None: the folder can be used."""
    access.admit_code(req)
    announced = requests.files(parsing.read_body(req.get_body(), requests.FolderRequest))
    system = the_system()
    upload = uploads.begin(system, system.limits, system.routes, announced)
    files = [{"name": name, "url": url} for name, url in upload.files]
    told = {
        "path": place_text(upload.path),
        "digest": upload.digest,
        "seconds": uploads.ADDRESS_SECONDS,
        "files": files,
    }
    return answer(told)
