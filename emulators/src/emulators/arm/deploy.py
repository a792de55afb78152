"""Evaluates the declarations of a Bicep file: every resource with name, id and properties, including modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulators.arm import syntax
from emulators.arm.expressions import Scope, evaluate, loop
from emulators.arm.functions import Json
from emulators.arm.resources import Resource, resource_id
from emulators.arm.runtime import kept, listed, value_of
from emulators.arm.syntax import BicepError

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
TENANT = "00000000-0000-0000-0000-0000000000aa"

SUBSCRIPTION_KINDS = ("microsoft.resources/resourcegroups",)

# environment() in each cloud, as far as templates here ask for it: https://learn.microsoft.com/cli/azure/manage-clouds-azure-cli
CLOUDS = {
    "AzureCloud": ("core.windows.net", "https://login.microsoftonline.com/"),
    "AzureUSGovernment": ("core.usgovcloudapi.net", "https://login.microsoftonline.us/"),
    "AzureChinaCloud": ("core.chinacloudapi.cn", "https://login.chinacloudapi.cn/"),
}

# A value that Azure assigns, such as an identity's principal id: (resource, path of the property) to value.
Runtime = Callable[[Resource, tuple[str, ...]], Any]


@dataclass
class Deployment:
    """The resources of one `deploy`, in the order of their evaluation, and the outputs of the main file."""

    runtime: Runtime
    subscription: str
    tenant: str
    cloud: str = "AzureCloud"
    before: Deployment | None = None  # the existing resources: an earlier deployment of the same template
    resources: dict[str, Resource] = field(default_factory=dict)  # by id in lower case: ids ignore case
    outputs: Json = field(default_factory=dict)

    def of(self, kind: str) -> list[Resource]:
        return [found for found in self.resources.values() if found.kind.lower() == kind.lower()]

    def one(self, kind: str) -> Resource:
        found = self.of(kind)
        if len(found) != 1:
            raise BicepError(f"expected one {kind}, there are {len(found)}")
        return found[0]

    def by_id(self, resource_id: str) -> Resource | None:
        return self.resources.get(resource_id.lower())


def deploy(
    file: Path,
    parameters: Mapping[str, Any],
    runtime: Runtime | None = None,
    subscription: str = SUBSCRIPTION,
    tenant: str = TENANT,
    cloud: str = "AzureCloud",
    before: Deployment | None = None,
) -> Deployment:
    """Evaluate the file's resources with these parameters, in one of CLOUDS, on top of the deployment `before`.

    Raises BicepError.
    """
    deployment = Deployment(runtime or value_of, subscription, tenant, cloud, before)
    place = f"/subscriptions/{subscription}"
    deployment.outputs = Template(deployment, syntax.read(file.resolve()), parameters, place).run()
    return deployment


class Reference:
    """A resource in an expression. Its values come from the template, or otherwise from Azure's assigned values."""

    def __init__(self, deployment: Deployment, resource: Resource) -> None:
        self.deployment, self.resource = deployment, resource

    def get(self, path: tuple[str, ...]) -> Any:
        resource = self.deployment.by_id(self.resource.id) or self.resource
        if path[0] in ("id", "name", "type", "apiVersion"):
            return {"id": resource.id, "name": resource.last_name, "type": resource.kind}.get(
                path[0], resource.api_version
            )
        value: Any = resource.body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return self.deployment.runtime(resource, path) if value is None else value

    def call(self, name: str) -> Any:
        """Return the answer of a list function, such as `list()` of a site's settings, from the deployment
        `before`."""
        before = self.deployment.before.by_id(self.resource.id) if self.deployment.before else None
        return listed(name, self.resource, before)


class ModuleOutputs:
    def __init__(self, outputs: Json) -> None:
        self.outputs = outputs


