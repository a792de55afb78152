"""Deployments that Azure refuses although the template is valid: properties that a plan does not support, or sizes that
a service does not have.

Each rule has a public source, and covers only what its source says. Everything else passes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from emulators.arm.access import ASSIGNMENTS
from emulators.arm.deploy import Deployment
from emulators.arm.functions import Json
from emulators.arm.resources import Resource
from emulators.arm.vm_sizes import refused_size

SITES, PLANS = "Microsoft.Web/sites", "Microsoft.Web/serverfarms"
COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
SYSTEM_TOPICS = "Microsoft.EventGrid/systemTopics"
BUDGETS = "Microsoft.Consumption/budgets"
ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"

# "The following list of 4 site configuration properties (Site.SiteConfig.FtpsState, ...) for Flex Consumption sites is
# invalid", ARM's error 51021. Verbatim: microsoft/azure-pipelines-tasks#21032, Azure/terraform-azurerm-avm-res-web-site
# #283 and #360. The rest is in Microsoft's list of features that Flex Consumption dropped:
# https://learn.microsoft.com/azure/azure-functions/functions-app-settings#flex-consumption-plan-deprecations
NO_SITE_CONFIG = (
    *("ftpsState", "linuxFxVersion", "use32BitWorkerProcess", "netFrameworkVersion"),
    *("functionsRuntimeScaleMonitoringEnabled", "preWarmedInstanceCount", "alwaysOn", "windowsFxVersion"),
    *("javaVersion", "powerShellVersion", "functionAppScaleLimit"),
)
NO_SITE_PROPERTY = (
    *("containerSize", "isReserved", "isXenon", "vnetBackupRestoreEnabled", "vnetContentShareEnabled"),
    *("vnetImagePullEnabled", "vnetRouteAllEnabled"),
)
# The first is refused with this error. The others in that list do nothing, or repeat functionAppConfig.
NO_APP_SETTING = (
    *("FUNCTIONS_WORKER_RUNTIME", "FUNCTIONS_WORKER_RUNTIME_VERSION", "FUNCTIONS_EXTENSION_VERSION"),
    *("FUNCTIONS_MAX_HTTP_CONCURRENCY", "FUNCTIONS_WORKER_PROCESS_COUNT"),
    *("FUNCTIONS_WORKER_DYNAMIC_CONCURRENCY_ENABLED", "ENABLE_ORYX_BUILD", "SCM_DO_BUILD_DURING_DEPLOYMENT"),
    *("WEBSITE_CONTENTAZUREFILECONNECTIONSTRING", "WEBSITE_CONTENTOVERVNET", "WEBSITE_CONTENTSHARE"),
    *("WEBSITE_DNS_SERVER", "WEBSITE_MAX_DYNAMIC_APPLICATION_SCALE_OUT", "WEBSITE_NODE_DEFAULT_VERSION"),
    *("WEBSITE_RUN_FROM_PACKAGE", "WEBSITE_SKIP_CONTENTSHARE_VALIDATION", "WEBSITE_VNET_ROUTE_ALL"),
    *("WEBSITE_TIME_ZONE", "TZ", "WEBSITES_CONTAINER_START_TIME_LIMIT"),
)
# Azure-Samples/azure-functions-flex-consumption-samples, IaC/bicep: the bounds of its parameters.
MEMORY_MB, LEAST_INSTANCES, MOST_INSTANCES = (512, 2048, 4096), 40, 1000
# https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
NAMES = {
    "Microsoft.Storage/storageAccounts": r"[a-z0-9]{3,24}",
    "Microsoft.KeyVault/vaults": r"(?!.*--)[a-zA-Z][a-zA-Z0-9-]{1,22}[a-zA-Z0-9]",
    "Microsoft.ContainerRegistry/registries": r"[a-zA-Z0-9]{5,50}",
    "Microsoft.MachineLearningServices/workspaces": r"[a-zA-Z0-9][a-zA-Z0-9_-]{2,32}",
    COMPUTES: r"[a-zA-Z][a-zA-Z0-9-]{1,22}[a-zA-Z0-9]",  # verbatim: aztfmod/terraform-provider-azurecaf#78
    SITES: r"[a-zA-Z0-9][a-zA-Z0-9-]{0,58}[a-zA-Z0-9]",
    "Microsoft.EventGrid/topics": r"[a-zA-Z0-9-]{3,50}",
    "Microsoft.EventGrid/systemTopics": r"[a-zA-Z0-9-]{3,50}",
    "Microsoft.Storage/storageAccounts/blobServices/containers": r"[a-z0-9](?:-?[a-z0-9]){2,62}",
    "Microsoft.Storage/storageAccounts/queueServices/queues": r"[a-z0-9](?:-?[a-z0-9]){2,62}",
    "Microsoft.Storage/storageAccounts/tableServices/tables": r"[a-zA-Z][a-zA-Z0-9]{2,62}",
}


def refusals(deployment: Deployment) -> list[str]:
    """Return one sentence for each of Azure's reasons for refusing this deployment."""
    rules = (_flex, _sizes, _budgets, _names, _topics, _assignments)
    return [sentence for rule in rules for sentence in rule(deployment)]


def _flex(deployment: Deployment) -> Iterator[str]:
    plans = {p.id.lower() for p in deployment.of(PLANS) if p.body.get("sku", {}).get("tier") == "FlexConsumption"}
    sites = [site for site in deployment.of(SITES) if str(site.properties.get("serverFarmId", "")).lower() in plans]
    for plan, count in Counter(str(site.properties["serverFarmId"]).lower() for site in sites).items():
        if count > 1:  # ARM's own words
            yield f"{plan}: there can only be one site per Flex Consumption serverfarm"
    for site in sites:
        yield from _flex_site(deployment, site)


