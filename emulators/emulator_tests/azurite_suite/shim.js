// Loaded by mocha before Azurite's tests: where they start a server of Azurite's, this starts the emulator instead.
const Module = require("module");
const net = require("net");
const fs = require("fs");
const os = require("os");
const path = require("path");
const { once } = require("events");
const { spawn } = require("child_process");
const readline = require("readline");

const SERVERS = { BlobServer: "blob", SqlBlobServer: "blob", QueueServer: "queue", TableServer: "table" };
const PORTS = { blob: 11000, queue: 11001, table: 11002 };
const load = Module._load;

Module._load = function (request, ...rest) {
  const found = load.call(this, request, ...rest);
  const service = SERVERS[path.basename(request)];
  if (service && !found.isEmulator) Object.assign(found, { default: emulator(service), isEmulator: true });
  return found;
};

function emulator(service) {
  return class {
    constructor(config = {}) {
      this.config = config;
      this.host = config.host || "127.0.0.1";
      this.port = config.port || PORTS[service];
      this.status = "Closed";
      this.state = fs.mkdtempSync(path.join(os.tmpdir(), "azurite-suite-"));
    }

    getStatus() {
      return this.status;
    }

    getHttpServerAddress() {
      return `${this.config.cert ? "https" : "http"}://${this.host}:${this.port}`;
    }

    async start() {
      const { cert, oauth } = this.config;
      const file = path.join(this.state, "config.json");
      const settings = { state: path.join(this.state, "data"), published_key: true, public_access: true };
      if (JSON.stringify(this.config).includes('"isVersioningEnabled":true')) settings.versioning = true;
      if (oauth) settings.oauth = oauth;
      if (cert) settings.certs = path.join(os.tmpdir(), "azurite-suite-certs");
      else settings[`${service}_port`] = this.port;
      fs.writeFileSync(file, JSON.stringify(settings));
      const log = fs.openSync(path.join(this.state, "log"), "a");
      const argv = ["-m", "emulators.storage", "--config", file];
      this.child = spawn(process.env.EMULATOR_PYTHON, argv, { stdio: ["ignore", "pipe", log] });
      const lines = readline.createInterface({ input: this.child.stdout });
      const [line] = await Promise.race([once(lines, "line"), once(this.child, "exit").then(() => [""])]);
      if (!line) throw new Error(`The emulator did not start:\n${fs.readFileSync(path.join(this.state, "log"))}`);
      if (cert) await this.relay(new URL(JSON.parse(line)[`${service}_tls_url`]).port);
      this.status = "Running";
    }

    // The tests expect HTTPS at the port where they expect HTTP otherwise.
    async relay(port) {
      this.server = net.createServer((from) => {
        const to = net.connect(port, this.host);
        from.on("error", () => to.destroy()).on("close", () => to.destroy());
        to.on("error", () => from.destroy()).on("close", () => from.destroy());
        from.pipe(to).pipe(from);
      });
      this.server.listen(this.port, this.host);
      await once(this.server, "listening");
    }

    async close() {
      if (this.server) this.server.close();
      if (this.child && this.child.exitCode === null) {
        this.child.kill("SIGTERM");
        await once(this.child, "exit");
      }
      this.status = "Closed";
    }

    async clean() {
      fs.rmSync(this.state, { recursive: true, force: true });
      fs.mkdirSync(this.state);
    }
  };
}
