// The Functions app on Flex Consumption: nothing runs, and nothing costs, while nothing happens.
param location string
param tags object
param token string
param pythonVersion string
param identityName string
param storageName string
param packageContainer string
param insightsName string
param workspaceName string
param topicName string
param authMode string
param entraClientId string

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' existing = {
  name: identityName
}
resource storage 'Microsoft.Storage/storageAccounts@2025-01-01' existing = {
  name: storageName
}
resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: insightsName
}
resource topic 'Microsoft.EventGrid/topics@2025-02-15' existing = {
  name: topicName
}

resource plan 'Microsoft.Web/serverfarms@2024-11-01' = {
  name: 'plan-${token}'
  location: location
  tags: tags
  kind: 'functionapp'
  sku: { name: 'FC1', tier: 'FlexConsumption' }
  properties: { reserved: true }
}

resource site 'Microsoft.Web/sites@2024-11-01' = {
  name: 'func-${token}'
  location: location
  kind: 'functionapp,linux'
  tags: union(tags, { 'azd-service-name': 'api' })
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identity.id}': {} }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${storage.properties.primaryEndpoints.blob}${packageContainer}'
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identity.id
          }
        }
      }
      scaleAndConcurrency: {
        instanceMemoryMB: 2048 // importing azure.ai.ml takes 136 MiB of it
        maximumInstanceCount: 40 // the least that the platform takes; queues need a few
        triggers: {
          http: { perInstanceConcurrency: 32 } // the default for Python is 1, an instance for every caller
        }
      }
      runtime: { name: 'python', version: pythonVersion }
    }
    siteConfig: {
      minTlsVersion: '1.2'
      ftpsState: 'Disabled'
      http20Enabled: true
    }
  }
}

// WEBSITE_AUTH_ENABLED is never set here: the platform sets it while its authentication is on, and the app believes the
// names of callers only then. Set by hand it would let anyone in.
resource settings 'Microsoft.Web/sites/config@2024-11-01' = {
  parent: site
  name: 'appsettings'
  properties: {
    // By address and not by name: a name means core.windows.net, which is wrong in the clouds of governments and of China.
    AzureWebJobsStorage__blobServiceUri: storage.properties.primaryEndpoints.blob
    AzureWebJobsStorage__queueServiceUri: storage.properties.primaryEndpoints.queue
    AzureWebJobsStorage__tableServiceUri: storage.properties.primaryEndpoints.table
    AzureWebJobsStorage__credential: 'managedidentity'
    AzureWebJobsStorage__clientId: identity.properties.clientId
    AZURE_CLIENT_ID: identity.properties.clientId
    AZURE_AUTHORITY_HOST: environment().authentication.loginEndpoint
    APPLICATIONINSIGHTS_CONNECTION_STRING: insights.properties.ConnectionString
    APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identity.properties.clientId};Authorization=AAD'
    PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY: 'true'
    PYTHON_THREADPOOL_THREAD_COUNT: '32'
    AML_SUBSCRIPTION_ID: subscription().subscriptionId
    AML_RESOURCE_GROUP: resourceGroup().name
    AML_WORKSPACE: workspaceName
    AML_CLIENT_KWARGS: '{"cloud": "${environment().name}"}'
    TRAINYARD_REGION: location
    TRAINYARD_PRICES_URL: 'https://prices.azure.com/api/retail/prices'
    TRAINYARD_TOPIC_ENDPOINT: topic.properties.endpoint
    TRAINYARD_AUTH: authMode
    // The same events come by queue; the direct triggers are for topics of other people's.
    'AzureWebJobs.drop_event.Disabled': 'true'
    'AzureWebJobs.job_event.Disabled': 'true'
  }
}

resource auth 'Microsoft.Web/sites/config@2024-11-01' = {
  parent: site
  name: 'authsettingsV2'
  properties: {
    platform: { enabled: authMode == 'entra' }
    globalValidation: {
      requireAuthentication: authMode == 'entra'
      unauthenticatedClientAction: 'Return401'
      // The page says there how to sign in; its scripts, and all data, are for those who did.
      excludedPaths: [ '/api/health', '/api/page', '/api/page/style.css' ]
    }
    httpSettings: { requireHttps: true }
    identityProviders: authMode != 'entra' ? {} : {
      azureActiveDirectory: {
        enabled: true
        registration: {
          clientId: entraClientId
          openIdIssuer: '${environment().authentication.loginEndpoint}${tenant().tenantId}/v2.0'
        }
        validation: {
          allowedAudiences: [ 'api://${entraClientId}', entraClientId ]
        }
      }
    }
    login: { tokenStore: { enabled: false } }
  }
}

// Deployment goes by identity through the package container; passwords of the old ways are off.
resource ftp 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-11-01' = {
  parent: site
  name: 'ftp'
  properties: { allow: false }
}
resource scm 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-11-01' = {
  parent: site
  name: 'scm'
  properties: { allow: false }
}

output appName string = site.name
output url string = 'https://${site.properties.defaultHostName}'
