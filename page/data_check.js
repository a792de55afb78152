// What a route's check says about files before their upload: by names and sizes, and by content where sizes are equal.
import { post } from "./api.js";
import { W } from "./words.js";

const MOST_FILES = 100_000, // that the API takes in one request
  MOST_SUMS = 5000, // files, and below bytes, that are read to find equal ones
  MOST_READ = 256 << 20;

/** @typedef {{ name: string, file: File }[]} Files */

/**
 * { verdict, refusals, warnings }; no verdict if nothing was checked, and then a warning may say why.
 * @param {string} route
 * @param {Files} files
 * @param {AbortSignal} signal
 */
export async function checkFiles(route, files, signal) {
  if (files.length > MOST_FILES) return unchecked(W.data.tooMany);
  try {
    const { data } = await post(["routes", route, "check"], { files: await described(files, signal) });
    return { refusals: [], warnings: [], ...data };
  } catch (error) {
    signal.throwIfAborted();
    return unchecked(error instanceof Error ? error.message : String(error));
  }
}

const unchecked = (/** @type {string} */ why) => ({ refusals: [], warnings: [W.data.unchecked(why)] });

/**
 * [{ name, size, md5 }], where `md5` is the SHA-256 of a file that has the size of another, or "".
 * @param {Files} files
 * @param {AbortSignal} signal
 */
async function described(files, signal) {
  const times = new Map(),
    found = [];
  for (const { file } of files) times.set(file.size, (times.get(file.size) || 0) + 1);
  let sums = MOST_SUMS,
    left = MOST_READ;
  for (const { name, file } of files) {
    const read = crypto.subtle && times.get(file.size) > 1 && file.size > 0 && file.size <= left && sums > 0;
    if (read) {
      sums--;
      left -= file.size;
      signal.throwIfAborted();
    }
    found.push({ name, size: file.size, md5: read ? await sum(file) : "" });
  }
  return found;
}

/** @param {File} file */
async function sum(file) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
