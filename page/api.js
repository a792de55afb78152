// Trainyard's API. What did not change since the last request comes as a 304, and is the very same object.
import { W } from "./words.js";

const BASE = new URL("/api/", location.origin);
const KEY = "trainyard.key"; // of this tab alone; gone with it
const KEPT = 60;
/** @type {Map<string, { tag: string, value: any }>} by address */
const kept = new Map();

export class ApiError extends Error {
  /**
   * @param {number} status of the answer; 0 where nobody answered
   * @param {string} code
   * @param {string} detail
   */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY) || "",
  set: (/** @type {string} */ value) => {
    globalThis.early?.clear(); // those answers are to somebody else
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  },
};

/**
 * @typedef {(string | number)[]} Parts of a path below /api/
 * @typedef {Record<string, string | number | boolean | null | undefined>} Query values that are '' are left out
 * @typedef {{ method?: string, headers?: Record<string, string>, body?: string, signal?: AbortSignal,
 *   accept?: number[] }} Sent
 */

/**
 * @param {Parts} parts
 * @param {Query} query
 */
export function address(parts, query = {}) {
  const url = new URL(parts.map(encodeURIComponent).join("/"), BASE);
  for (const [name, value] of Object.entries(query))
    if (value !== "" && value !== undefined && value !== null) url.searchParams.set(name, String(value));
  return url;
}

/**
 * The answer of a GET; the very same object as before if nothing changed. Raises ApiError.
 * @template {Parts} const P
 * @param {P} parts
 * @param {Query} query
 * @param {{ signal?: AbortSignal, keep?: boolean }} options `keep: false` for an answer that nobody asks for again
 * @returns {Promise<import("../schemas/answers.d.ts").AnswerOf<P>>}
 */
export async function get(parts, query = {}, { signal, keep = true } = {}) {
  const url = address(parts, query),
    known = kept.get(url.href);
  const answer = await send(url, { signal, headers: known ? { "If-None-Match": known.tag } : {} });
  if (answer.status === 304 && known) return known.value;
  const value = await answer.json().catch(() => {
      throw new ApiError(answer.status, "no_json", W.trouble.noJson);
    }),
    tag = answer.headers.get("etag");
  kept.delete(url.href);
  if (tag && keep) kept.set(url.href, { tag, value });
  if (kept.size > KEPT) kept.delete(kept.keys().next().value ?? "");
  return value;
}

/**
 * @param {Parts} parts
 * @param {unknown} [body]
 * @param {Query} query
 * @returns {Promise<any>}
 */
export async function post(parts, body, query = {}) {
  return (await send(address(parts, query), { method: "POST", ...asJson(body) })).json();
}

/**
 * @param {Parts} parts
 * @param {unknown} body
 * @param {Query} query
 * @returns {Promise<any>}
 */
export async function put(parts, body, query = {}) {
  return (await send(address(parts, query), { method: "PUT", ...asJson(body) })).json();
}

/**
 * @param {Parts} parts
 * @param {Query} query
 * @returns {Promise<any>}
 */
export async function remove(parts, query = {}) {
  return (await send(address(parts, query), { method: "DELETE" })).json();
}

/**
 * Bytes of a log: { bytes, size, complete, ranks }.
 * @param {string} run
 * @param {number} rank
 * @param {number} first
 * @param {number} last
 */
export async function logRange(run, rank, first, last) {
  const url = address(["runs", run, "logs"], { rank });
  const answer = await send(url, { headers: { Range: `bytes=${first}-${last}` }, accept: [416] });
  const size = Number((answer.headers.get("content-range") || "").split("/")[1]) || 0;
  const bytes = answer.status === 416 ? new Uint8Array() : new Uint8Array(await answer.arrayBuffer());
  return { bytes, size, ranks: ranksOf(answer), complete: answer.headers.get("x-log-complete") === "true" };
}

const ranksOf = (/** @type {Response} */ answer) =>
  (answer.headers.get("x-ranks") || "").split(",").filter(Boolean).map(Number);
/** @type {(body: unknown) => Sent} */
const asJson = (body) =>
  body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };

/**
 * The answer that early.js asked for, once.
 * @param {string} method
 * @param {string} address
 */
function answerFromEarly(method, address) {
  const answer = method === "GET" ? globalThis.early?.get(address) : undefined;
  globalThis.early?.delete(address);
  return answer;
}

/**
 * @param {URL} url
 * @param {Sent} sent
 * @returns {Promise<Response>}
 */
async function send(url, { method = "GET", headers = {}, body, signal, accept = [] }) {
  /** @type {Record<string, string>} */
  const own = key.get() ? { "x-functions-key": key.get() } : {};
  let answer;
  try {
    answer = await (answerFromEarly(method, url.href) ??
      fetch(url, { method, body, signal, headers: { ...own, ...headers }, cache: "no-store", redirect: "error" }));
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", W.trouble.unreachable);
  }
  if (answer.ok || answer.status === 304 || accept.includes(answer.status)) return answer;
  const problem = await answer.json().catch(() => ({}));
  if (answer.status === 401) dispatchEvent(new Event("signedout"));
  throw new ApiError(answer.status, problem.code || "", problem.detail || W.trouble.status(answer.status));
}
