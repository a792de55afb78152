// Values as people read them, and maps by hostile names.
import assert from "node:assert/strict";
import { test } from "node:test";
import { adviceOf, begins, count, inZone, number, tick, visible } from "../../../page/format.js";
import { Lines } from "../../../page/lines.js";
import { mapOf, own } from "../../../page/own.js";
import { jobName } from "../../../page/record.js";
import { columns, summary } from "../../../page/series.js";

process.env.LANG = "de_DE.UTF-8";

test("only an object's own names are its names", () => {
  const answer = JSON.parse('{"__proto__": 1, "a": 2}');
  assert.equal(own(answer, "__proto__"), 1);
  assert.equal(own(answer, "constructor"), undefined);
  assert.equal(own(null, "a"), undefined);
  assert.deepEqual(
    [...mapOf(answer)],
    [
      ["__proto__", 1],
      ["a", 2],
    ].sort(),
  );
});

test("whole numbers and others use one point and one comma, whatever the reader's locale", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(number(1234.5), "1234.5");
  assert.equal(number(null), "–");
});

test("moments in sentences are in the reader's zone, and the rest of the sentence stays", () => {
  const text = inZone("Held until 2026-01-31 12:00 UTC (a demo).");
  assert.match(text, /^Held until .+ \(a demo\)\.$/);
  assert.doesNotMatch(text, /UTC/);
  assert.equal(inZone("2026-01-31"), "2026-01-31");
});

test("what hides or turns text is shown", () => {
  assert.equal(visible("a\u202eb\u001b"), "a⟨U+202E⟩b␛");
});

test("a log is lines of bytes, also where a line comes in two pieces", () => {
  const lines = new Lines(),
    encode = (text) => new TextEncoder().encode(text);
  lines.append(encode("one\ntw"));
  lines.append(encode("o\nthree"));
  assert.deepEqual(
    [0, 1, 2].map((i) => lines.text(i, 100)),
    ["one", "two", "three"],
  );
});

test("a series is sorted by x, and its summary names its least and greatest point", () => {
  const { x, y } = columns(
    [
      [2, 5],
      [1, 7],
      [3, 6],
    ],
    ([step]) => step,
  );
  assert.deepEqual(
    [[...x], [...y]],
    [
      [1, 2, 3],
      [7, 5, 6],
    ],
  );
  const { first, last, least, greatest, greatestAt } = summary({ x, y });
  assert.deepEqual([first, last, least, greatest, greatestAt], [7, 6, 5, 7, 1]);
  assert.equal(summary({ x: [], y: [] }), null);
});

test("an accuracy's axis has percentages, like its values", () => {
  assert.equal(tick("test_accuracy", 0.7), "70%");
  assert.equal(tick("test_accuracy", 0.9125), "91.25%");
  assert.equal(tick("loss", 0.7), "0.7");
});

test("a step of an advice has its command apart, to be copied", () => {
  const step = "Continue it from its last checkpoint: python3 trainyard.py continue run-1";
  assert.deepEqual(adviceOf(step), {
    words: "Continue it from its last checkpoint:",
    command: "python3 trainyard.py continue run-1",
  });
  assert.deepEqual(adviceOf("Use a smaller batch."), { words: "Use a smaller batch.", command: "" });
});

test("a waiting run says when it begins, or behind which runs of unknown length", () => {
  const now = Date.parse("2026-03-01T12:00:00Z");
  const wait = { expected_at: "2026-03-01T12:02:00+00:00", after: [] };
  assert.equal(begins(wait, now), "It probably begins in about 2 min.");
  assert.equal(
    begins({ expected_at: null, after: ["a\u202e", "b"] }, now),
    "It begins after a⟨U+202E⟩ and 1 more, of unknown length.",
  );
  assert.equal(begins({ expected_at: null, after: [] }, now), "");
});

test("a job of an elastic run is named by its number, also before all nodes have come, and on dedicated nodes", () => {
  assert.deepEqual(
    [0, 2, 5, 1_000_001, 1_002_003].map((number) => jobName(number, 4)),
    ["m0-1", "m2-1", "m1-2", "m1000-1", "m1002-3"],
  );
});
