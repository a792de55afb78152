"""Every operation of the HTTP API: the groups that the features declare, in the order of docs/api.md."""

from __future__ import annotations

from shared.api import app_operations, cluster_operations, drop_operations, run_operations
from shared.features import modules
from shared.models import operations as models
from shared.money import operations as money
from shared.notices import operations as notices
from shared.removals import operations as removals
from shared.schedules import operations as schedules

GROUPS = (
    run_operations.GROUP,
    *(module.GROUP for module in modules("operations")),
    drop_operations.GROUP,
    removals.GROUP,
    models.GROUP,
    app_operations.SUBMITTABLE,
    cluster_operations.GROUP,
    money.GROUP,
    schedules.GROUP,
    notices.GROUP,
    app_operations.APP,
)
OPERATIONS = tuple(operation for group in GROUPS for operation in group.operations)
