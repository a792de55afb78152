// A folder from this machine straight to storage: signed addresses from the API, then each file by itself or in blocks.
// What is there already stays, also blocks of a large file; so the same folder chosen again goes on where it was.
import { post } from "./api.js";

const BATCH = 200,
  AT_ONCE = 4,
  BLOCK = 8 << 20,
  TRIES = 5,
  MARKER = "_SUCCESS";
const CLOSERS = new Set(["job.yaml", "job.yml", "job.json"]); // they close a drop too, so they come after the data

/** [{ name, file }] of what was dropped: a folder's files without the folder's own name. */
export async function fromDrop(items) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean),
    found = [];
  for (const entry of entries) await walk(entry, "", found);
  const name = entries.length === 1 && entries[0].isDirectory ? entries[0].name : "";
  return { name, files: name ? found.map((one) => ({ ...one, name: one.name.slice(name.length + 1) })) : found };
}

async function walk(entry, prefix, found) {
  if (entry.isFile) {
    found.push({ name: prefix + entry.name, file: await new Promise((yes, no) => entry.file(yes, no)) });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // a folder's entries come in hundreds
    const some = await new Promise((yes, no) => reader.readEntries(yes, no));
    if (!some.length) return;
    for (const one of some) await walk(one, `${prefix}${entry.name}/`, found);
  }
}

export function fromInput(list) {
  const files = [...list].map((file) => ({
    name: (file.webkitRelativePath || file.name).split("/").slice(1).join("/") || file.name,
    file,
  }));
  return { name: list[0]?.webkitRelativePath.split("/")[0] || "", files };
}

/** Upload all files, then the job files, then the marker. `told({ bytes, files, kept })` hears of progress. */
export async function upload(route, name, files, told, signal) {
  const wanted = files.filter((one) => one.name !== MARKER),
    state = { bytes: 0, files: 0, kept: 0 };
  for (const part of [wanted.filter((one) => !CLOSERS.has(one.name)), wanted.filter((one) => CLOSERS.has(one.name))])
    for (let at = 0; at < part.length; at += BATCH)
      await batch(route, name, part.slice(at, at + BATCH), state, told, signal);
  await batch(
    route,
    name,
    [{ name: MARKER, file: new File([], MARKER) }],
    { bytes: 0, files: 0, kept: 0 },
    () => {},
    signal,
  );
}

async function batch(route, name, files, state, told, signal) {
  const asked = files.map(({ name: path, file }) => ({
    name: path,
    size: file.size,
    modified: file.lastModified / 1000,
  }));
  const { files: targets, headers = {} } = await patiently(
    () => post(["drops", route, name, "uploads"], { files: asked }),
    signal,
  );
  const queue = files.map((one, i) => ({ ...one, url: targets[i].url, headers }));
  const work = async () => {
    for (let one = queue.shift(); one; one = queue.shift()) {
      signal.throwIfAborted();
      let sent = 0;
      const more = (bytes) => {
        sent += bytes;
        state.bytes += bytes;
        told({ ...state });
      };
      if (one.url) await send(one, more, signal);
      else state.kept++;
      more(one.file.size - sent);
      state.files++;
      told({ ...state });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function send({ url, file, headers }, more, signal) {
  if (file.size <= BLOCK) {
    await patiently(() => put(url, file, { ...headers, "x-ms-blob-type": "BlockBlob" }, signal), signal);
    more(file.size);
    return;
  }
  const count = Math.ceil(file.size / BLOCK),
    ids = Array.from({ length: count }, (_, i) =>
      btoa(`${file.lastModified}-${file.size}-${String(i).padStart(6, "0")}`.padStart(48, "0")),
    );
  const there = await blocks(url);
  for (const [i, id] of ids.entries()) {
    const part = file.slice(i * BLOCK, (i + 1) * BLOCK);
    if (!there.has(id))
      await patiently(() => put(`${url}&comp=block&blockid=${encodeURIComponent(id)}`, part, {}, signal), signal);
    more(part.size);
  }
  const latest = ids.map((id) => `<Latest>${id}</Latest>`).join("");
  const list = `<?xml version="1.0" encoding="utf-8"?><BlockList>${latest}</BlockList>`;
  await patiently(
    () => put(`${url}&comp=blocklist`, list, { ...headers, "content-type": "text/plain" }, signal),
    signal,
  );
}

/** The blocks that storage has of this blob from an upload that broke off. */
async function blocks(url) {
  const answer = await fetch(`${url}&comp=blocklist&blocklisttype=uncommitted`);
  return new Set(
    answer.ok ? [...(await answer.text()).matchAll(/<Name>([^<]+)<\/Name>/g)].map((match) => match[1]) : [],
  );
}

async function put(url, body, headers, signal) {
  const answer = await fetch(url, { method: "PUT", body, headers, signal });
  if (!answer.ok)
    throw Object.assign(new Error(`${answer.status} ${answer.headers.get("x-ms-error-code") || answer.statusText}`), {
      status: answer.status,
    });
}

/** Again and again while the network or storage is away, at most TRIES times; what is refused is not tried again. */
async function patiently(act, signal) {
  for (let tries = 1; ; tries++) {
    try {
      signal.throwIfAborted();
      return await act();
    } catch (error) {
      if (signal.aborted || tries === TRIES || (error.status >= 400 && error.status < 500 && error.status !== 429))
        throw error;
      await new Promise((go) => setTimeout(go, 500 * 2 ** tries));
    }
  }
}
