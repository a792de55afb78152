"""The enumerations in Azure ML's bodies, in the spelling of its OpenAPI document (2024-04-01).

Resource Manager ignores the case of every enumeration, and the SDK relies on that: `AmlCompute(tier="LowPriority")`,
the example of the SDK's own docstring, arrives as `Lowpriority`.
"""

from __future__ import annotations

from typing import Any

from emulators.azureml.kernel.models import Json

DATA = ("uri_file", "uri_folder", "mltable", "custom_model", "mlflow_model", "triton_model")
ENUMERATIONS: dict[str, tuple[str, ...]] = {
    "computeType": ("AmlCompute", "ComputeInstance", "AKS", "Kubernetes", "VirtualMachine", "HDInsight", "DataFactory"),
    "credentialsType": ("AccountKey", "Certificate", "None", "Sas", "ServicePrincipal"),
    "dataType": ("uri_file", "uri_folder", "mltable"),
    "datastoreType": ("AzureBlob", "AzureDataLakeGen1", "AzureDataLakeGen2", "AzureFile", "OneLake"),
    "distributionType": ("PyTorch", "TensorFlow", "Mpi", "Ray"),
    "goal": ("Minimize", "Maximize"),
    "identityType": ("Managed", "AMLToken", "UserIdentity"),
    "jobInputType": ("literal", *DATA),
    "jobLimitsType": ("Command", "Sweep"),
    "jobOutputType": DATA,
    "jobTier": ("Null", "Spot", "Basic", "Standard", "Premium"),
    "jobType": ("AutoML", "Command", "Sweep", "Pipeline", "Spark"),
    "mode": ("ReadOnlyMount", "ReadWriteMount", "Download", "Direct", "EvalMount", "EvalDownload", "Upload"),
    "modelType": ("custom_model", "mlflow_model", "triton_model"),
    "policyType": ("Bandit", "MedianStopping", "TruncationSelection"),
    "remoteLoginPortPublicAccess": ("Enabled", "Disabled", "NotSpecified"),
    "rule": ("Random", "Sobol"),
    "samplingAlgorithmType": ("Grid", "Random", "Bayesian"),
    "vmPriority": ("Dedicated", "LowPriority"),
}
_SPELLED = {key: {value.lower(): value for value in values} for key, values in ENUMERATIONS.items()}
OF_PEOPLE = frozenset(
    {"tags", "environmentVariables", "environment_variables", "metadata", "parameters", "defaultArguments"}
)


def respelled(body: Json) -> Json:
    """Return the body with each enumeration in the service's spelling. Unknown values stay, and the validation refuses
    them.

    Texts that users choose freely (tags, environment variables, a job's own properties) are not changed.
    """
    return {key: _respelled(key, value, "jobType" in body) for key, value in body.items()}


def _respelled(key: str, value: Any, in_job: bool) -> Any:
    if key in OF_PEOPLE or (in_job and key == "properties"):
        return value
    if isinstance(value, dict):
        return respelled(value)
    if isinstance(value, list):
        return [respelled(each) if isinstance(each, dict) else each for each in value]
    return _SPELLED.get(key, {}).get(value.lower(), value) if isinstance(value, str) else value
