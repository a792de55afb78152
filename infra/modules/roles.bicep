// Who may do what. Each grant is as narrow as the scope allows; docs/azure.md says why each is needed, and a test holds
// the app's against the calls that it makes.
//
// The workspace's own identity is not here: Azure ML gives it what it needs on storage, vault and registry, and a second
// assignment of the same role would fail the deployment.
param storageName string
param workspaceName string
param workspaceGuid string
param registryName string
param insightsName string
param topicName string
param appPrincipalId string
param nodesPrincipalId string
param storageTopicPrincipalId string
param workspaceTopicPrincipalId string
param operatorId string
param operatorType string
param uploaderGroupId string
param clusterRoleId string

// Built-in roles have the same ids everywhere: https://learn.microsoft.com/azure/role-based-access-control/built-in-roles
var blobOwner = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
var blobContributor = 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'
var blobReader = '2a2b9908-6ea1-4ae2-8e65-a410df84e7d1'
var queueContributor = '974c5e8b-45b9-4653-ba55-5f855dd0fb88'
var queueSender = 'c6a89b2d-59bc-44d0-9896-0f6e12d7b80a'
var tableContributor = '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3'
var dataScientist = 'f6c7c914-8db3-469d-8ca1-694a8f32e121'
var computeOperator = 'e503ece1-11d0-4e8e-8e2c-7a6c3bf38815'
var eventSender = 'd5a91429-5739-47e2-a06b-3470a27159e7'
var metricsPublisher = '3913510d-42f4-4e42-8a64-420c390055eb'
var imagePuller = '7f951dda-4ed3-4680-a7ca-43fe172d538d'

var workspaceContainer = 'azureml-blobstore-${workspaceGuid}'
var operators = empty(operatorId) ? [] : [ { id: operatorId, type: operatorType } ]
var uploaders = empty(uploaderGroupId) ? [] : [ { id: uploaderGroupId, type: 'Group' } ]

resource storage 'Microsoft.Storage/storageAccounts@2025-01-01' existing = {
  name: storageName
}
resource workspace 'Microsoft.MachineLearningServices/workspaces@2025-12-01' existing = {
  name: workspaceName
}
resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' existing = {
  name: registryName
}
resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: insightsName
}
resource topic 'Microsoft.EventGrid/topics@2025-02-15' existing = {
  name: topicName
}

// ---- the app

resource appOnStorage 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for role in [ blobOwner, queueContributor, tableContributor ]: {
  name: guid(storage.id, appPrincipalId, role)
  scope: storage
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
  }
}]

// Data Scientist may do all in a workspace but change computes; the second role may change computes and nothing else.
resource appOnWorkspace 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for role in [ dataScientist, empty(clusterRoleId) ? computeOperator : clusterRoleId ]: {
  name: guid(workspace.id, appPrincipalId, role)
  scope: workspace
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
  }
}]

resource appOnTopic 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(topic.id, appPrincipalId, eventSender)
  scope: topic
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', eventSender)
  }
}

resource appOnInsights 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(insights.id, appPrincipalId, metricsPublisher)
  scope: insights
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', metricsPublisher)
  }
}

// ---- the training nodes: whatever a training does, it can't touch the rows of runs, nor anybody's archive

resource nodesOnRegistry 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, nodesPrincipalId, imagePuller)
  scope: registry
  properties: {
    principalId: nodesPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', imagePuller)
  }
}

module nodesOnRendezvous 'roles/table.bicep' = {
  params: {
    storageName: storageName
    table: 'rendezvous'
    principalId: nodesPrincipalId
    roleId: tableContributor
  }
}

// The workspace makes this container with its first job; made here, its grant has something to stand on.
resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' existing = {
  parent: storage
  name: 'default'
}
resource outputs 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = {
  parent: blobs
  name: workspaceContainer
  properties: { publicAccess: 'None' }
}

// ---- containers: nodes, topics, people

var containerGrants = concat(
  [
    { container: 'drops', id: nodesPrincipalId, type: 'ServicePrincipal', role: blobReader }
    { container: 'azureml', id: nodesPrincipalId, type: 'ServicePrincipal', role: blobContributor }
    { container: workspaceContainer, id: nodesPrincipalId, type: 'ServicePrincipal', role: blobContributor }
    { container: 'deadletter', id: storageTopicPrincipalId, type: 'ServicePrincipal', role: blobContributor }
    { container: 'deadletter', id: workspaceTopicPrincipalId, type: 'ServicePrincipal', role: blobContributor }
  ],
  map(uploaders, who => { container: 'drops', id: who.id, type: who.type, role: blobContributor }),
  map(operators, who => { container: 'drops', id: who.id, type: who.type, role: blobContributor }),
  map(operators, who => { container: 'deadletter', id: who.id, type: who.type, role: blobContributor }),
  map(operators, who => { container: 'output', id: who.id, type: who.type, role: blobReader })
)

module onContainers 'roles/container.bicep' = [for grant in containerGrants: {
  params: {
    storageName: storageName
    container: grant.container
    principalId: grant.id
    principalType: grant.type
    roleId: grant.role
  }
  dependsOn: [
    outputs
  ]
}]

// ---- queues: topics put messages in, operators bring poison messages back

module storageTopicOnQueue 'roles/queue.bicep' = {
  params: {
    storageName: storageName
    queue: 'drop-events'
    principalId: storageTopicPrincipalId
    roleId: queueSender
  }
}

module workspaceTopicOnQueue 'roles/queue.bicep' = {
  params: {
    storageName: storageName
    queue: 'job-events'
    principalId: workspaceTopicPrincipalId
    roleId: queueSender
  }
}

resource operatorsOnQueues 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for who in operators: {
  name: guid(storage.id, who.id, queueContributor)
  scope: storage
  properties: {
    principalId: who.id
    principalType: who.type
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', queueContributor)
  }
}]
