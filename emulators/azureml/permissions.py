"""What the app's identity may do in the workspace, where the configuration says it by roles.

Whoever shows another token is an administrator here: only the identity that this part itself gives out is checked.
"""

from __future__ import annotations

from emulators.arm.access import Role
from emulators.arm.operations import workspace_action
from emulators.azureml.errors import ArmError
from emulators.azureml.identity import PRINCIPAL


def check(granted: tuple[Role, ...], principal: str, method: str, path: str) -> None:
    """Raise ArmError as Azure does, unless one of the roles allows this request of the app's identity."""
    if principal != PRINCIPAL:
        return
    action, scope = workspace_action(method, path)
    if any(role.allows(action) for role in granted):
        return
    raise ArmError(
        403,
        "AuthorizationFailed",
        f"The client '{principal}' with object id '{principal}' does not have authorization to perform action "
        f"'{action}' over scope '{scope}' or the scope is invalid. If access was recently granted, please refresh "
        "your credentials.",
    )
