// The address holds the whole view, behind the #, so that it can be shared and never reaches a server's log.
import { useEffect, useRef, useState } from "preact/hooks";

/** @typedef {{ view: string, parts: string[], query: Record<string, string> }} Route */

/** @returns {Route} */
export function read(hash = location.hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { view: parts[0] || "today", parts: parts.slice(1), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The address of a view.
 * @param {string} view
 * @param {(string | number)[]} parts
 * @param {import("./api.js").Query} query
 */
export function to(view, parts = [], query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const tail = given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${tail}`;
}

/** @param {string} address */
export function go(address, { replace = false } = {}) {
  if (replace) history.replaceState(history.state, "", address);
  else history.pushState(null, "", address);
  dispatchEvent(new Event("moved"));
}

/**
 * Change what is behind the ? of the present view.
 * @param {import("./api.js").Query} changes
 */
export function refine(changes) {
  const { view, parts, query } = read();
  go(to(view, parts, { ...query, ...changes }), { replace: true });
}

export function useRoute() {
  const [route, set] = useState(read),
    rendered = useRef(location.hash);
  useEffect(() => {
    const readAddress = () => set(read());
    if (location.hash !== rendered.current) readAddress(); // it changed between the first picture and the listeners
    addEventListener("hashchange", readAddress);
    addEventListener("popstate", readAddress);
    addEventListener("moved", readAddress);
    return () => {
      removeEventListener("hashchange", readAddress);
      removeEventListener("popstate", readAddress);
      removeEventListener("moved", readAddress);
    };
  }, []);
  return route;
}