def _flex_site(deployment: Deployment, site: Resource) -> Iterator[str]:
    parts = {one.last_name: one.properties for one in deployment.of(f"{SITES}/config") if one.id.startswith(site.id)}
    config = {**site.properties.get("siteConfig", {}), **parts.get("web", {})}
    listed = {entry["name"] for entry in config.get("appSettings", [])}
    wrong = [f"Site.SiteConfig.{name}" for name in _among(config, NO_SITE_CONFIG)]
    wrong += [f"Site.{name}" for name in _among(site.properties, (*NO_SITE_PROPERTY, *NO_SITE_CONFIG))]
    settings = {**dict.fromkeys(listed), **parts.get("appsettings", {})}
    wrong += [f"Site.SiteConfig.AppSettings.{name}" for name in _among(settings, NO_APP_SETTING)]
    if wrong:
        yield f"site {site.name}: ({', '.join(wrong)}) for Flex Consumption sites is invalid; remove it"
    yield from _flex_scale(site.name, site.properties.get("functionAppConfig"))


def _flex_scale(name: str, config: Json | None) -> Iterator[str]:
    if not config:  # Azure/terraform-azurerm-avm-res-web-site#195
        yield f"site {name}: functionAppConfig is required on create for FlexConsumption sites"
        return
    scale = config["scaleAndConcurrency"]
    if scale["instanceMemoryMB"] not in MEMORY_MB:
        yield f"site {name}: instanceMemoryMB is {scale['instanceMemoryMB']}; choose one of {MEMORY_MB}"
    if not LEAST_INSTANCES <= scale["maximumInstanceCount"] <= MOST_INSTANCES:
        yield f"site {name}: maximumInstanceCount must be {LEAST_INSTANCES} to {MOST_INSTANCES}"
    for ready in scale.get("alwaysReady", []):
        if not re.fullmatch(r"http|blob|durable|function:\w+", ready["name"]):
            yield f"site {name}: alwaysReady has {ready['name']!r}; it takes http, blob, durable or function:NAME"


def _among(given: Json, names: tuple[str, ...]) -> list[str]:
    unwanted = {name.lower() for name in names}
    return [name for name in given if name.lower() in unwanted]


def _sizes(deployment: Deployment) -> Iterator[str]:
    for compute in deployment.of(COMPUTES):
        inner: Json = compute.properties.get("properties", {})
        if reason := refused_size(str(inner.get("vmSize", "")), str(inner.get("vmPriority", "Dedicated"))):
            yield f"compute {compute.last_name}: {reason}"


def _budgets(deployment: Deployment) -> Iterator[str]:
    """Yield budgets that start after the first day of a month (Azure/azure-quickstart-templates#7095). The
    preprovision hook ensures that the month is the current month."""
    for budget in deployment.of(BUDGETS):
        start = str(budget.properties["timePeriod"]["startDate"])
        if not re.match(r"\d{4}-\d{2}-01", start):
            yield f"budget {budget.name}: its start is {start}; it must be the first day of a month"


def _names(deployment: Deployment) -> Iterator[str]:
    for kind, form in NAMES.items():
        for found in deployment.of(kind):
            if not re.fullmatch(form, found.last_name):
                yield f"{kind} {found.last_name!r}: this is not a name for it; it must match {form}"


def _topics(deployment: Deployment) -> Iterator[str]:
    """Yield second system topics for the same source, including existing topics. The message is Azure's:
    microsoft/AzureTRE#4978."""
    present = deployment.before.of(SYSTEM_TOPICS) if deployment.before else []
    of_source = {str(topic.properties["source"]).lower(): topic for topic in present}
    for topic in deployment.of(SYSTEM_TOPICS):
        source = str(topic.properties["source"])
        other = of_source.setdefault(source.lower(), topic)
        if other.id.lower() != topic.id.lower():
            yield (
                f"InvalidRequest: There is an existing tracked system topic {other.id} for the given source {source}. "
                "Only one system topic is allowed per source."
            )


def _assignments(deployment: Deployment) -> Iterator[str]:
    """Yield role assignments that repeat role, principal and scope under another name (RoleAssignmentExists). Azure
    ML's own assignments count too."""
    of: dict[tuple[Any, ...], str] = dict.fromkeys(_granted_by_azure_ml(deployment), "Azure ML")
    for found in deployment.of(ASSIGNMENTS):
        role = str(found.properties["roleDefinitionId"]).rpartition("/")[2]
        key = (found.scope.lower(), str(found.properties["principalId"]), role)
        if key in of:
            yield f"role {role} on {found.scope} is assigned by {found.name} and by {of[key]}: RoleAssignmentExists"
        of[key] = found.name


def _granted_by_azure_ml(deployment: Deployment) -> Iterator[tuple[str, str, str]]:
    """Yield Azure ML's own assignments of AcrPull on the workspace's registry: "a managed identity is automatically
    granted ACRPull role on workspace ACR".

    https://learn.microsoft.com/azure/machine-learning/how-to-identity-based-service-authentication
    """
    workspaces = deployment.of("Microsoft.MachineLearningServices/workspaces")
    registries = [str(workspace.properties.get("containerRegistry", "")).lower() for workspace in workspaces]
    for compute in deployment.of(COMPUTES):
        for identity in compute.body.get("identity", {}).get("userAssignedIdentities", {}):
            if found := deployment.by_id(identity):
                principal = str(deployment.runtime(found, ("properties", "principalId")))
                yield from ((registry, principal, ACR_PULL) for registry in registries if registry)
