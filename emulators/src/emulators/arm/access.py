"""Authorization: a deployment's role assignments, with the built-in roles (builtin_roles.json) and custom roles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from emulators.arm.deploy import Deployment
from emulators.arm.resources import parents
from emulators.arm.roles import Role
from emulators.arm.syntax import BicepError

ASSIGNMENTS = "Microsoft.Authorization/roleAssignments"
DEFINITIONS = "Microsoft.Authorization/roleDefinitions"


@dataclass(frozen=True)
class Grant:
    principal: str
    role: Role
    scope: str


class Access:
    """The grants of a deployment. `own` are deployments with custom roles, for example of a subscription."""

    def __init__(self, deployment: Deployment, *own: Deployment) -> None:
        self._deployment = deployment
        self._roles = {role.id: role for role in [*built_in(), *_custom([deployment, *own])]}
        self.grants = [self._grant(found.properties, found.scope) for found in deployment.of(ASSIGNMENTS)]

    def may(self, principal: str, action: str, resource_id: str) -> bool:
        """Return whether a role of the principal, on the resource or on a parent, allows the action."""
        return any(grant.role.allows(action) for grant in self.reaching(principal, resource_id))

    def reaching(self, principal: str, resource_id: str) -> Iterator[Grant]:
        """Yield the principal's grants on the resource or on a parent."""
        scopes = {scope.lower() for scope in parents(resource_id)}
        return (g for g in self.grants if g.principal == principal and g.scope.lower() in scopes)

    def _grant(self, properties: dict[str, str], scope: str) -> Grant:
        role_id = properties["roleDefinitionId"].rpartition("/")[2]
        if role_id not in self._roles:
            raise BicepError(f"role {role_id} is not known; add it to builtin_roles.json, or define it")
        return Grant(properties["principalId"], self._roles[role_id], scope)


@cache
def built_in() -> tuple[Role, ...]:
    listed = json.loads(Path(__file__).with_name("builtin_roles.json").read_text("utf-8"))["roles"]
    return tuple(
        Role(
            role["name"],
            role["roleName"],
            tuple(role["actions"]),
            tuple(role["notActions"]),
            tuple(role["dataActions"]),
        )
        for role in listed
    )


def _custom(deployments: list[Deployment]) -> Iterator[Role]:
    for found in (role for deployment in deployments for role in deployment.of(DEFINITIONS)):
        allowed = found.properties["permissions"][0]
        lists = (tuple(allowed.get(kind, ())) for kind in ("actions", "notActions", "dataActions"))
        yield Role(found.last_name, found.properties["roleName"], *lists)
