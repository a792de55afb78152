// Where the focus goes when what had it disappears, and when somebody goes back to a view.
/** @type {(node: any) => any[]} */
const within = (node) => (node && node !== document.body ? [node, ...within(node.parentElement)] : []);
/** @type {any[]} */
let places = [];

document.addEventListener("focusin", ({ target }) => (places = within(target)));

// A button that disappears by its own press takes the focus with it. The focus then moves to something near the button,
// or to the heading of the view, not to the top of the page.
function stayNear() {
  const [left, ...around] = places;
  if (document.activeElement !== document.body || !left || (left.isConnected && !left.disabled)) return;
  const near = around.find((node) => node.isConnected);
  if (!near) return;
  const isView = near.id === "content" || near.parentElement?.id === "content",
    place = isView ? (near.querySelector("h1") ?? near) : near;
  if (!place.hasAttribute("tabindex")) place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

// Each entry of the browser's history has a number in its state. A view that was left by a link has the focus on that
// link again when somebody returns to the entry.
const PATIENCE = 5000; // milliseconds in which the link may appear
let present = history.state?.entry ?? entered(0),
  last = present,
  /** @type {{ selector: string, until: number } | null} */
  wanted = null;
const leftBy = new Map(); // number of an entry -> selector of the link

/** @param {number} number */
function entered(number) {
  history.replaceState({ entry: number }, "");
  return number;
}

/** @param {Element | null} node */
function selectorOf(node) {
  /** @type {HTMLElement | null | undefined} */
  const row = node?.closest("main [data-row]");
  if (row) return `[data-row="${CSS.escape(row.dataset.row ?? "")}"] a.row`;
  const link = node?.closest("main a[href]");
  return link && `main a[href="${CSS.escape(link.getAttribute("href") ?? "")}"]`;
}

function moved() {
  if (history.state?.entry === present) return; // only what is behind the ? changed
  const selector = selectorOf(document.activeElement);
  if (selector) leftBy.set(present, selector);
  const returned = history.state?.entry;
  present = returned ?? entered((last += 1));
  const known = returned !== undefined && leftBy.get(present);
  wanted = known ? { selector: known, until: Date.now() + PATIENCE } : null;
}
for (const event of ["popstate", "hashchange", "moved"]) addEventListener(event, moved);

function returnTo() {
  if (!wanted || Date.now() > wanted.until) return;
  /** @type {HTMLElement | null} */
  const link = document.querySelector(wanted.selector);
  if (document.activeElement?.matches("body, main h1, #content") && link) link.focus({ preventScroll: true });
  if (link) wanted = null;
}

const changes = { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled"] };
const placeFocus = () => {
  stayNear();
  returnTo();
};
new MutationObserver(() => requestAnimationFrame(placeFocus)).observe(document, changes);
