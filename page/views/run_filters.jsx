// How the list of runs is narrowed, and what it shows: filters, columns, and views that are kept under a name.
import { useEffect, useMemo, useState } from "preact/hooks";
import { visible } from "../format.js";
import { own } from "../own.js";
import { Copy } from "../parts.jsx";
import { refine } from "../route.js";
import { GROUPS, STATES } from "../run_list.js";
import { W } from "../words.js";

export function Filters({ query, runs }) {
  const known = (of) => [...new Set(runs.map(of).filter(Boolean))].sort(),
    [experiments, owners] = useMemo(() => [known((run) => run.experiment), known((run) => run.owner)], [runs]);
  const field = (name, label, hint, list) => (
    <label>
      {label}
      <input
        type={name === "q" ? "search" : "text"}
        value={query[name] || ""}
        placeholder={hint || ""}
        list={list && `known-${name}`}
        onChange={(e) => refine({ [name]: e.currentTarget.value })}
        onInput={name === "q" ? (e) => refine({ q: e.currentTarget.value }) : undefined}
      />
      {list && (
        <datalist id={`known-${name}`}>
          {list.map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      )}
    </label>
  );
  return (
    <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
      {field("q", W.runs.filter)}
      <label>
        {W.runs.state}
        <select value={query.state || ""} onChange={(e) => refine({ state: e.currentTarget.value })}>
          <option value="">{W.all}</option>
          {STATES.map((state) => (
            <option key={state} value={state}>
              {W.states[state]}
            </option>
          ))}
        </select>
      </label>
      {field("experiment", W.runs.experiment, "", experiments)}
      {field("owner", W.runs.owner, "", owners)}
      {field("tag", W.runs.tag, W.runs.tagHint)}
      <Where value={query.where || ""} />
      <label>
        {W.runs.group}
        <select value={query.group || ""} onChange={(e) => refine({ group: e.currentTarget.value })}>
          <option value="">{W.none}</option>
          {[...GROUPS.keys()].map((name) => (
            <option key={name} value={name}>
              {W.runs.groups[name]}
            </option>
          ))}
        </select>
      </label>
    </form>
  );
}

/** A condition in the grammar of `runs --where`, which the API alone reads: it is sent when it is complete. */
function Where({ value }) {
  const [text, set] = useState(value);
  useEffect(() => set(value), [value]);
  const send = () => text !== value && refine({ where: text.trim() });
  return (
    <label>
      {W.runs.where}
      <input
        type="search"
        value={text}
        placeholder={W.runs.whereHint}
        onInput={(e) => (e.currentTarget.value ? set(e.currentTarget.value) : refine({ where: "" }))}
        onChange={send}
        onKeyDown={(e) => e.key === "Enter" && send()}
      />
    </label>
  );
}

/** Which columns the list has: the address keeps them, so that a view can be shared. */
export function Columns({ columns, all }) {
  const change = (name, wanted) =>
    refine({ columns: all.filter((one) => (one === name ? wanted : columns.has(one))).join(",") || "none" });
  return (
    <details class="menu">
      <summary>{W.runs.columns}</summary>
      <div>
        {all.map((name) => (
          <label class="check" key={name}>
            <input
              type="checkbox"
              checked={columns.has(name)}
              onChange={(e) => change(name, e.currentTarget.checked)}
            />
            {own(W.runs, name) ?? visible(name)}
          </label>
        ))}
        <button type="button" class="small" onClick={() => refine({ columns: "" })}>
          {W.runs.standard}
        </button>
      </div>
    </details>
  );
}

const SAVED = "trainyard.views"; // of this browser: [[name, address]]
const savedViews = () => {
  try {
    return JSON.parse(localStorage.getItem(SAVED)) || [];
  } catch {
    return [];
  }
};

/** The filter, sorting, grouping and columns of the present address under a name, in this browser. */
export function SavedViews() {
  const [list, set] = useState(savedViews);
  const keep = (views) => {
    localStorage.setItem(SAVED, JSON.stringify(views));
    set(views);
  };
  const save = (event) => {
    event.preventDefault();
    const name = event.target.elements.name.value.trim();
    keep([...list.filter(([other]) => other !== name), [name, location.hash]]);
    event.target.reset();
  };
  return (
    <details class="menu">
      <summary>{W.runs.views}</summary>
      <div>
        {list.map(([name, address]) => (
          <span key={name} class="saved">
            <a href={address}>{visible(name)}</a>
            <Copy text={new URL(address, location.href).href} label={W.runs.address(visible(name))} />
            <button
              type="button"
              class="quiet small"
              aria-label={W.runs.forget(visible(name))}
              onClick={() => keep(list.filter(([other]) => other !== name))}
            >
              ×
            </button>
          </span>
        ))}
        <p>
          {W.runs.share} <Copy text={location.href} />
        </p>
        <form class="note" onSubmit={save}>
          <label>
            {W.runs.saveAs}
            <input name="name" required maxlength={60} />
          </label>
          <button type="submit">{W.runs.save}</button>
        </form>
      </div>
    </details>
  );
}
