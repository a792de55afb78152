// The lines of a model's history: each kind says what happened, and an undone move says so.

import assert from "node:assert/strict";
import { test } from "node:test";
import { W } from "../../../page/words.js";

test("each kind of line has words of its own", () => {
  const of = (what) =>
    W.models.change({ what, alias: "production", run: "r-1" }, 4, 3);
  assert.equal(of("alias"), "production 4 → 3");
  assert.equal(of("undo"), "production 4 → 3 (undone)");
  assert.equal(of("lost"), "production stays 4: run r-1 lost");
  assert.equal(of("version"), "version 3 made");
  assert.equal(of("let go"), "version 4 released");
  assert.equal(of("signed"), "version 3 signed again");
});
