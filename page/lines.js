// The lines of a log in one block of memory: a million of them are 60 MB of bytes and 4 MB of places.
const LONGEST = 256 << 20; // bytes that are kept
const FIRST = 1 << 16;

export class Lines {
  constructor() {
    this.bytes = new Uint8Array(FIRST);
    this.length = 0; // bytes
    this.starts = new Uint32Array(1024);
    this.count = 0; // lines, the last of which may not have ended
    this.full = false;
  }

  /** @param {Uint8Array} more */
  append(more) {
    if (this.length + more.length > LONGEST) {
      more = more.subarray(0, LONGEST - this.length);
      this.full = true;
    }
    if (!more.length) return;
    this.bytes = room(this.bytes, this.length, this.length + more.length);
    this.bytes.set(more, this.length);
    let start = this.length;
    if (this.count === 0 || this.bytes[start - 1] === 10) this.#line(start);
    const end = this.length + more.length;
    for (let at = more.indexOf(10); at >= 0; at = more.indexOf(10, at + 1)) {
      start = this.length + at + 1;
      if (start < end) this.#line(start);
    }
    this.length = end;
  }

  /** @param {number} start */
  #line(start) {
    this.starts = room(this.starts, this.count, this.count + 1);
    this.starts[this.count++] = start;
  }

  /** @param {number} i */
  size(i) {
    const end = i + 1 < this.count ? this.starts[i + 1] - 1 : this.length;
    return Math.max(0, end - this.starts[i]);
  }

  /**
   * The line's text without its end, at most `limit` bytes of it.
   * @param {number} i
   * @param {number} limit
   */
  text(i, limit) {
    const from = this.starts[i];
    return new TextDecoder()
      .decode(this.bytes.subarray(from, from + Math.min(limit, this.size(i))))
      .replace(/[\r\n]+$/, "");
  }

  /**
   * The numbers (from 0) of the lines that hold the text, whatever its case. Gives way to the page now and then.
   * @param {string} wanted
   */
  async search(wanted, stopped = () => false, piece = 2 << 20) {
    const found = [],
      low = wanted.toLowerCase();
    for (let line = 0; low && line < this.count && !stopped();) {
      let until = line;
      while (until < this.count && this.starts[until] - this.starts[line] < piece) until++;
      const end = until < this.count ? this.starts[until] : this.length;
      const text = new TextDecoder().decode(this.bytes.subarray(this.starts[line], end)).toLowerCase();
      let number = line,
        counted = 0;
      for (let at = text.indexOf(low); at >= 0;) {
        for (let end = text.indexOf("\n", counted); end >= 0 && end < at; end = text.indexOf("\n", counted)) {
          number++;
          counted = end + 1;
        }
        found.push(number);
        const next = text.indexOf("\n", at); // one hit a line is enough
        at = next < 0 ? -1 : text.indexOf(low, next);
      }
      line = until;
      await new Promise((go) => setTimeout(go));
    }
    return found;
  }
}

/**
 * The array, or a larger one with its first `used` values, so that it has room for as many as wanted.
 * @template {Uint8Array | Uint32Array} A
 * @param {A} array
 * @param {number} used
 * @param {number} wanted
 * @returns {A}
 */
function room(array, used, wanted) {
  if (wanted <= array.length) return array;
  const Kind = /** @type {new (length: number) => A} */ (array.constructor),
    larger = new Kind(Math.max(wanted, 2 * array.length));
  larger.set(array.subarray(0, used));
  return larger;
}