class Template:
    """One file with parameters, deployed at `place`, the id of a subscription or resource group."""

    def __init__(self, deployment: Deployment, file: syntax.File, given: Mapping[str, Any], place: str) -> None:
        self.deployment, self.file, self.place = deployment, file, place
        self._given = dict(given)
        self._values: dict[str, Any] = {}
        self._open: list[str] = []
        self.scope = Scope(file.path, self.value, self.function)
        if unknown := given.keys() - file.parameters.keys():
            raise BicepError(f"{file.path.name}: there is no parameter {', '.join(sorted(unknown))}")

    def run(self) -> Json:
        """Declare every resource and module, and return the outputs."""
        for name in (*self.file.parameters, *self.file.resources, *self.file.modules):
            self.value(name)
        return {name: evaluate(node, self.scope) for name, node in self.file.outputs.items()}

    def value(self, name: str) -> Any:
        """Return a symbol's value. The first use evaluates the value."""
        if name in self._values:
            return self._values[name]
        if name in self._open:
            raise BicepError(f"{self.file.path.name}: {' needs '.join([*self._open, name])}: a circle")
        self._open.append(name)
        self._values[name] = value = self._worked_out(name)
        self._open.pop()
        return value

    def _worked_out(self, name: str) -> Any:
        file = self.file
        if name in file.parameters:
            return self._parameter(name, file.parameters[name])
        if name in file.variables:
            return evaluate(file.variables[name], self.scope)
        if name in file.resources:
            return self._each(file.resources[name], self._resource)
        if name in file.modules:
            return self._each(file.modules[name], self._module)
        if self.function(name):  # the grammar reads f() as an item of an array
            raise BicepError(
                f"{file.path.name}: {name}: the grammar can't read a call without arguments here; give it a variable"
            )
        raise BicepError(f"{file.path.name}: {name} is not declared")

    def _parameter(self, name: str, parameter: syntax.Parameter) -> Any:
        if name not in self._given and parameter.default is None:
            raise BicepError(f"{self.file.path.name}: parameter {name} has no value")
        given = name in self._given
        value = self._given[name] if given else evaluate(parameter.default, self.scope)  # type: ignore[arg-type]
        if given:
            bounds = {bound: evaluate(node, self.scope) for bound, node in parameter.bounds.items()}
            self._check(name, value, bounds)
        return value

    def _check(self, name: str, value: Any, bounds: Json) -> None:
        what = f"{self.file.path.name}: {name} is {value!r}"
        if "allowed" in bounds and value not in bounds["allowed"]:
            raise BicepError(f"{what}; choose one of {', '.join(bounds['allowed'])}")
        if isinstance(value, str | list) and not bounds.get("minLength", 0) <= len(value) <= bounds.get(
            "maxLength", len(value)
        ):
            raise BicepError(f"{what}; its length must be {_between(bounds, 'minLength', 'maxLength')}")
        if isinstance(value, int) and not bounds.get("minValue", value) <= value <= bounds.get("maxValue", value):
            raise BicepError(f"{what}; it must be {_between(bounds, 'minValue', 'maxValue')}")

    def _each(self, item: Any, make: Callable[[Any, Scope], Any]) -> Any:
        """Return the value of a declaration, the list of values for a loop, or None if the declaration's condition
        is false."""
        if item.repeat is not None:
            return [self._if(item, make, scope) for scope in loop(item.repeat, self.scope)]
        return self._if(item, make, self.scope)

    def _if(self, item: Any, make: Callable[[Any, Scope], Any], scope: Scope) -> Any:
        return make(item, scope) if item.condition is None or evaluate(item.condition, scope) else None

    def _resource(self, item: syntax.DeclaredResource, scope: Scope) -> Reference:
        body = evaluate(item.body, scope)
        resource = self._named(item, body)
        if not item.existing:
            if self.deployment.by_id(resource.id):
                raise BicepError(f"{self.file.path.name}: {item.symbol}: {resource.id} is declared twice")
            before = self.deployment.before.by_id(resource.id) if self.deployment.before else None
            self.deployment.resources[resource.id.lower()] = kept(resource, before)
        return Reference(self.deployment, resource)

    def _named(self, item: syntax.DeclaredResource, body: Json) -> Resource:
        parent, scope = body.pop("parent", None), body.pop("scope", None)
        body.pop("dependsOn", None)
        name = str(body.pop("name"))
        on = scope.resource.id if isinstance(scope, Reference) else ""
        if parent is not None:
            name = f"{parent.resource.name}/{name}"
            on = on or parent.resource.scope
        base = on or (self._home(item.kind))
        file = self.file.path.name
        return Resource(item.kind, item.api_version, name, resource_id(base, item.kind, name), body, on, file)

    def _home(self, kind: str) -> str:
        return "/subscriptions/" + self.deployment.subscription if kind.lower() in SUBSCRIPTION_KINDS else self.place

    def _module(self, item: syntax.Module, scope: Scope) -> ModuleOutputs:
        body = evaluate(item.body, scope)
        where = body.get("scope")
        place = where.resource.id if isinstance(where, Reference) else self.place
        inner = Template(self.deployment, syntax.read(item.path), body.get("params", {}), place)
        return ModuleOutputs(inner.run())

    def function(self, name: str) -> Any:
        """Return the function of this name if it depends on the place of the deployment, otherwise None."""
        subscription = "/subscriptions/" + self.deployment.subscription
        storage, login = CLOUDS[self.deployment.cloud]
        known: dict[str, Callable[..., Any]] = {
            "subscription": lambda: {
                "id": subscription,
                "subscriptionId": self.deployment.subscription,
                "tenantId": self.deployment.tenant,
            },
            "resourceGroup": lambda: {"id": self.place, "name": self.place.rpartition("/")[2]},
            "tenant": lambda: {"tenantId": self.deployment.tenant},
            "environment": lambda: {
                "name": self.deployment.cloud,
                "suffixes": {"storage": storage},
                "authentication": {"loginEndpoint": login},
            },
            "extensionResourceId": lambda base, kind, *names: resource_id(base, kind, "/".join(names)),
            "resourceId": lambda kind, *names: resource_id(self.place, kind, "/".join(names)),
            "subscriptionResourceId": lambda kind, *names: resource_id(subscription, kind, "/".join(names)),
            "tenantResourceId": lambda kind, *names: resource_id("", kind, "/".join(names)),
        }
        return known.get(name)


def _between(bounds: Json, least: str, most: str) -> str:
    words = [f"at least {bounds[least]}"] if least in bounds else []
    return " and ".join([*words, *([f"at most {bounds[most]}"] if most in bounds else [])])
