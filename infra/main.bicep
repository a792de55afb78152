// Trainyard in one resource group: storage, events, functions, Azure ML, monitoring. `azd up` deploys it; docs/azure.md
// explains it. The local cloud starts from these same files, so a wrong name or filter here fails on a laptop too.
targetScope = 'subscription'

@minLength(1)
@maxLength(20)
@description('The azd environment: a part of every name.')
param environmentName string
@description('One region for all: a system topic must be in the region of its source.')
param location string
@description('Object id of whoever deploys; gets the data roles of an operator. Empty: nobody does.')
param principalId string = ''
@allowed(['User', 'Group', 'ServicePrincipal'])
param principalType string = 'User'
@description('Object id of an Entra ID group whose members may upload drops. Empty: none.')
param uploaderGroupId string = ''

@allowed(['keys', 'entra'])
@description('Who may call the HTTP API: holders of a function key, or members of app roles in Entra ID.')
param authMode string = 'keys'
@description('Client id of the app registration, which the preprovision hook makes; needed with authMode entra.')
param entraClientId string = ''

@allowed(['3.11', '3.12', '3.13'])
@description('3.13 is the one on which the tests run the app under the runtime of Microsoft.')
param pythonVersion string = '3.13'

@description('VM size of the training nodes. The preprovision hook checks the quota for clusterMaxNodes of them.')
param clusterVmSize string = 'Standard_D2s_v5'
@minValue(1)
param clusterMaxNodes int = 4
@description('The role that lets the app change the size of clusters. Empty: the built-in AzureML Compute Operator.')
param clusterRoleId string = ''

@description('Where alerts go. Empty: alerts show in the portal only.')
param alertEmail string = ''
@allowed(['PT1H', 'PT6H', 'PT12H', 'P1D'])
@description('A cluster that had a node during all of this time raises an alert.')
param clusterAlertAfter string = 'PT12H'
@minValue(1)
@description('GB of logs a day, beyond which no more are taken until the next day: a bound on the bill.')
param logsDailyGb int = 1

var token = toLower(uniqueString(subscription().id, environmentName, location))
var tags = { 'azd-env-name': environmentName }

resource group 'Microsoft.Resources/resourceGroups@2024-11-01' = {
  name: 'rg-${environmentName}'
  location: location
  tags: tags
}

module identities 'modules/identities.bicep' = {
  scope: group
  params: {
    location: location
    tags: tags
    token: token
  }
}

module monitoring 'modules/monitoring.bicep' = {
  scope: group
  params: {
    location: location
    tags: tags
    token: token
    alertEmail: alertEmail
    dailyGb: logsDailyGb
  }
}

module storage 'modules/storage.bicep' = {
  scope: group
  params: {
    location: location
    tags: tags
    token: token
    logsName: monitoring.outputs.logsName
  }
}

module workspace 'modules/workspace.bicep' = {
  scope: group
  params: {
    location: location
    tags: tags
    token: token
    storageName: storage.outputs.accountName
    insightsName: monitoring.outputs.insightsName
    logsName: monitoring.outputs.logsName
    nodesIdentityName: identities.outputs.nodesName
    vmSize: clusterVmSize
    maxNodes: clusterMaxNodes
  }
}

module events 'modules/events.bicep' = {
  scope: group
  params: {
    location: location
    tags: tags
    token: token
    storageName: storage.outputs.accountName
    workspaceName: workspace.outputs.workspaceName
  }
}

module app 'modules/app.bicep' = {
  scope: group
  params: {
    location: location
    tags: tags
    token: token
    pythonVersion: pythonVersion
    identityName: identities.outputs.appName
    storageName: storage.outputs.accountName
    packageContainer: storage.outputs.packageContainer
    insightsName: monitoring.outputs.insightsName
    workspaceName: workspace.outputs.workspaceName
    topicName: events.outputs.topicName
    authMode: authMode
    entraClientId: entraClientId
  }
}

module roles 'modules/roles.bicep' = {
  scope: group
  params: {
    storageName: storage.outputs.accountName
    workspaceName: workspace.outputs.workspaceName
    workspaceGuid: workspace.outputs.workspaceGuid
    registryName: workspace.outputs.registryName
    insightsName: monitoring.outputs.insightsName
    topicName: events.outputs.topicName
    appPrincipalId: identities.outputs.appPrincipalId
    nodesPrincipalId: identities.outputs.nodesPrincipalId
    storageTopicPrincipalId: events.outputs.storageTopicPrincipalId
    workspaceTopicPrincipalId: events.outputs.workspaceTopicPrincipalId
    operatorId: principalId
    operatorType: principalType
    uploaderGroupId: uploaderGroupId
    clusterRoleId: clusterRoleId
  }
}

// After the roles: Event Grid checks a subscription's destination with the identity that will deliver to it.
module subscriptions 'modules/subscriptions.bicep' = {
  scope: group
  params: {
    storageName: storage.outputs.accountName
    storageTopicName: events.outputs.storageTopicName
    workspaceTopicName: events.outputs.workspaceTopicName
  }
  dependsOn: [
    roles
  ]
}

module alerts 'modules/alerts.bicep' = {
  scope: group
  params: {
    location: location
    tags: tags
    storageTopicName: events.outputs.storageTopicName
    workspaceTopicName: events.outputs.workspaceTopicName
    workspaceName: workspace.outputs.workspaceName
    logsName: monitoring.outputs.logsName
    actionGroupName: monitoring.outputs.actionGroupName
    clusterAlertAfter: clusterAlertAfter
  }
}

// azd keeps these in its environment, in plain text: names and addresses, never a secret.
output AZURE_LOCATION string = location
output AZURE_RESOURCE_GROUP string = group.name
output AZURE_FUNCTION_APP_NAME string = app.outputs.appName
output AZURE_STORAGE_ACCOUNT_NAME string = storage.outputs.accountName
output AZURE_WORKSPACE_NAME string = workspace.outputs.workspaceName
output AZURE_REGISTRY_NAME string = workspace.outputs.registryName
output TRAINYARD_URL string = '${app.outputs.url}/api'
output TRAINYARD_SCOPE string = authMode == 'entra' ? 'api://${entraClientId}/.default' : ''
output TRAINYARD_ACCOUNT_URL string = storage.outputs.blobEndpoint
