// Nothing: Azurite is started without its telemetry and without SQL, and what these packages bring is 300 MB.
module.exports = {};
