// Asks for what the first view shows, and for the view's own scripts, while the page's script is on its way; api.js
// takes the answers from here. Addresses are those that the views ask for. One that no view takes would be a request
// too many, which a test counts. The build replaces globalThis.SCRIPTS by the scripts of each view that page.js does
// not load at once.
globalThis.early = new Map();
{
  const [path, query] = location.hash.replace(/^#?\/?/, "").split("?"),
    [view = "today", ...parts] = path.split("/").filter(Boolean),
    given = new URLSearchParams(query);
  /** @type {Map<string, string[]>} */
  const scripts = new Map(Object.entries(globalThis.SCRIPTS)),
    here = /** @type {HTMLScriptElement} */ (document.currentScript);
  for (const name of scripts.get(view) || []) {
    const link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = new URL(name, here.src).href;
    document.head.append(link);
  }
  /** @typedef {string[][]} Values name and value each */
  /** @type {(names: string[]) => Values} */
  const of = (names) => names.filter((name) => given.get(name)).map((name) => [name, given.get(name) ?? ""]);
  /** @type {Record<string, () => [string, Values][]>} */
  const firsts = {
    today: () => [["today", []]],
    runs: () => [["rows", [...of(["state", "experiment", "owner", "tag", "where"]), ["limit", "100"]]]],
    run: () => [
      [
        `runs/${parts[0]}/live`,
        [
          ["rank", given.get("rank") || "0"],
          ["offset", "0"],
        ],
      ],
    ],
    drops: () => [[parts.length > 1 ? `drops/${parts.join("/")}` : "drops", parts.length > 1 ? [] : of(["route"])]],
    clusters: () => [
      ["clusters", []],
      ["leases", []],
      ["nodes", [["hours", "24"]]],
    ],
    schedules: () => [
      ["schedules", []],
      ["notices", []],
    ],
    storage: () => [["removals", []]],
    health: () => [["status", []]],
    settings: () => [["settings", []]],
    keys: () => [["model-key", []]],
    models: () => [["models", []]],
    money: () => [["costs", [["by", given.get("by") || "project"], ...of(["since"])]]],
    compare: () => (given.get("runs") ? [["curves", [...of(["runs"]), ["records", "true"]]]] : []),
    submit: () => [
      ["trainers", []],
      ["routes", []],
    ],
  };
  const key = sessionStorage.getItem("trainyard.key"),
    headers = /** @type {Record<string, string>} */ (key ? { "x-functions-key": key } : {});
  for (const [path, query] of [["me", []], ...((Object.hasOwn(firsts, view) && firsts[view]()) || [])]) {
    const url = new URL(`/api/${path}${query.length ? `?${new URLSearchParams(query)}` : ""}`, location.origin).href;
    const answer = fetch(url, { headers, cache: "no-store", redirect: "error" });
    answer.catch(() => {}); // who takes it hears of it
    globalThis.early.set(url, answer);
  }
}
