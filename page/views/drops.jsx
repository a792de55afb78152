// The drops: what collects, what was rejected and how to fix it; and a folder dropped here becomes a run.
import { get, post } from "../api.js";
import { checkFiles } from "../data_check.js";
import { bytes, clock, count, shell, visible } from "../format.js";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLive } from "../live.js";
import { announce, Ask, Command, Facts, State, Trouble, useOutcome, When } from "../parts.jsx";
import { go, refine, to } from "../route.js";
import { fromDrop, fromInput, upload } from "../upload.js";
import { W } from "../words.js";
import { DataCard, Findings } from "./data_card.jsx";

const STATES = ["open", "sealing", "sealed", "rejected", "broken"];

const FOLDER = { webkitdirectory: true }; // an attribute of an input that the types of Preact lack

export function Drops({ route, me }) {
  if (route.parts.length >= 2) return <One route={route.parts[0]} name={route.parts.slice(1).join("/")} me={me} />;
  return <List query={route.query} me={me} />;
}

function List({ query, me }) {
  const { value, error } = useLive((signal) => get(["drops"], { route: query.route }, { signal }), [query.route]);
  const shown = (value || [])
    .filter((drop) => !query.state || drop.state === query.state)
    .sort((a, b) => (b.sealed_at || b.opened_at).localeCompare(a.sealed_at || a.opened_at));
  return (
    <section>
      <h1 tabindex={-1}>{W.drops.title}</h1>
      {me.may_change ? <Zone /> : <p class="notice">{W.readonly}</p>}
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <label>
          {W.drops.state}
          <select value={query.state || ""} onChange={(e) => refine({ state: e.currentTarget.value })}>
            <option value="">{W.all}</option>
            {STATES.map((state) => (
              <option key={state} value={state}>
                {W.states[state]}
              </option>
            ))}
          </select>
        </label>
        <label>
          {W.drops.route}
          <input
            type="search"
            value={query.route || ""}
            onChange={(e) => refine({ route: e.currentTarget.value.trim() })}
          />
        </label>
      </form>
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value && shown.length === 0 && <p class="notice">{W.drops.empty}</p>}
      {value && (
        <p class="dim">
          <a href="#/batchai">{W.batchai.link}</a>
        </p>
      )}
      {shown.length > 0 && (
        <div class="scroll tall" tabindex={0} role="region" aria-label={W.drops.title}>
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">{W.drops.drop}</th>
                <th scope="col">{W.drops.state}</th>
                <th scope="col">{W.drops.why}</th>
                <th scope="col" class="number wide">
                  {W.drops.files}
                </th>
                <th scope="col" class="number wide">
                  {W.drops.size}
                </th>
                <th scope="col" class="wide">
                  {W.drops.run}
                </th>
                <th scope="col" class="number wide">
                  {W.drops.changed}
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((drop) => (
                <tr key={drop.drop} data-row={drop.drop}>
                  <th scope="row">
                    <a class="row" href={to("drops", drop.drop.split("/"))}>
                      {visible(drop.drop)}
                    </a>
                  </th>
                  <td>
                    <State state={drop.state} />
                  </td>
                  <td>{visible(drop.why)}</td>
                  <td class="number wide">{drop.blobs ? count(drop.files ?? drop.blobs) : ""}</td>
                  <td class="number wide">{drop.bytes ? bytes(drop.bytes) : ""}</td>
                  <td class="wide">{drop.run && <a href={to("run", [drop.run])}>{visible(drop.run)}</a>}</td>
                  <td class="number wide">
                    <When at={drop.sealed_at || drop.opened_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Zone() {
  const [over, setOver] = useState(false),
    [picked, pick] = useState(null),
    [progress, setProgress] = useState(null),
    [said, setSaid] = useState(null), // by the check of these files for this route
    [fault, setFault] = useState("");
  const [routes, setRoutes] = useState([]),
    [route, setRoute] = useState(""),
    [name, setName] = useState(""),
    stop = useRef(null);
  useEffect(() => {
    get(["routes"]).then(
      (found) => {
        const names = found.map((one) => one.route);
        setRoutes(names);
        setRoute((before) => before || names[0] || "");
      },
      (error) => setFault(error.message),
    );
  }, []);
  const choose = (found) => {
    setFault(found.files.length ? "" : W.drops.noFiles);
    setProgress(null);
    setSaid(null);
    pick(found.files.length ? found : null);
    if (found.name) setName(found.name.replace(/[^\w.-]+/g, "-"));
  };
  const dropped = async (event) => {
    event.preventDefault();
    setOver(false);
    choose(await fromDrop(event.dataTransfer.items));
  };
  const start = async (event) => {
    event.preventDefault();
    const before = await get(["drops", route, name]).catch(() => null),
      { signal } = (stop.current = new AbortController());
    setFault("");
    setProgress({ bytes: 0, files: 0, kept: 0, busy: true });
    try {
      const found = said || (await checkFiles(route, picked.files, signal));
      setSaid(found);
      if (!said && found.verdict === "refused") {
        setProgress(null);
        return;
      }
      await upload(route, name, picked.files, (now) => setProgress({ ...now, busy: true }), signal);
      announce(W.drops.done);
      go(to("drops", [route, name], { after: String(before?.generation ?? 0) }));
    } catch (error) {
      setFault(signal.aborted ? W.drops.stopped : error.message);
      setProgress((now) => ({ ...now, busy: false }));
    }
  };
  const size = picked ? picked.files.reduce((sum, one) => sum + one.file.size, 0) : 0;
  return (
    <div
      class={`zone ${over ? "over" : ""}`}
      onDragOver={(e) => {
        e.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={dropped}
    >
      <p>
        <b>{W.drops.zone}</b> {W.drops.or}{" "}
        <label class="pickfile">
          <span class="button">{W.drops.choose}</span>
          <input
            type="file"
            class="sr"
            {...FOLDER}
            multiple
            onChange={(e) => choose(fromInput(e.currentTarget.files))}
          />
        </label>
      </p>
      {picked && (
        <>
          <form onSubmit={start}>
            <label>
              {W.drops.route}
              <select
                value={route}
                onChange={(e) => {
                  setRoute(e.currentTarget.value);
                  setSaid(null);
                }}
                required
              >
                {routes.map((one) => (
                  <option key={one} value={one}>
                    {one}
                  </option>
                ))}
              </select>
            </label>
            <label>
              {W.drops.name}
              <input
                value={name}
                onInput={(e) => setName(e.currentTarget.value)}
                required
                aria-describedby="name-help"
              />
            </label>
            {progress?.busy ? (
              <button type="button" onClick={() => stop.current.abort()}>
                {W.drops.stop}
              </button>
            ) : (
              <button type="submit">{progress ? W.drops.resume : said ? W.data.anyway : W.drops.start}</button>
            )}
          </form>
          <p id="name-help" class="dim">
            {W.drops.ready(count(picked.files.length), bytes(size))}. {W.drops.nameHelp}
          </p>
        </>
      )}
      {progress && (
        <>
          <progress max={size || 1} value={progress.bytes} aria-label={W.drops.start} />
          <p role="status">
            {said || !progress.busy
              ? W.drops.going(
                  bytes(progress.bytes),
                  bytes(size),
                  count(progress.files),
                  count(picked?.files.length || 0),
                )
              : W.data.checking}
            {progress.kept ? `, ${W.drops.kept(progress.kept)}` : ""}
          </p>
        </>
      )}
      {said && (
        <Findings
          said={said}
          title={said.verdict === "refused" ? W.data.refused : W.data.findings}
          more={said.verdict === "refused" && <p>{W.data.repairs}</p>}
        />
      )}
      {fault && (
        <p class="notice bad" role="alert">
          {visible(fault)}
        </p>
      )}
    </div>
  );
}

function One({ route, name, me }) {
  const after = Number(new URLSearchParams(location.hash.split("?")[1]).get("after") ?? -1),
    title = `${route}/${name}`;
  const { value: drop, error } = useLive(
    (signal) =>
      get(["drops", route, name], {}, { signal }).catch((fault) => {
        if (fault.status === 404 && after >= 0) return WAITS;
        throw fault;
      }),
    [title],
  );
  const closed = drop?.state === "sealed" && drop.generation > after,
    became = closed ? drop.run : "",
    unchanged = drop?.code === "unchanged" && Boolean(drop.run), // an upload after the last seal changed nothing
    told = useRef("");
  useEffect(() => {
    if (became && after >= 0 && told.current !== became) {
      told.current = became;
      announce(`${W.drops.becomes} ${became}`);
    }
  }, [became]);
  const [outcome, attempt] = useOutcome();
  const again = () =>
    attempt(async () => {
      go(to("run", [(await post(["drops", route, name, "again"])).run]));
    });
  const generations = useGenerations(route, name, drop?.generation),
    card = useCard(title, drop?.generation);
  if (!drop || drop === WAITS)
    return (
      <section>
        <h1 tabindex={-1}>{visible(title)}</h1>
        <Trouble error={error} value={undefined} what={drop ? W.drops.waiting : W.loading} />
        <p>
          <a href="#/drops">{W.drops.all}</a>
        </p>
      </section>
    );
  return (
    <section>
      <div class="head">
        <h1 tabindex={-1}>{visible(title)}</h1>
        <State state={drop.state} />
        <div class="actions">
          <a class="button" href="#/drops">
            {W.drops.all}
          </a>
          {me.may_change && drop.state === "sealed" && drop.run && (
            <Ask label={W.drops.again} question={W.drops.againAsk} yes={W.drops.againYes} no={W.run.no} act={again} />
          )}
        </div>
      </div>
      {outcome}
      {error && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      {drop.why && !unchanged && <p class={`notice ${drop.state === "rejected" ? "bad" : ""}`}>{visible(drop.why)}</p>}
      {drop.state === "rejected" && (
        <>
          <p>{W.drops.fix}</p>
          <Command text={`python3 trainyard.py drop FOLDER ${shell(title)} --follow`} />
        </>
      )}
      {after >= 0 && !closed && drop.state !== "rejected" && (
        <p class="notice" role="status">
          {W.drops.waiting}
        </p>
      )}
      {drop.run && (
        <p class="notice good">
          {unchanged ? W.drops.unchanged : W.drops.becomes} <a href={to("run", [drop.run])}>{visible(drop.run)}</a>
        </p>
      )}
      <section class="card">
        <Facts
          rows={[
            [W.drops.generation, drop.generation ? String(drop.generation) : ""],
            [W.drops.files, drop.blobs ? count(drop.files ?? drop.blobs) : ""],
            [W.drops.size, drop.bytes ? bytes(drop.bytes) : ""],
            [W.drops.opened, drop.opened_at && clock(drop.opened_at)],
            [W.drops.sealed, drop.sealed_at && clock(drop.sealed_at)],
            [W.drops.content, drop.fingerprint],
          ]}
        />
      </section>
      {card && (
        <section class="card">
          <h2>{W.data.title(drop.generation)}</h2>
          <DataCard said={card} />
        </section>
      )}
      {generations?.length > 0 && (
        <section class="card">
          <h2>{W.drops.generations}</h2>
          <Generations title={title} list={generations} />
        </section>
      )}
    </section>
  );
}

/** @type {Partial<import("../../schemas/answers.d.ts").DropAnswer>} */
const WAITS = {}; // of this drop no event has arrived yet

/** The data card of a generation; null if none is kept. */
function useCard(title, number) {
  const [card, set] = useState(null);
  useEffect(() => {
    set(null);
    if (number) get(["data", "card"], { of: `${title}@${number}` }).then(set, () => {});
  }, [title, number]);
  return card;
}

function useGenerations(route, name, number) {
  const [list, set] = useState(null);
  useEffect(() => {
    if (number)
      get(["drops", route, name, "generations"]).then(
        (found) => set(found),
        () => set(null),
      );
  }, [route, name, number]);
  return list;
}

function Generations({ title, list }) {
  const [files, setFiles] = useState(null);
  const show = (number) =>
    get(["data", "files"], { of: `${title}@${number}` }).then(
      (found) => setFiles({ number, ...found }),
      (error) => setFiles({ number, files: [], note: error.message }),
    );
  return (
    <>
      <table>
        <thead>
          <tr>
            <th scope="col">{W.drops.generation}</th>
            <th scope="col">{W.drops.why}</th>
            <th scope="col" class="wide">
              {W.drops.run}
            </th>
            <th scope="col" class="number">
              {W.drops.sealed}
            </th>
            <th scope="col">
              <span class="sr">{W.drops.data}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map((one) => (
            <tr key={one.number}>
              <td>{one.number}</td>
              <td>{visible(one.why || "")}</td>
              <td class="wide">{one.run && <a href={to("run", [one.run])}>{visible(one.run)}</a>}</td>
              <td class="number">
                <When at={one.sealed_at} />
              </td>
              <td>
                <button type="button" class="small" onClick={() => show(one.number)}>
                  {W.drops.data}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {files && (
        <>
          <h3>{W.drops.filesOf(files.number)}</h3>
          {files.note && <p class="notice bad">{visible(files.note)}</p>}
          <div class="scroll" tabindex={0} role="region" aria-label={W.drops.filesOf(files.number)}>
            <table>
              <tbody>
                {(files.files || []).map((file) => (
                  <tr key={file.path}>
                    <td class="mono">{visible(file.path)}</td>
                    <td class="number">{bytes(file.size)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </>
  );
}
