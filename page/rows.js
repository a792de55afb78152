// The list of runs: its first page at once, older pages for whoever scrolls, and what changed down to what is seen.
import { get } from "./api.js";

const FIRST = 100,
  OLDER = 1000;
// Rows that are fetched ahead of somebody who scrolls, sorts or searches; further ones at the end of the list.
const MOST = 20_000;

export class Rows {
  /** @type {(list: any[]) => void} */
  told = () => {};
  /** @type {Map<string, any>} */
  byName = new Map();
  /** @type {any[]} */
  list = [];
  /** @type {string | null} */
  token = null;
  /** @type {{ oldest: string, mark: string }[]} of each page its oldest run's time, and what to ask changes by */
  pages = [];
  bottom = ""; // when the oldest run of the last page was made
  fetched = 0; // rows of these pages
  oldest = ""; // when the oldest run that is seen was made
  /** @type {unknown} */
  last = null;
  busy = false;
  gone = false;

  /** @param {import("./api.js").Query} asked the filters that the API knows */
  constructor(asked) {
    this.asked = asked;
  }

  /**
   * One request. The very same array as before if nothing is new.
   * @param {AbortSignal} [signal]
   */
  async refresh(signal) {
    const seen = this.pages.find((page) => page.oldest <= this.oldest) || this.pages[0];
    if (seen) {
      const found = await get(["rows"], { ...this.asked, changes: seen.mark }, { signal });
      if (found === this.last) return this.list;
      if (found.complete) {
        this.last = found;
        seen.mark = found.changes ?? seen.mark;
        return this.#apply(found);
      }
    }
    return this.#anew(await get(["rows"], { ...this.asked, limit: FIRST }, { signal }));
  }

  /** Whether there is a page by whose mark to ask for changes. */
  get mark() {
    return Boolean(this.pages.length);
  }

  /**
   * These rows are in sight.
   * @param {{ created_at: string }[]} rows
   */
  sees(rows) {
    this.oldest = rows.reduce((oldest, row) => (row.created_at < oldest ? row.created_at : oldest), "9");
  }

  /** Fetch older pages one after another, up to MOST rows, or one more page where there are as many already. */
  async want({ further = false } = {}) {
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.token && !this.gone && (further || this.fetched < MOST)) {
        further = false;
        const { token } = this,
          page = await get(["rows"], { ...this.asked, limit: OLDER, continue: token }, { keep: false });
        if (token !== this.token) continue; // the list began anew meanwhile
        this.#page(page);
        this.told(this.list);
      }
    } catch {
      /* the next refresh says that the API is away; who scrolls on asks again */
    } finally {
      this.busy = false;
    }
  }

  /**
   * Somebody looks at the list until `stop`: `told` hears of each older page.
   * @param {(list: any[]) => void} told
   */
  open(told) {
    Object.assign(this, { told, gone: false });
    return this;
  }

  stop() {
    this.gone = true;
  }

  /**
   * Begin with this first page, since too much changed to be told: older pages come again by themselves.
   * @param {import("../schemas/answers.d.ts").Rows} page
   */
  #anew(page) {
    const older = this.pages.length > 1;
    Object.assign(this, { pages: [], bottom: "9", fetched: 0 });
    const list = this.#page(page);
    if (older) this.want();
    return list;
  }

  /**
   * A whole page: what else was there between the page before and its oldest run is gone.
   * @param {import("../schemas/answers.d.ts").Rows} page
   */
  #page({ rows, changes, continue: token }) {
    const names = new Set(rows.map((row) => row.run)),
      oldest = !token ? "" : rows.length ? rows[rows.length - 1].created_at : this.bottom,
      inside = this.list.filter((row) => row.created_at > oldest && row.created_at < this.bottom),
      gone = inside.map((row) => row.run).filter((name) => !names.has(name));
    Object.assign(this, { token, bottom: oldest, fetched: this.fetched + rows.length });
    if (changes && rows.length) this.pages.push({ oldest, mark: changes });
    return this.#apply({ rows, gone });
  }

  /** @param {{ rows: any[], gone: string[] }} news */
  #apply({ rows, gone }) {
    const news = rows.filter((row) => JSON.stringify(row) !== JSON.stringify(this.byName.get(row.run))),
      lost = gone.filter((name) => this.byName.delete(name));
    if (!news.length && !lost.length) return this.list;
    for (const row of news) this.byName.set(row.run, row);
    this.list = [...this.byName.values()].sort((a, b) =>
      a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0,
    );
    return this.list;
  }
}
