// A button that goes by its own press takes the focus with it. It then stays near, not at the top of the page.
const within = (node) => (node && node !== document.body ? [node, ...within(node.parentElement)] : []);
let places = [];

document.addEventListener("focusin", ({ target }) => (places = within(target)));

function stayNear() {
  const [left, ...around] = places;
  if (document.activeElement !== document.body || !left || (left.isConnected && !left.disabled)) return;
  const near = around.find((node) => node.isConnected);
  if (!near) return;
  const place = near.id === "content" ? (near.querySelector("h1") ?? near) : near;
  if (!place.hasAttribute("tabindex")) place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

const changes = { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled"] };
new MutationObserver(() => requestAnimationFrame(stayNear)).observe(document, changes);
