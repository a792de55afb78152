// The workspace's own container, where jobs write their outputs. Azure ML makes it with the first job, under a name with the
// workspace's GUID; made here, its grants have something to stand on.
param storageName string
param workspaceGuid string
param nodesIdentityName string
param nodesPrincipalId string
param operatorId string
param operatorType string

var container = 'azureml-blobstore-${workspaceGuid}'
var operators = empty(operatorId) ? [] : [ { id: operatorId, type: operatorType } ]

resource storage 'Microsoft.Storage/storageAccounts@2025-01-01' existing = {
  name: storageName
}
resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' existing = {
  parent: storage
  name: 'default'
}
resource outputs 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = {
  parent: blobs
  name: container
  properties: { publicAccess: 'None' }
}

module nodes 'roles/container.bicep' = {
  params: {
    storageName: storageName
    container: container
    who: nodesIdentityName
    principalId: nodesPrincipalId
    principalType: 'ServicePrincipal'
    roleId: 'ba92f5b4-2d11-453d-a403-e96b0029c9fe' // Storage Blob Data Contributor
  }
  dependsOn: [
    outputs
  ]
}

module people 'roles/container.bicep' = [for who in operators: {
  params: {
    storageName: storageName
    container: container
    who: who.id
    principalId: who.id
    principalType: who.type
    roleId: '2a2b9908-6ea1-4ae2-8e65-a410df84e7d1' // Storage Blob Data Reader: the studio shows files as the person who looks
  }
  dependsOn: [
    outputs
  ]
}]
