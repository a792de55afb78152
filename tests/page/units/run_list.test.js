// The list of runs: trials under their sweeps, parameters that differ, columns.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  chosenColumns,
  differing,
  grouped,
  STANDARD,
  toggled,
  unfolded,
} from "../../../page/run_list.js";

const row = (run, more = {}) => ({
  run,
  sweep: "",
  trials: null,
  parameters: {},
  ...more,
});
const names = (rows) => rows.map(({ run }) => run);

test("trials stand under their sweep, and only while it is open", () => {
  const rows = [
    row("t1", { sweep: "s" }),
    row("other"),
    row("t0", { sweep: "s" }),
    row("s", { trials: 2 }),
  ];
  assert.deepEqual(names(unfolded(rows, new Set())), ["other", "s"]);
  assert.deepEqual(names(unfolded(rows, new Set(["s"]))), [
    "other",
    "s",
    "t1",
    "t0",
  ]);
});

test("a trial whose sweep is not in the list stands for itself", () => {
  assert.deepEqual(names(unfolded([row("t1", { sweep: "s" })], new Set())), [
    "t1",
  ]);
});

test("parameters that differ are columns, the most varied first, at most four; hostile names are names", () => {
  const rows = [0, 1, 2].map((i) => {
    const parameters = JSON.parse(
      `{"__proto__": ${i}, "same": 1, "constructor": ${i % 2}}`,
    );
    return row(`r${i}`, { parameters });
  });
  assert.deepEqual(differing(rows), ["__proto__", "constructor"]);
  const many = ["a", "b"].map((name, i) =>
    row(name, { parameters: { v: i, w: i, x: i, y: i, z: i } }),
  );
  assert.deepEqual(differing(many), ["v", "w", "x", "y"]);
});

test("the address names the columns, else the standard ones and what the rows have", () => {
  assert.deepEqual([...chosenColumns("", ["lr"])], [...STANDARD, "lr"]);
  assert.deepEqual([...chosenColumns("cost,why", ["lr"])], ["cost", "why"]);
  assert.deepEqual([...toggled(new Set(["a"]), "b")], ["a", "b"]);
  assert.deepEqual([...toggled(new Set(["a", "b"]), "b")], ["a"]);
});

test("rows stand under a heading for each group, in the order of the first rows, and trials under their sweep", () => {
  const made = (run, experiment, more = {}) =>
    row(run, {
      experiment,
      state: "completed",
      owner: "",
      drop: "",
      created_at: "2026-03-01T12:00:00Z",
      ...more,
    });
  const rows = [
    made("a1", "a"),
    made("s", "b", { trials: 1, state: "running" }),
    made("t", "trials", { sweep: "s" }),
    made("a2", "a", { state: "failed" }),
    made("evil", "__proto__"),
  ];
  const shown = grouped(rows, "experiment");
  assert.deepEqual(
    shown.map(({ run, group }) => run || `[${group}]`),
    ["[a]", "a1", "a2", "[b]", "s", "t", "[__proto__]", "evil"],
  );
  assert.deepEqual(
    [...shown[0].states],
    [
      ["completed", 1],
      ["failed", 1],
    ],
  );
  assert.equal(shown[3].size, 2);
  assert.deepEqual(
    grouped(rows, "experiment", new Set(["a", "__proto__"])).map(
      ({ run, group, size }) => run || `[${group} ${size}]`,
    ),
    ["[a 2]", "[b 2]", "s", "t", "[__proto__ 1]"],
  );
  assert.equal(grouped(rows, undefined), rows);
  assert.equal(grouped(rows, "constructor"), rows);
});
