// Long lists: only the rows that are seen are in the page.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const SPARE = 10; // rows above and below what is seen

/**
 * For rows of one height in a scrolling box: { box, from, to, above, below }, heights in pixels.
 * @param {number} count
 * @param {number} height
 */
export function useRows(count, height) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null)),
    [seen, set] = useState([0, 40]);
  const measure = () => {
    if (!box.current) return; // the view has just gone
    const { scrollTop, clientHeight } = box.current;
    const from = Math.max(0, Math.floor(scrollTop / height) - SPARE),
      to = Math.ceil((scrollTop + clientHeight) / height) + SPARE;
    set((before) => (before[0] === from && before[1] === to ? before : [from, to]));
  };
  useLayoutEffect(() => {
    if (box.current) measure();
  }, [count]);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      watch.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, [box.current]);
  const from = Math.min(seen[0], Math.max(0, count - 1)),
    to = Math.min(count, seen[1]);
  return { box, from, to, above: from * height, below: Math.max(0, (count - to) * height) };
}
