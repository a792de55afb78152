// Look again: often while something changes, seldom when nothing does, not at all in the background.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api.js";

const SOON = 2000,
  SELDOM = 10_000,
  LONGEST = 30_000; // milliseconds

/**
 * @template T
 * @typedef {{ value: T | undefined, error: ApiError | null, fault?: unknown }} Seen
 */

/**
 * Call `look(signal)` at once, whenever `deps` change, and again and again. Its value is the news; the same object as
 * before means that nothing changed, and the pace slows down. `still(value)` says that nothing will ever change.
 * Returns { value, error, again }: the last good value stays while looks fail, and `error` says why they do. Any other
 * error than the API's is the page's own fault: it is thrown to whoever shows the view.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T> | T} look
 * @param {unknown[]} deps
 * @param {{ soon?: number, still?: (value: T) => boolean }} options
 */
export function useLive(look, deps, { soon = SOON, still = () => false } = {}) {
  const [state, set] = useState(/** @type {Seen<T>} */ ({ value: undefined, error: null }));
  const wake = useRef(() => {});
  useEffect(() => {
    const stop = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    /** @type {T | undefined} */
    let value;
    let pause = soon,
      asking = false;
    set({ value: undefined, error: null });
    const later = (/** @type {number} */ wait) => {
      clearTimeout(timer);
      if (!stop.signal.aborted && !document.hidden) timer = setTimeout(once, wait);
    };
    const once = async () => {
      if (asking) return;
      asking = true;
      try {
        const found = await look(stop.signal);
        pause = found === value ? Math.min(pause * 1.25, SELDOM) : soon;
        if (found !== value || failed) set({ value: found, error: null });
        value = found;
        failed = false;
        if (!still(found)) later(pause);
      } catch (error) {
        if (stop.signal.aborted) return;
        if (!(error instanceof ApiError)) {
          set({ value: undefined, error: null, fault: error });
          return;
        }
        failed = true;
        pause = Math.min(pause * 2, LONGEST);
        set((before) => ({ ...before, error }));
        if (error.status === 0 || error.status >= 500 || error.status === 429) later(pause);
      } finally {
        asking = false;
      }
    };
    let failed = false;
    const seen = () => {
      if (!document.hidden && !(value !== undefined && still(value))) {
        pause = soon;
        later(0);
      }
    };
    wake.current = () => {
      pause = soon;
      later(0);
    };
    document.addEventListener("visibilitychange", seen);
    addEventListener("online", seen);
    once();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
      removeEventListener("online", seen);
    };
  }, deps);
  if (state.fault) throw state.fault;
  return { ...state, again: () => wake.current() };
}
