// What the view Today says of runs: how far a run is, and what a completed run is compared with.
import assert from "node:assert/strict";
import { test } from "node:test";
import { doneShare } from "../../../page/record.js";
import { W } from "../../../page/words.js";

const series = (values) =>
  new Map(
    Object.entries(values).map(([name, last]) => [
      name,
      [
        [0, 0],
        [9, last],
      ],
    ]),
  );

test("a run's own curves say how far the run is", () => {
  assert.equal(doneShare(series({ epoch: 2 }), 8), 0.25);
  assert.equal(doneShare(series({ done: 0.5, epoch: 2 }), 8), 0.5);
  assert.equal(doneShare(series({ epoch: 9 }), 8), 1);
  assert.equal(doneShare(series({ loss: 2 }), 8), null);
  assert.equal(doneShare(series({ epoch: 2 }), null), null);
  assert.equal(doneShare(undefined, 8), null);
});

test("a completed run is better or worse than, equal to, or only compared with another", () => {
  const { champion, compared } = W.today;
  assert.equal(
    compared(true, false, champion("digits/2"), "82.00%"),
    "better than the champion digits/2 (82.00%)",
  );
  assert.equal(
    compared(false, false, "run-1", "0.5"),
    "worse than run-1 (0.5)",
  );
  assert.equal(compared(null, true, "run-1", "0.5"), "equal to run-1 (0.5)");
  assert.equal(compared(null, false, "run-1", "7"), "compared with run-1 (7)");
});
