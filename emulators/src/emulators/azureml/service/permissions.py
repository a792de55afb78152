"""What the app's identity may do in the workspace, where the configuration says it by roles, and what the nodes' may.

Whoever shows another token is an administrator here: only the identities that this part itself gives out are checked.
"""

from __future__ import annotations

from emulators.arm.operations import workspace_action
from emulators.azureml.kernel.config import Config
from emulators.azureml.kernel.errors import ArmError
from emulators.azureml.kernel.identity import PRINCIPAL


def check(config: Config, principal: str, method: str, path: str) -> None:
    """Raise ArmError as Azure does, unless a role of the app's identity, or of the nodes', allows this request."""
    if principal == PRINCIPAL and config.roles is not None:
        granted = config.roles
    elif config.nodes and principal == config.nodes.principal:
        granted = ()  # what a node may do in the workspace it does with its run's own token
    else:
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
