// What a chart shows after a key.
import assert from "node:assert/strict";
import { test } from "node:test";
import { zoomed } from "../../../page/zoom.js";

const ENDS = [0, 100];

test("+ halves the part around its middle, and - doubles the part until everything is shown", () => {
  assert.deepEqual(zoomed("+", ENDS, null), [25, 75]);
  assert.deepEqual(zoomed("=", ENDS, [25, 75]), [37.5, 62.5]);
  assert.deepEqual(zoomed("-", ENDS, [37.5, 62.5]), [25, 75]);
  assert.deepEqual(zoomed("-", ENDS, [0, 25]), [0, 37.5]);
  assert.equal(zoomed("-", ENDS, [25, 75]), null);
  assert.equal(zoomed("-", ENDS, null), null);
});

test("arrows move a part by a quarter of its width, and not beyond the ends", () => {
  assert.deepEqual(zoomed("ArrowRight", ENDS, [20, 60]), [30, 70]);
  assert.deepEqual(zoomed("ArrowRight", ENDS, [55, 95]), [60, 100]);
  assert.deepEqual(zoomed("ArrowLeft", ENDS, [4, 44]), [0, 40]);
  assert.equal(zoomed("ArrowLeft", ENDS, null), null);
});

test("0 shows everything; other keys are not the chart's", () => {
  assert.equal(zoomed("0", ENDS, [20, 60]), null);
  assert.equal(zoomed("s", ENDS, [20, 60]), undefined);
});
