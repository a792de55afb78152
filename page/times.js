// Moments as "3 h ago" or by date and clock. The choice is kept in this browser.
const KEY = "trainyard.times";
let absolute = localStorage.getItem(KEY) === "absolute";

export const areAbsolute = () => absolute;

/** Switch between the two; every open view hears the event `times`. */
export function turnTimes() {
  absolute = !absolute;
  localStorage.setItem(KEY, absolute ? "absolute" : "relative");
  dispatchEvent(new Event("times"));
}
