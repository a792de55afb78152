// What somebody typed as the body of a request.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parameters, request } from "../../../page/request.js";

test("parameters keep their types, and a name of the language is a name", () => {
  assert.deepEqual(parameters("lr=0.1, epochs=5 name=a=b fast=true"), {
    lr: 0.1,
    epochs: 5,
    name: "a=b",
    fast: true,
  });
  assert.deepEqual(Object.keys(parameters("__proto__=1 constructor=2")), [
    "__proto__",
    "constructor",
  ]);
  assert.throws(() => parameters("lr"), /"lr" is no name=value/);
});

test("a run, a schedule, and a whole job", () => {
  const once = {
    what: "trainer:mnist",
    data: " drops/mnist/a ",
    parameters: "lr=1",
    nodes: "2",
    cluster: "",
    cron: "",
  };
  const run = {
    trainer: "mnist",
    data: "drops/mnist/a",
    parameters: { lr: 1 },
    nodes: 2,
  };
  assert.deepEqual(request(once), run);
  assert.deepEqual(request({ ...once, cron: "0 6 * * 1", timezone: "UTC" }), {
    run,
    cron: "0 6 * * 1",
    timezone: "UTC",
  });
  assert.deepEqual(request({ what: "job:", job: '{"command": "x"}' }), {
    job: { command: "x" },
  });
  assert.throws(
    () => request({ what: "job:", job: "{no" }),
    /The job is no JSON/,
  );
});
