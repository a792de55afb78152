// The one storage account: drops, jobs' outputs and archives lie in it, so that archives are copied inside it. No keys.
param location string
param tags object
param token string
param logsName string

var packageContainer = 'app-package'
var containers = [
  packageContainer
  'drops'
  'output'
  'deadletter'
  'azureml' // the workspace's artifact store: logs of jobs
]
var queues = [
  'drop-events'
  'drop-checks'
  'submissions'
  'run-looks'
  'cluster-looks'
  'job-events'
  'archives'
  'announcements'
  'notices' // events that people may want to be told of
  'deliveries' // each on its way to one of them
  'schedule-looks'
  'removals'
]
var tables = [
  'drops'
  'runs'
  'sweeps'
  'leases' // promises of warm nodes
  'money' // accounts of projects, closed days, refreshed prices
  'samples' // how many nodes clusters had, for what they cost
  'assets'
  'notices'
  'schedules'
  'removals' // what was deleted, by whom and when
  'rendezvous' // where the nodes of elastic runs meet; the only one that they may write
]

// Where apps are in each cloud; environment() does not say, and the app itself comes after its storage.
var appDomains = {
  AzureCloud: 'azurewebsites.net'
  AzureUSGovernment: 'azurewebsites.us'
  AzureChinaCloud: 'chinacloudsites.cn'
}

resource account 'Microsoft.Storage/storageAccounts@2025-01-01' = {
  name: 'st${token}'
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: { name: 'Standard_LRS' }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    allowCrossTenantReplication: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: 'Enabled'
    networkAcls: {
      defaultAction: 'Allow'
      bypass: 'AzureServices' // Event Grid delivers as a trusted service; keep this behind a firewall too
    }
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' = {
  parent: account
  name: 'default'
  properties: {
    deleteRetentionPolicy: { enabled: true, days: 7 }
    containerDeleteRetentionPolicy: { enabled: true, days: 7 }
    // The web page uploads drops and shows pictures by signed addresses; no other site's page may.
    cors: {
      corsRules: [
        {
          allowedOrigins: [ 'https://func-${token}.${appDomains[environment().name]}' ]
          allowedMethods: [ 'GET', 'PUT' ]
          allowedHeaders: [ 'x-ms-blob-type', 'x-ms-version', 'content-type' ]
          exposedHeaders: [ 'x-ms-error-code' ]
          maxAgeInSeconds: 3600
        }
      ]
    }
  }
}

resource blobContainers 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = [for name in containers: {
  parent: blobs
  name: name
  properties: { publicAccess: 'None' }
}]

resource queueService 'Microsoft.Storage/storageAccounts/queueServices@2025-01-01' = {
  parent: account
  name: 'default'
}

resource allQueues 'Microsoft.Storage/storageAccounts/queueServices/queues@2025-01-01' = [for name in queues: {
  parent: queueService
  name: name
}]

// The Functions host moves a message here after its fifth failure. Made now, so that replay and alerts find them.
resource poisonQueues 'Microsoft.Storage/storageAccounts/queueServices/queues@2025-01-01' = [for name in queues: {
  parent: queueService
  name: '${name}-poison'
}]

resource tableService 'Microsoft.Storage/storageAccounts/tableServices@2025-01-01' = {
  parent: account
  name: 'default'
}

resource allTables 'Microsoft.Storage/storageAccounts/tableServices/tables@2025-01-01' = [for name in tables: {
  parent: tableService
  name: name
}]

resource lifecycle 'Microsoft.Storage/storageAccounts/managementPolicies@2025-01-01' = {
  parent: account
  name: 'default'
  properties: {
    policy: {
      rules: [
        {
          name: 'dead-letters-go'
          type: 'Lifecycle'
          definition: {
            filters: { blobTypes: [ 'blockBlob' ], prefixMatch: [ 'deadletter/' ] }
            actions: { baseBlob: { delete: { daysAfterModificationGreaterThan: 30 } } }
          }
        }
        {
          name: 'archives-cool' // cheaper to keep; reading one costs a little
          type: 'Lifecycle'
          definition: {
            filters: { blobTypes: [ 'blockBlob' ], prefixMatch: [ 'output/' ] }
            actions: { baseBlob: { tierToCool: { daysAfterModificationGreaterThan: 60 } } }
          }
        }
        {
          name: 'job-logs-go' // every finished run's logs are in its archive by then
          type: 'Lifecycle'
          definition: {
            filters: { blobTypes: [ 'blockBlob', 'appendBlob' ], prefixMatch: [ 'azureml/ExperimentRun/' ] }
            actions: { baseBlob: { delete: { daysAfterModificationGreaterThan: 90 } } }
          }
        }
      ]
    }
  }
}

resource logs 'Microsoft.OperationalInsights/workspaces@2025-02-01' existing = {
  name: logsName
}

// The alert on poison queues reads these: metrics count the messages of all queues together.
resource queueLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'to-logs'
  scope: queueService
  properties: {
    workspaceId: logs.id
    logs: [ { category: 'StorageWrite', enabled: true } ]
  }
}

output accountName string = account.name
output blobEndpoint string = account.properties.primaryEndpoints.blob
output packageContainer string = packageContainer
