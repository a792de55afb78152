// The application settings of the Functions app. Resource Manager replaces the whole collection at each write. So this
// module writes the present settings again, except those that Trainyard computes or that the azd environment sets.
param siteName string
@secure()
@description('The settings that the site has now, some of them secrets.')
param present object
@description('What Trainyard sets once: a present value wins.')
param defaults object
@description('What Trainyard computes anew each time. It wins over every other value.')
param fixed object
@description('Settings from the azd environment. An empty value is not chosen: the present one stays.')
param chosen object

var given = filter(items(chosen), setting => (!empty(setting.value)))

resource site 'Microsoft.Web/sites@2024-11-01' existing = {
  name: siteName
}

resource settings 'Microsoft.Web/sites/config@2024-11-01' = {
  parent: site
  name: 'appsettings'
  properties: union(defaults, present, toObject(given, setting => setting.key, setting => setting.value), fixed)
}
