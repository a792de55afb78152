// Which metric speaks for a run, where there is room for one.
const FIRST = [/^(val|valid|validation|eval|test)[_/]?(acc|accuracy|map|f1|auc)/i, /(acc|accuracy|map|f1|auc)/i, /^(val|valid|validation|eval|test)[_/]?loss/i, /loss/i];

export function primary(names) {
  for (const wanted of FIRST) { const found = names.find((name) => wanted.test(name)); if (found) return found; }
  return names[0] || "";
}
