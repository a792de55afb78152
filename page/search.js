// A search over the sections of Markdown pages.

/** The id that a heading has, as GitHub makes it. */
export const slug = (/** @type {string} */ heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .trim()
    .replace(/ /g, "-");

const plain = (/** @type {string} */ text) =>
  text
    .replace(/<!--.*?-->/gs, "")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[`*|]+/g, "")
    .replace(/\s+/g, " ")
    .trim();

/** @typedef {{ page: string, title: string, heading: string, at: string, text: string }} Section */

/**
 * The sections of { name: Markdown }: one for each heading, what comes before it too.
 * @param {Record<string, string>} pages
 * @returns {Section[]}
 */
export function sections(pages) {
  return Object.entries(pages).flatMap(([page, text]) => {
    const title = plain(/^# (.*)$/m.exec(text)?.[1] || page);
    let lines = /** @type {string[]} */ ([]);
    const found = [{ page, title, heading: title, at: "", lines }];
    let fenced = false;
    for (const line of text.split("\n")) {
      if (line.startsWith("```")) fenced = !fenced;
      const heading = fenced ? null : /^#{2,4} (.*)$/.exec(line);
      if (heading) {
        lines = [];
        found.push({ page, title, heading: plain(heading[1]), at: slug(plain(heading[1])), lines });
      } else if (fenced || !line.startsWith("# ")) lines.push(line);
    }
    return found.map(({ lines, ...section }) => ({ ...section, text: plain(lines.join("\n")) }));
  });
}

/**
 * The sections that have every word, or where none has, as many as any has; those first that have them in their
 * heading. Each with a snippet of its text, and with how many words it `has`.
 * @param {Section[]} all
 * @param {string} words
 */
export function search(all, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const scored = all.map((section) => {
    const heading = `${section.title} ${section.heading}`.toLowerCase(),
      text = section.text.toLowerCase();
    const has = wanted.filter((word) => heading.includes(word) || text.includes(word)).length;
    const inHeading = wanted.filter((word) => section.heading.toLowerCase().includes(word)).length;
    const at = Math.max(0, Math.min(...wanted.map((word) => text.indexOf(word)).filter((place) => place >= 0)));
    const from = Number.isFinite(at) ? Math.max(0, at - 60) : 0;
    const snippet = `${from ? "… " : ""}${section.text.slice(from, from + 200)}`;
    return {
      ...section,
      snippet,
      has,
      score: 1 + 10 * inHeading + wanted.reduce((n, word) => n + text.split(word).length, 0),
    };
  });
  const most = Math.max(1, ...scored.map(({ has }) => has));
  return scored.filter(({ has }) => has === most).sort((a, b) => b.score - a.score);
}
