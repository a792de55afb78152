// Light, dark, or as the system says. The choice is kept in this browser.
const KEY = "trainyard.theme",
  ORDER = ["auto", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");

export function chosen() {
  const kept = localStorage.getItem(KEY) ?? "";
  return ORDER.includes(kept) ? kept : "auto";
}

export function apply() {
  const name = chosen();
  document.documentElement.dataset.theme = name === "auto" ? (system.matches ? "dark" : "light") : name;
  dispatchEvent(new Event("theme"));
}

export function turn() {
  localStorage.setItem(KEY, ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length]);
  apply();
}

system.addEventListener("change", apply);
apply();
