// Which events become messages of which queue. An event that can't be delivered for a day becomes a dead letter.
param storageName string
param storageTopicName string
param workspaceTopicName string

resource storage 'Microsoft.Storage/storageAccounts@2025-01-01' existing = {
  name: storageName
}
resource storageTopic 'Microsoft.EventGrid/systemTopics@2025-02-15' existing = {
  name: storageTopicName
}
resource workspaceTopic 'Microsoft.EventGrid/systemTopics@2025-02-15' existing = {
  name: workspaceTopicName
}

var retry = { maxDeliveryAttempts: 30, eventTimeToLiveInMinutes: 1440 }
var deadLetters = {
  identity: { type: 'SystemAssigned' }
  deadLetterDestination: {
    endpointType: 'StorageBlob'
    properties: {
      resourceId: storage.id
      blobContainerName: 'deadletter'
    }
  }
}

resource dropEvents 'Microsoft.EventGrid/systemTopics/eventSubscriptions@2025-02-15' = {
  parent: storageTopic
  name: 'drop-events'
  properties: {
    eventDeliverySchema: 'EventGridSchema'
    deliveryWithResourceIdentity: {
      identity: { type: 'SystemAssigned' }
      destination: {
        endpointType: 'StorageQueue'
        properties: {
          resourceId: storage.id
          queueName: 'drop-events'
          queueMessageTimeToLiveInSeconds: 604800
        }
      }
    }
    deadLetterWithResourceIdentity: deadLetters
    filter: {
      includedEventTypes: [
        'Microsoft.Storage.BlobCreated'
        'Microsoft.Storage.BlobRenamed' // this and the next on accounts with folders and over SFTP
        'Microsoft.Storage.DirectoryRenamed'
      ]
      subjectBeginsWith: '/blobServices/default/containers/drops/blobs/'
      advancedFilters: [
        {
          operatorType: 'StringIn' // the calls after which a blob is whole, or has another name
          key: 'data.api'
          values: [
            'PutBlob'
            'PutBlockList'
            'CopyBlob'
            'FlushWithClose'
            'SftpCommit'
            'RenameFile'
            'RenameDirectory'
            'SftpRename'
          ]
        }
      ]
    }
    retryPolicy: retry
  }
}

resource jobEvents 'Microsoft.EventGrid/systemTopics/eventSubscriptions@2025-02-15' = {
  parent: workspaceTopic
  name: 'job-events'
  properties: {
    eventDeliverySchema: 'EventGridSchema'
    deliveryWithResourceIdentity: {
      identity: { type: 'SystemAssigned' }
      destination: {
        endpointType: 'StorageQueue'
        properties: {
          resourceId: storage.id
          queueName: 'job-events'
          queueMessageTimeToLiveInSeconds: 604800
        }
      }
    }
    deadLetterWithResourceIdentity: deadLetters
    filter: {
      includedEventTypes: [
        'Microsoft.MachineLearningServices.RunStatusChanged'
        'Microsoft.MachineLearningServices.RunCompleted'
      ]
    }
    retryPolicy: retry
  }
}
