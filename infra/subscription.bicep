// What belongs to the subscription rather than to the resource group: a custom role and a budget. The preprovision hook
// deploys it before main.bicep, because main.bicep needs the role's id, and because a budget's start must stay what it
// was when the budget was made.
targetScope = 'subscription'

@minLength(1)
param environmentName string
@description('The most that a month may cost, in the currency of the subscription. It warns; it stops nothing.')
@minValue(1)
param monthlyBudget int = 100
@description('First day of the month in which the budget was made, as yyyy-MM-dd.')
param budgetStart string
@description('Who gets the warnings. Empty: the owners of the subscription.')
param alertEmail string = ''

var threshold = {
  enabled: true
  operator: 'GreaterThanOrEqualTo'
  contactEmails: empty(alertEmail) ? [] : [ alertEmail ]
  contactRoles: empty(alertEmail) ? [ 'Owner' ] : []
}

// AzureML Data Scientist may not change a compute, and AzureML Compute Operator may also make and delete them.
resource clusterRole 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(subscription().id, environmentName, 'trainyard-cluster-size')
  properties: {
    roleName: 'Trainyard cluster size (${environmentName})'
    description: 'Reads the computes of a workspace and changes their size'
    type: 'CustomRole'
    permissions: [
      {
        actions: [
          'Microsoft.MachineLearningServices/workspaces/computes/read'
          'Microsoft.MachineLearningServices/workspaces/computes/write'
        ]
        notActions: []
        dataActions: []
        notDataActions: []
      }
    ]
    assignableScopes: [ subscription().id ]
  }
}

resource budget 'Microsoft.Consumption/budgets@2023-11-01' = {
  name: 'trainyard-${environmentName}'
  properties: {
    category: 'Cost'
    amount: monthlyBudget
    timeGrain: 'Monthly'
    timePeriod: { startDate: budgetStart }
    filter: {
      dimensions: { name: 'ResourceGroupName', operator: 'In', values: [ 'rg-${environmentName}' ] }
    }
    notifications: {
      actual50: union(threshold, { threshold: 50, thresholdType: 'Actual' })
      actual80: union(threshold, { threshold: 80, thresholdType: 'Actual' })
      actual100: union(threshold, { threshold: 100, thresholdType: 'Actual' })
      forecast100: union(threshold, { threshold: 100, thresholdType: 'Forecasted' })
    }
  }
}

output clusterRoleId string = clusterRole.name
