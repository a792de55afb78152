// Small parts that several views share.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { adviceOf, ago, clock, shortClock, visible } from "./format.js";
import { own } from "./own.js";
import { areAbsolute } from "./times.js";
import { W } from "./words.js";

/** @typedef {import("preact").ComponentChildren} Children */

/**
 * Say something to a screen reader, without a change that others see.
 * @param {string} text
 */
export function announce(text) {
  const place = document.getElementById("spoken");
  if (place) place.textContent = text;
}

/** @param {{ state: string }} props */
export const State = ({ state }) => (
  <span class={`state ${own(W.states, state) ? state : "broken"}`}>{own(W.states, state) || visible(state)}</span>
);

/** @param {{ at: string | null | undefined }} props */
export const When = ({ at }) =>
  at ? (
    <time
      datetime={at}
      onPointerEnter={(e) => {
        e.currentTarget.title = clock(at);
      }}
    >
      {areAbsolute() ? shortClock(at) : ago(at)}
    </time>
  ) : (
    W.nothing
  );

/** @param {{ children: any }} props */
export const Text = ({ children }) => visible(children);

/** @param {{ text: string, label?: string }} props `label`: what a screen reader says instead of the text */
export function Copy({ text, label = visible(text) }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    set(true);
    announce(W.copied);
    setTimeout(() => set(false), 1500);
  };
  return (
    <button type="button" class="quiet small" onClick={copy} aria-label={`${W.copy}: ${label}`}>
      {done ? W.copied : W.copy}
    </button>
  );
}

/** @param {{ text: string }} props */
export const Command = ({ text }) => (
  <div class="command">
    <code>{visible(text)}</code>
    <Copy text={text} />
  </div>
);

/** @param {{ steps: string[] }} props `steps`: what to do, each in words or as `words: command` */
export const Advice = ({ steps }) => (
  <ul class="advice">
    {steps.map((step) => {
      const { words, command } = adviceOf(step);
      return (
        <li key={step}>
          {visible(words)}
          {command && <Command text={command} />}
        </li>
      );
    })}
  </ul>
);

/**
 * What a view shows before its data, or instead of it.
 * @param {{ error: Error | null, value: unknown, what?: string }} props
 */
export function Trouble({ error, value, what = W.loading }) {
  if (error && value === undefined)
    return (
      <p class="notice bad" role="alert">
        {visible(error.message)}
      </p>
    );
  if (value === undefined)
    return (
      <p class="notice" role="status">
        {what}
      </p>
    );
  return null;
}

/**
 * Escape closes what is open, and nothing around it.
 * @type {(close: () => void) => (event: KeyboardEvent) => void}
 */
const onEscape = (close) => (event) => {
  if (event.key !== "Escape") return;
  event.stopPropagation();
  close();
};

/**
 * A form behind a button: `children(close)` gives its fields, `submit(fields, close)` sends them. The first field has
 * the focus; Escape and the last button close the form, and the focus returns to the button.
 * @param {{ label: string, children: (close: () => void) => Children,
 *   submit?: (fields: any, close: () => void) => unknown }} props
 */
export function Unfolding({ label, submit, children }) {
  const [open, set] = useState(false),
    form = useRef(/** @type {HTMLFormElement | null} */ (null)),
    origin = useRef(/** @type {HTMLButtonElement | null} */ (null)),
    wasOpen = useRef(false),
    close = () => set(false);
  useEffect(() => {
    if (open)
      /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector("input, select, textarea"))?.focus();
    else if (wasOpen.current) origin.current?.focus();
    wasOpen.current = open;
  }, [open]);
  if (!open)
    return (
      <button type="button" ref={origin} onClick={() => set(true)}>
        {label}
      </button>
    );
  const send = (/** @type {any} */ event) => {
    event.preventDefault();
    submit?.(event.target.elements, close);
  };
  return (
    <form class="inline" ref={form} onSubmit={send} onKeyDown={onEscape(close)}>
      {children(close)}
      <button type="button" class="quiet" onClick={close}>
        {W.close}
      </button>
    </form>
  );
}

/**
 * A question before something that can't be taken back, in place of the button that asks it.
 * @param {{ label: string, question: string, yes: string, no: string, act: () => unknown, kind?: string }} props
 */
export function Ask({ label, question, yes, no, act, kind = "" }) {
  const [open, set] = useState(false),
    [busy, work] = useState(false),
    first = useRef(/** @type {HTMLButtonElement | null} */ (null)),
    origin = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    if (open) first.current?.focus();
  }, [open]);
  const close = () => {
    set(false);
    setTimeout(() => origin.current?.focus());
  };
  const run = async () => {
    work(true);
    try {
      await act();
    } finally {
      work(false);
      close();
    }
  };
  if (!open)
    return (
      <button type="button" ref={origin} class={kind} onClick={() => set(true)}>
        {label}
      </button>
    );
  return (
    <span class="ask" role="group" aria-label={question} onKeyDown={onEscape(close)}>
      <span>{question}</span>
      <button type="button" ref={first} class="danger" disabled={busy} onClick={run}>
        {yes}
      </button>
      <button type="button" class="quiet" onClick={close}>
        {no}
      </button>
    </span>
  );
}

/** @param {{ title: string, close: () => void, children: Children }} props */
export function Dialog({ title, close, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="dialog-title">
      <header>
        <h2 id="dialog-title">{title}</h2>
        <button type="button" class="quiet" onClick={close}>
          {W.close}
        </button>
      </header>
      {children}
    </dialog>
  );
}

/**
 * Rows of what is known, without those that say nothing.
 * @param {{ rows: any[][] }} props a name and a value each
 */
export function Facts({ rows }) {
  const given = rows.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return (
    <dl class="facts">
      {given.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === "string" ? visible(value) : value}</dd>
        </div>
      ))}
    </dl>
  );
}

/**
 * The outcome of a button: what was said, and whether it was an error. `attempt` says whether it went well.
 * @returns {[Children, (act: () => Promise<string | void>) => Promise<boolean>]}
 */
export function useOutcome() {
  const [outcome, set] = useState(/** @type {{ said: string, bad?: boolean } | null} */ (null));
  const attempt = async (/** @type {() => Promise<string | void>} */ act) => {
    set(null);
    try {
      const said = await act();
      if (said) {
        set({ said });
        announce(said);
      }
      return true;
    } catch (error) {
      set({ said: error instanceof Error ? error.message : String(error), bad: true });
      return false;
    }
  };
  const shown = outcome && (
    <p class={`notice ${outcome.bad ? "bad" : "good"}`} role={outcome.bad ? "alert" : "status"}>
      {visible(outcome.said)}
    </p>
  );
  return [shown, attempt];
}

/**
 * A picture drawn for its width, so that its words stay as large as others. `draw(width)` gives its parts.
 * @param {{ label: string, height: number, kind?: string, draw: (width: number) => Children }} props
 */
export function Drawing({ label, height, kind = "timeline", draw }) {
  const box = useRef(/** @type {SVGSVGElement | null} */ (null)),
    [width, set] = useState(800);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => entry.contentRect.width && set(Math.round(entry.contentRect.width)));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return (
    <svg ref={box} class={kind} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {draw(width)}
    </svg>
  );
}

/** @param {{ name: string, columns: Children[], rows: Children[][] }} props */
export const Table = ({ name, columns, rows }) => (
  <div class="scroll" tabindex={0} role="region" aria-label={name}>
    <table>
      <thead>
        <tr>
          {columns.map((column, at) => (
            <th key={at} scope="col">
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells, row) => (
          <tr key={row}>
            {cells.map((cell, at) => (
              <td key={at}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
