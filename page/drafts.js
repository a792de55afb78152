// Texts that somebody is writing survive a new sign-in: they are kept in this tab until they are sent.
import { useState } from "preact/hooks";

const PREFIX = "trainyard.draft.",
  BACK = "trainyard.back";

/**
 * A text under a name, as useState has it. Setting it to "" removes the draft.
 * @param {string} name
 * @returns {[string, (text: string) => void]}
 */
export function useDraft(name) {
  const [text, set] = useState(() => sessionStorage.getItem(PREFIX + name) ?? "");
  const keep = (/** @type {string} */ written) => {
    if (written) sessionStorage.setItem(PREFIX + name, written);
    else sessionStorage.removeItem(PREFIX + name);
    set(written);
  };
  return [text, keep];
}

/** Remove all drafts: somebody else may sign in next. */
export function forgetDrafts() {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
}

/** Remember the address of the view: a sign-in with Microsoft Entra ID leaves the page and returns without it. */
export const rememberAddress = () => sessionStorage.setItem(BACK, location.hash);

/** Return to the address that was remembered, unless the present address names a view. */
export function returnToAddress() {
  const back = sessionStorage.getItem(BACK);
  sessionStorage.removeItem(BACK);
  if (back && !location.hash) location.replace(back);
}
