// The page's frame: who looks at it, where they are, and the keys that work everywhere.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import "./focus.js";
import "./theme.js";
import { get, key } from "./api.js";
import { forgetDrafts, rememberAddress, returnToAddress } from "./drafts.js";
import { render } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { visible } from "./format.js";
import { own } from "./own.js";
import { Dialog } from "./parts.jsx";
import { go, to, useRoute } from "./route.js";
import { chosen, turn } from "./theme.js";
import { areAbsolute, turnTimes } from "./times.js";
import { Runs } from "./views/runs.jsx";
import { Today } from "./views/today.jsx";
import { W } from "./words.js";

// The views that open at once come with the frame. A browser loads the others when somebody opens them.
/** @type {Map<string, View>} */
const AT_ONCE = new Map(Object.entries({ today: Today, runs: Runs }));
/** @type {Map<string, () => Promise<View>>} */
const LOADED = new Map(
  Object.entries({
    run: () => import("./views/run.jsx").then((m) => m.Run),
    submit: () => import("./views/submit.jsx").then((m) => m.Submit),
    compare: () => import("./views/compare.jsx").then((m) => m.Compare),
    drops: () => import("./views/drops.jsx").then((m) => m.Drops),
    clusters: () => import("./views/clusters.jsx").then((m) => m.Clusters),
    money: () => import("./views/money.jsx").then((m) => m.Money),
    models: () => import("./views/models.jsx").then((m) => m.Models),
    schedules: () => import("./views/schedules.jsx").then((m) => m.Schedules),
    storage: () => import("./views/storage.jsx").then((m) => m.Storage),
    batchai: () => import("./views/batchai.jsx").then((m) => m.BatchAI),
    health: () => import("./views/health.jsx").then((m) => m.Health),
    settings: () => import("./views/settings.jsx").then((m) => m.Settings),
    keys: () => import("./views/keys.jsx").then((m) => m.Keys),
    docs: () => import("./views/docs.jsx").then((m) => m.Docs),
  }),
);
const JUMPS = {
  a: "today",
  r: "runs",
  c: "compare",
  d: "drops",
  l: "clusters",
  m: "money",
  s: "schedules",
  e: "models",
  t: "storage",
  h: "health",
  i: "settings",
  k: "keys",
  o: "docs",
};
// The six places, each with its views, of which the first is the place's own.
/** @type {[string, string[]][]} */
const PLACES = [
  ["today", ["today"]],
  ["runs", ["runs", "compare", "submit"]],
  ["data", ["drops", "storage", "batchai"]],
  ["models", ["models"]],
  ["clusters", ["clusters", "money"]],
  ["administration", ["schedules", "health", "settings", "keys"]],
];
/** @returns {[string, string[]] | undefined} */
const placeOf = (view) => PLACES.find(([, views]) => views.includes(view === "run" ? "runs" : view));
// Addresses that are no view of their own, and where they lead.
const ELSEWHERE = new Map([
  ["data", "drops"],
  ["administration", "schedules"],
  ["costs", "money"],
]);

// Whether this refusal is of somebody who has signed in, but lacks the role that it names.
const isKnown = (error) => error?.code === "forbidden";

// Until the API said who it is: the view need not wait for that.
const SOMEBODY = { auth: "", name: "", may_change: false };

/**
 * @typedef {import("./route.js").Route} Route
 * @typedef {import("preact").ComponentType<{ route: Route, me: Me }>} View
 */

/** @typedef {{ auth: string, name: string, may_change: boolean, error?: import("./api.js").ApiError }} Me */

