// The docs of this very version: every page, and a search over all of their sections.
import { marked } from "marked";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Trouble } from "../parts.jsx";
import { refine, to } from "../route.js";
import { sections, search, slug } from "../search.js";
import { W } from "../words.js";

const BESIDE = new URL(".", import.meta.url); // where this script lies: its version's files never change
let loading; // asked for once, when somebody first looks

function usePages() {
  const [pages, set] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    loading ||= fetch(new URL("docs.json", BESIDE)).then((answer) => answer.json());
    loading.then(set, (fault) => {
      loading = undefined;
      setError(fault);
    });
  }, []);
  return [pages, error];
}

export function Docs({ route }) {
  const [pages, error] = usePages();
  const words = route.query.q || "";
  const name = pages?.[route.parts[0]] ? route.parts[0] : "index";
  return (
    <section class="docs">
      <h1 tabindex={-1}>{W.docs.title}</h1>
      <Trouble error={error} value={pages} />
      <label class="search">
        {W.docs.search}
        <input type="search" value={words} onInput={(event) => refine({ q: event.currentTarget.value, at: "" })} />
      </label>
      {pages &&
        (words.trim() ? <Found pages={pages} words={words} /> : <Page pages={pages} name={name} at={route.query.at} />)}
    </section>
  );
}

function Found({ pages, words }) {
  const all = useMemo(() => sections(pages), [pages]);
  const found = search(all, words);
  return (
    <>
      <p role="status" class="dim">
        {W.docs.found(found.length)}
        {found[0]?.has < words.trim().split(/\s+/).length && `, ${W.docs.some}`}
      </p>
      <ol class="found">
        {found.slice(0, 30).map((section) => (
          <li key={`${section.page}#${section.at}`}>
            <a href={to("docs", [section.page], { at: section.at })}>{section.heading}</a>{" "}
            <span class="dim">{section.title}</span>
            <p>{section.snippet}</p>
          </li>
        ))}
      </ol>
    </>
  );
}

function Page({ pages, name, at }) {
  const box = useRef(null);
  const text = useMemo(() => rendered(pages, name), [pages, name]);
  useEffect(() => {
    const place = at && box.current.querySelector(`[id="${CSS.escape(at)}"]`);
    if (!place) {
      scrollTo(0, 0);
      return;
    }
    place.scrollIntoView();
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
  }, [text, at]);
  return (
    <>
      {name !== "index" && (
        <p>
          <a href={to("docs")}>{W.docs.all}</a>
        </p>
      )}
      <article ref={box} class="prose" dangerouslySetInnerHTML={{ __html: text }} />
    </>
  );
}

/** A page as HTML. It is a file of ours, and the page's policy lets no script of it run. */
function rendered(pages, name) {
  const place = document.createElement("template");
  place.innerHTML = String(marked.parse(pages[name].replace(/<!--.*?-->\n?/gs, "")));
  const inside = place.content;
  for (const heading of inside.querySelectorAll("h1, h2, h3, h4")) {
    heading.id = slug(heading.textContent);
    if (heading.tagName === "H1")
      heading.replaceWith(Object.assign(document.createElement("h2"), { textContent: heading.textContent }));
  }
  for (const link of inside.querySelectorAll("a[href]")) point(link, link.getAttribute("href"), pages, name);
  for (const picture of inside.querySelectorAll("img")) picture.src = new URL(picture.getAttribute("src"), BESIDE).href;
  for (const wide of inside.querySelectorAll("table, pre")) wide.setAttribute("tabindex", "0");
  return place.innerHTML;
}

/** A link to another page of the docs stays here; to a file that is not served it is only text. */
function point(link, href, pages, name) {
  const [, page, at] = /^(?:([\w-]+)\.md)?(?:#(.*))?$/.exec(href) || [];
  if (page ? pages[page] : at) link.setAttribute("href", to("docs", [page || name], { at }));
  else if (/^https:/.test(href)) link.rel = "noreferrer";
  else link.replaceWith(...link.childNodes);
}
