// The order in which curves are shown. Which metric speaks for a run is the API's to say: `headline`, or `best`.
const FIRST = [
  /^(val|valid|validation|eval|test)[_/]?(acc|accuracy|map|f1|auc)/i,
  /(acc|accuracy|map|f1|auc)/i,
  /^(val|valid|validation|eval|test)[_/]?loss/i,
  /loss/i,
];

/**
 * Those that say how good a model is first, others in their order.
 * @param {string[]} names
 */
export function ordered(names) {
  const rank = (/** @type {string} */ name) => {
    const at = FIRST.findIndex((wanted) => wanted.test(name));
    return at < 0 ? FIRST.length : at;
  };
  return [...names].sort((a, b) => rank(a) - rank(b));
}
