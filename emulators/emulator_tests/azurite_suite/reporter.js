// Writes the outcome of each test to a file. Mocha's own JSON reporter gives no report at all if an error has cycles, as
// those of axios do, with which Azurite tests raw requests.
const fs = require("fs");

module.exports = class {
  constructor(runner, options) {
    const report = { passes: [], pending: [], failures: [] };
    runner.on("pass", (test) => report.passes.push({ fullTitle: test.fullTitle() }));
    runner.on("pending", (test) => report.pending.push({ fullTitle: test.fullTitle() }));
    runner.on("fail", (test, error) => {
      report.failures.push({ fullTitle: test.fullTitle(), err: { message: String(error && error.message) } });
    });
    runner.on("end", () => fs.writeFileSync(options.reporterOption.output, JSON.stringify(report)));
  }
};
