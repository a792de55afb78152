// The body of a request for a run, from what somebody typed.

/**
 * Parameters as people type them, `lr=0.1 epochs=5`, as an object without a prototype of its own names.
 * @param {string} text
 * @returns {Record<string, string | number | boolean>}
 */
export function parameters(text) {
  const pairs = text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((pair) => pair.split(/=(.*)/s).slice(0, 2));
  for (const [name, value] of pairs) if (!name || value === undefined) throw new Error(`"${name}" is no name=value.`);
  return Object.fromEntries(pairs.map(([name, value]) => [name, valued(value)]));
}

/**
 * A value as JSON has it, where the text is one.
 * @param {string} text
 */
export const valued = (text = "") =>
  text === "true" || text === "false"
    ? text === "true"
    : text !== "" && Number.isFinite(Number(text))
      ? Number(text)
      : text;

/**
 * The body for `POST /api/runs`, or for `POST /api/schedules` if there is a cron expression.
 * @param {Record<string, string>} given fields of the form: `what` is trainer:NAME, template:NAME or job:
 */
export function request(given) {
  const [kind, name] = given.what.split(/:(.*)/s),
    known = parameters(given.parameters || "");
  const run = {
    [kind]: kind === "job" ? document(given.job) : name,
    ...(given.data ? { data: given.data.trim() } : {}),
    ...(Object.keys(known).length ? { parameters: known } : {}),
    ...(given.nodes ? { nodes: Number(given.nodes) } : {}),
    ...(given.cluster ? { cluster: given.cluster.trim() } : {}),
  };
  return given.cron ? { run, cron: given.cron.trim(), timezone: given.timezone.trim() } : run;
}

/** @param {string} text */
function document(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The job is no JSON: ${error instanceof Error ? error.message : error}`);
  }
}
