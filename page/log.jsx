// The log of a rank: a million lines, of which only those that are seen are in the page.
import { bytes, count, visible } from "./format.js";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { pieces } from "./ansi.js";
import { announce } from "./parts.jsx";
import { refine } from "./route.js";
import { W } from "./words.js";

const LINE = 18,
  SPARE = 30,
  TALLEST = 20e6; // pixels; browsers end at 33 million
const CUT = 2000; // characters of one line that are shown
const CHARACTER = 7.53; // pixels, until one was measured

/** `ranks`: [[rank, name]] to choose from, of the `kind` rank, step or job. */
export function Log({ reader, ranks, rank, kind, query }) {
  const [, redraw] = useState(0),
    box = useRef(null),
    [place, setPlace] = useState({ top: 0, height: 0, width: 0 });
  const [wrap, setWrap] = useState(query.wrap === "1"),
    [follow, setFollow] = useState(!query.line && !reader.complete);
  const { lines } = reader,
    line = Number(query.line) - 1,
    heights = useRef({});
  const columns = Math.max(20, Math.floor((place.width - 100) / CHARACTER));
  const layout = measured(lines, wrap ? columns : 0, heights.current);
  useEffect(() => {
    let asked = 0;
    const listener = () => {
      asked ||= requestAnimationFrame(() => {
        asked = 0;
        redraw((n) => n + 1);
      });
    };
    reader.listeners.add(listener);
    if (query.line) reader.want();
    return () => {
      reader.listeners.delete(listener);
      cancelAnimationFrame(asked);
    };
  }, [reader]);
  const measure = () => {
    if (!box.current) return;
    const { scrollTop, clientHeight, clientWidth } = box.current;
    setPlace((before) =>
      before.top === scrollTop && before.height === clientHeight && before.width === clientWidth
        ? before
        : { top: scrollTop, height: clientHeight, width: clientWidth },
    );
  };
  useLayoutEffect(() => {
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const tall = Math.min(layout.total, TALLEST),
    ratio = tall > place.height ? Math.max(1, (layout.total - place.height) / (tall - place.height)) : 1;
  const reveal = (i) => {
    box.current.scrollTop = Math.max(0, (layout.top(i) - place.height / 3) / ratio);
  };
  const revealed = useRef(NaN);
  useLayoutEffect(() => {
    if (follow) box.current.scrollTop = box.current.scrollHeight;
    else if (line >= 0 && line < lines.count && revealed.current !== line && place.height) {
      revealed.current = line;
      reveal(line);
    }
  });
  const links = useLinks(box, lines.count);
  const logical = place.top * ratio,
    from = Math.max(0, layout.at(logical) - SPARE),
    until = Math.min(lines.count, layout.at(logical + place.height) + SPARE);
  const inSight = (i) => i >= from && i < until,
    tabbable = [links.at, line].find(inSight) ?? Math.min(lines.count - 1, layout.at(logical));
  const search = useSearch(reader, query.find || "", reveal);
  const scrolled = () => {
    measure();
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    if (scrollTop + clientHeight < scrollHeight - 4 * LINE) setFollow(false);
    else if (reader.offset < reader.size) reader.want();
  };
  return (
    <>
      <div class="log-tools">
        {ranks.length > 1 && (
          <label>
            {W.log[kind]}
            <select value={String(rank)} onChange={(e) => refine({ rank: e.currentTarget.value, line: "" })}>
              {ranks.map(([value, name]) => (
                <option key={value} value={String(value)}>
                  {visible(name)}
                </option>
              ))}
            </select>
          </label>
        )}
        <label>
          {W.log.search}
          <input
            type="search"
            value={query.find || ""}
            onInput={(e) => {
              setFollow(false);
              refine({ find: e.currentTarget.value });
            }}
            onKeyDown={(e) => e.key === "Enter" && search.step(e.shiftKey ? -1 : 1)}
          />
        </label>
        {query.find && (
          <>
            <span role="status" class="dim">
              {search.found ? W.log.found(search.found.length) : W.loading}
            </span>
            <button type="button" onClick={() => search.step(-1)}>
              {W.log.previous}
            </button>
            <button type="button" onClick={() => search.step(1)}>
              {W.log.next}
            </button>
          </>
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={wrap}
            onChange={(e) => {
              setWrap(e.currentTarget.checked);
              refine({ wrap: e.currentTarget.checked ? "1" : "" });
            }}
          />
          {W.log.wrap}
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={follow}
            onChange={(e) => {
              setFollow(e.currentTarget.checked);
              if (e.currentTarget.checked) reader.want();
            }}
          />
          {W.log.follow}
        </label>
        <span class="dim log-size">
          {W.log.lines(count(lines.count))}
          {reader.offset < reader.size ? ` · ${W.log.loading(Math.floor((100 * reader.offset) / reader.size))}` : ""}
        </span>
      </div>
      {lines.full && <p class="notice">{W.log.tooLong(bytes(lines.length))}</p>}
      <div
        class={`log ${wrap ? "wrap" : ""} ${lines.count ? "" : "empty"}`}
        ref={box}
        onScroll={scrolled}
        tabindex={0}
        role="region"
        aria-label={W.run.log}
        onKeyDown={links.onKey}
      >
        {lines.count === 0 && <p class="dim">{W.log.empty}</p>}
        <div style={{ height: `${tall}px` }} />
        <div class="log-lines" style={{ top: `${place.top - (logical - layout.top(from))}px` }}>
          {Array.from({ length: Math.max(0, until - from) }, (_, i) => (
            <Line
              key={from + i}
              number={from + i}
              text={lines.text(from + i, 4 * CUT)}
              size={lines.size(from + i)}
              here={from + i === line}
              tabbable={from + i === tabbable}
              found={query.find && search.set?.has(from + i) ? query.find : ""}
            />
          ))}
        </div>
      </div>
    </>
  );
}

function Line({ number, text, size, here, tabbable, found }) {
  const shown = text.length > CUT ? text.slice(0, CUT) : text,
    left = size - new TextEncoder().encode(shown).length;
  const select = (event) => {
    event.preventDefault();
    refine({ line: String(number + 1) });
    announce(W.log.linked(number + 1));
  };
  return (
    <div class={`log-line ${here ? "here" : ""} ${found ? "found" : ""}`}>
      <a
        href={`#line-${number + 1}`}
        data-line={number}
        onClick={select}
        aria-label={W.log.link(number + 1)}
        tabindex={tabbable ? 0 : -1}
      >
        {number + 1}
      </a>
      <pre>
        {pieces(shown).map(({ text: part, kind }, i) => (
          <span key={i} class={kind}>
            {found && kind !== "esc" ? marked(part, found) : part}
          </span>
        ))}
        {left > 1 && text.length > CUT ? <span class="dim">{W.log.cut(count(left))}</span> : ""}
      </pre>
    </div>
  );
}

/** The links of lines by keyboard: Tab goes to one of them, the arrows go to the line before and after. */
function useLinks(box, count) {
  const [at, set] = useState(-1);
  const onKey = (event) => {
    const link = event.target.closest("a[data-line]"),
      by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!link || !by) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(count - 1, Number(link.dataset.line) + by));
    box.current.querySelector(`a[data-line="${next}"]`)?.focus();
    set(next);
  };
  return { at, onKey };
}

function marked(text, wanted) {
  const low = text.toLowerCase(),
    parts = [];
  let at = 0;
  for (let hit = low.indexOf(wanted.toLowerCase()); hit >= 0; hit = low.indexOf(wanted.toLowerCase(), at)) {
    parts.push(text.slice(at, hit), <mark>{text.slice(hit, hit + wanted.length)}</mark>);
    at = hit + wanted.length;
  }
  return [...parts, text.slice(at)];
}

/** Where lines are: `total` pixels, `top` of a line, the line `at` a height. Wrapped ones take several rows. */
function measured(lines, columns, known) {
  if (!columns)
    return { total: lines.count * LINE, top: (i) => i * LINE, at: (y) => Math.min(lines.count, Math.floor(y / LINE)) };
  if (known.columns !== columns || known.lines !== lines)
    Object.assign(known, { columns, lines, count: 0, tops: new Float64Array(1024) });
  if (known.tops.length <= lines.count) {
    const tops = new Float64Array(2 * lines.count + 1);
    tops.set(known.tops.subarray(0, known.count + 1));
    known.tops = tops;
  }
  for (let i = Math.max(0, known.count - 1); i < lines.count; i++)
    known.tops[i + 1] = known.tops[i] + LINE * Math.max(1, Math.ceil(Math.min(lines.size(i), CUT + 30) / columns));
  known.count = lines.count;
  const { tops } = known;
  const at = (y) => {
    let low = 0,
      high = lines.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tops[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return { total: tops[lines.count], top: (i) => tops[i], at };
}

function useSearch(reader, wanted, reveal) {
  const [found, set] = useState(null),
    at = useRef(-1),
    done = reader.lines.count;
  useEffect(() => {
    let stopped = false;
    set(null);
    at.current = -1;
    if (!wanted) return undefined;
    reader.want();
    const timer = setTimeout(async () => {
      const hits = await reader.lines.search(wanted, () => stopped);
      if (!stopped) set({ hits, set: new Set(hits) });
    }, 200);
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [wanted, reader, reader.offset >= reader.size ? done : Math.floor(done / 50_000)]);
  const step = (by) => {
    if (!found?.hits.length) return;
    at.current = (at.current + by + found.hits.length) % found.hits.length;
    refine({ line: String(found.hits[at.current] + 1) });
    reveal(found.hits[at.current]);
  };
  return { found: found?.hits, set: found?.set, step };
}