function App() {
  const route = useRoute(),
    [me, setMe] = useState(/** @type {Me | null | undefined} */ (undefined)),
    [wrong, setWrong] = useState(false),
    [keys, showKeys] = useState(false),
    [, redraw] = useState(areAbsolute());
  const ask = () =>
    get(["me"]).then(
      (found) => {
        setMe(found);
        setWrong(false);
      },
      (error) => {
        setWrong(error.status === 401 && Boolean(key.get()));
        setMe(error.status === 401 || (error.status === 403 && !isKnown(error)) ? null : { ...SOMEBODY, error });
      },
    );
  useEffect(() => {
    ask();
    const out = () => setMe((before) => (before ? null : before));
    const times = () => redraw(areAbsolute());
    addEventListener("signedout", out);
    addEventListener("times", times);
    return () => {
      removeEventListener("signedout", out);
      removeEventListener("times", times);
    };
  }, []);
  useEffect(() => {
    if (me?.error) {
      const timer = setTimeout(ask, 2000);
      return () => clearTimeout(timer);
    }
    return undefined;
  }, [me]);
  useKeys(() => showKeys(true));
  if (me === null) return <SignIn wrong={wrong} done={ask} />;
  return (
    <>
      <a
        class="skip"
        href="#content"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById("content").focus();
        }}
      >
        {W.skip}
      </a>
      <Header
        view={route.view}
        me={me}
        keys={() => showKeys(true)}
        signOut={() => {
          key.set("");
          forgetDrafts();
          setMe(null);
        }}
      />
      <main id="content" tabindex={-1}>
        <Views view={route.view} />
        {me?.error && (
          <p class="notice bad" role="alert">
            {visible(me.error.message)}
          </p>
        )}
        {!me && route.view === "drops" && <Loading />}
        {(me ? !me.error : route.view !== "drops") && <Shown key={route.view} route={route} me={me || SOMEBODY} />}
      </main>
      <div id="spoken" class="sr" role="status" aria-live="polite" />
      {keys && (
        <Dialog title={W.help.title} close={() => showKeys(false)}>
          <p>
            <a href="#/docs" onClick={() => showKeys(false)}>
              {W.help.docs}
            </a>
          </p>
          <label class="check">
            <input type="checkbox" checked={areAbsolute()} onChange={turnTimes} />
            {W.help.absolute}
          </label>
          <h3>{W.shortcuts.title}</h3>
          <dl class="keys">
            {W.shortcuts.list.map(([keys, what]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}

function Header({ view, me, keys, signOut }) {
  const [theme, setTheme] = useState(chosen());
  useEffect(() => {
    const applyTheme = () => setTheme(chosen());
    addEventListener("theme", applyTheme);
    return () => removeEventListener("theme", applyTheme);
  }, []);
  useEffect(
    () => document.querySelector(".top nav [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" }),
    [view],
  );
  const sign = { auto: "◐", light: "☀", dark: "☾" }[theme],
    name = { auto: W.theme.auto, light: W.theme.light, dark: W.theme.dark }[theme];
  return (
    <header class="top">
      <a class="brand" href="#/today">
        <img src={new URL("./icon.svg", import.meta.url).href} alt="" width="22" height="22" /> {W.title}
      </a>
      <nav aria-label={W.title}>
        {PLACES.map(([place, views]) => (
          <a key={place} href={`#/${views[0]}`} aria-current={placeOf(view)?.[0] === place ? "page" : undefined}>
            {W.places[place]}
          </a>
        ))}
      </nav>
      <span class="who">{me?.name ? visible(me.name) : ""}</span>
      <button type="button" class="quiet" aria-label={`${W.theme.label}: ${name}`} title={name} onClick={turn}>
        {sign}
      </button>
      <button type="button" class="quiet" aria-label={W.shortcuts.open} title={W.shortcuts.open} onClick={keys}>
        ?
      </button>
      {(me?.auth === "entra" || isKnown(me?.error)) && (
        <a class="button quiet" href="/.auth/logout?post_logout_redirect_uri=/api/page">
          {W.signin.out}
        </a>
      )}
      {me?.auth === "keys" && key.get() && (
        <button type="button" class="quiet" onClick={signOut}>
          {W.signin.forget}
        </button>
      )}
    </header>
  );
}

/** The views of the present place, if there are several. */
function Views({ view }) {
  const found = placeOf(view);
  if (!found || found[1].length < 2 || view === "run") return null;
  const [place, views] = found;
  return (
    <nav class="views" aria-label={W.places[place]}>
      {views.map((name) => (
        <a key={name} href={`#/${name}`} aria-current={view === name ? "page" : undefined}>
          {W.views[name]}
        </a>
      ))}
    </nav>
  );
}

let arrived = false; // whether a view was shown before this one

function Shown({ route, me }) {
  const [View, setView] = useState(() => /** @type {View | null} */ (AT_ONCE.get(route.view) || null));
  const [fault, forget] = useErrorBoundary((error) => console.error(error));
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (ELSEWHERE.has(route.view)) go(to(ELSEWHERE.get(route.view), route.parts, route.query), { replace: true });
    LOADED.get(route.view)?.().then(
      (found) => setView(() => found),
      () => setFailed(true),
    );
  }, [route.view]);
  const where = [route.view, ...route.parts].join("/");
  useEffect(() => {
    if (fault) forget(); // another address, another view: the fault stays with what broke
  }, [where]);
  useEffect(() => {
    document.title = [route.parts.at(-1), own(W.views, route.view) || W.views.runs, W.title]
      .filter(Boolean)
      .map(visible)
      .join(" · ");
  }, [where]);
  useEffect(() => {
    const onLink = document.activeElement.closest("main a[href]"); // somebody returned to it
    if (!onLink && (arrived || route.view !== "today")) focusOn("main h1");
    arrived = true;
  }, [where, View]);
  if (fault || failed)
    return (
      <section>
        <h1 tabindex={-1}>{W.fault.title}</h1>
        <p>{failed ? W.fault.outdated : W.fault.text}</p>
        <button type="button" onClick={() => location.reload()}>
          {W.fault.reload}
        </button>
      </section>
    );
  if (ELSEWHERE.has(route.view)) return <Loading />;
  if (!AT_ONCE.has(route.view) && !LOADED.has(route.view))
    return (
      <section>
        <h1 tabindex={-1}>{W.missing.title}</h1>
        <p>
          <a href="#/today">{W.missing.back}</a>
        </p>
      </section>
    );
  return View ? <View key={where} route={route} me={me} /> : <Loading />;
}

const Loading = () => (
  <p class="notice" role="status">
    {W.loading}
  </p>
);

function SignIn({ wrong, done }) {
  const [value, set] = useState("");
  const submit = (event) => {
    event.preventDefault();
    key.set(value.trim());
    done();
  };
  return (
    <main class="entrance">
      <h1>{W.title}</h1>
      <h2>{W.signin.title}</h2>
      <p>{W.signin.text}</p>
      <form onSubmit={submit}>
        <label>
          {W.signin.key}
          <input
            type="password"
            autocomplete="off"
            value={value}
            onInput={(e) => set(e.currentTarget.value)}
            aria-describedby="key-help"
            required
          />
        </label>
        <p id="key-help" class="dim">
          {W.signin.keyHelp}
        </p>
        {wrong && (
          <p class="notice bad" role="alert">
            {W.signin.wrong}
          </p>
        )}
        <button type="submit">{W.signin.use}</button>
      </form>
      <p>
        <a href="/.auth/login/aad?post_login_redirect_uri=/api/page" onClick={rememberAddress}>
          {W.signin.entra}
        </a>
      </p>
    </main>
  );
}

/** Keys that work everywhere but where one writes. A view listens for `key-…` events of those that are its own. */
function useKeys(showKeys) {
  useEffect(() => {
    let jump = 0;
    const pressed = (event) => {
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        event.target.closest("input:not([type=checkbox]), select, textarea, dialog")
      )
        return;
      if (Date.now() - jump < 1500 && own(JUMPS, event.key)) {
        jump = 0;
        go(to(JUMPS[event.key]));
        event.preventDefault();
        return;
      }
      jump = event.key === "g" ? Date.now() : 0;
      if (event.key === "?") showKeys();
      else if (event.key === "t") turn();
      else if (event.key === "a") turnTimes();
      else if (event.key === "/") focusOn("main [type=search]");
      else if (event.key === "s") element("main .hear")?.click();
      else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
      else if (event.key === "x" || event.key === "c") dispatchEvent(new CustomEvent(`key-${event.key}`));
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

/** @returns {HTMLElement | null} */
const element = (selector) => document.querySelector(selector);
const focusOn = (selector) => element(selector)?.focus();

function step(by) {
  /** @type {NodeListOf<HTMLElement>} */
  const found = document.querySelectorAll("main [data-row] a.row"),
    rows = [...found];
  const at = rows.indexOf(document.activeElement.closest("[data-row]")?.querySelector("a.row"));
  rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
}

const place = document.getElementById("app");
returnToAddress();
place.textContent = ""; // what was there for those who get no further
render(<App />, place);
