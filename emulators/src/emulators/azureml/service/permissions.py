"""The permissions of the app's identity in the workspace, if the configuration has roles, and those of the nodes'
identity.

Any other token counts as an administrator's, because only identities from this emulator are checked.
"""

from __future__ import annotations

from emulators.arm.operations import workspace_action
from emulators.azureml.kernel.config import Config
from emulators.azureml.kernel.errors import ArmError
from emulators.azureml.kernel.identity import PRINCIPAL


def check(config: Config, principal: str, method: str, path: str) -> None:
    """Raise ArmError, as Azure does, unless a role of the app's or the nodes' identity allows this request."""
    if principal == PRINCIPAL and config.roles is not None:
        granted = config.roles
    elif config.nodes and principal == config.nodes.principal:
        granted = ()  # a node uses its run's own token in the workspace
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
