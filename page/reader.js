// Readers of a run's logs: of one rank, or of all jobs of an elastic run as one.
import { logRange } from "./api.js";
import { Lines } from "./lines.js";
import { jobName } from "./record.js";

const RANGE = 1 << 20,
  AT_ONCE = 4,
  BY_ITSELF = 8 << 20; // bytes: of one request; requests at a time; read without being asked

/** The log of one rank, filled by the run's live answers and, where they lag behind, by ranges. */
export class Reader {
  lines = new Lines();
  offset = 0;
  size = 0;
  complete = false;
  wanted = false;
  busy = false;
  /** @type {Set<() => void>} */
  listeners = new Set();

  /**
   * @param {string} run
   * @param {number} rank
   */
  constructor(run, rank) {
    this.run = run;
    this.rank = rank;
  }

  /** Where a live answer is to go on; undefined while ranges are being read. */
  get next() {
    return this.busy || this.offset < this.size ? undefined : this.offset;
  }

  append(log) {
    if (!log) return;
    if (log.offset === this.offset && log.text) {
      this.lines.append(new TextEncoder().encode(log.text));
      this.offset = log.next_offset;
    }
    this.size = Math.max(this.size, log.size);
    this.complete = log.complete;
    this.notify();
    this.catchUp();
  }

  /** Somebody looks for something: all of it is wanted now. */
  want() {
    this.wanted = true;
    this.catchUp();
  }

  async catchUp() {
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.offset < this.size && !this.lines.full && (this.wanted || this.offset < BY_ITSELF)) {
        const starts = Array.from({ length: AT_ONCE }, (_, i) => this.offset + i * RANGE).filter(
          (start) => start < this.size,
        );
        const parts = await Promise.all(
          starts.map((start) => logRange(this.run, this.rank, start, Math.min(start + RANGE, this.size) - 1)),
        );
        for (const part of parts) {
          this.lines.append(part.bytes);
          this.offset += part.bytes.length;
          this.size = Math.max(this.size, part.size);
        }
        if (!parts.some((part) => part.bytes.length)) break;
        this.notify();
      }
    } catch {
      /* the live answers say that the API is away; the next one goes on here */
    } finally {
      this.busy = false;
    }
  }

  notify() {
    for (const listener of this.listeners) listener();
  }
}

/**
 * The logs of all jobs of an elastic run as one, each line behind its job's short name, as `trainyard logs` prints
 * them: any rank may be the one that logs, and the first job may be evicted. The live answers bring the log of the
 * first job. `nodes` are the most that the run may have.
 */
export class JobsReader extends Reader {
  constructor(run, nodes) {
    super(run, 0);
    this.nodes = nodes;
    this.jobs = new Map([[0, new Job(0, nodes)]]);
  }

  get next() {
    const first = this.jobs.get(0);
    return this.busy || first.offset < first.size ? undefined : first.offset;
  }

  append(log) {
    if (!log) return;
    for (const number of log.ranks) if (!this.jobs.has(number)) this.jobs.set(number, new Job(number, this.nodes));
    const first = this.jobs.get(0);
    if (log.offset === first.offset) this.#add(first, new TextEncoder().encode(log.text), log);
    else first.size = Math.max(first.size, log.size);
    this.#sum();
    this.catchUp();
  }

  /** Read what the other jobs wrote since the last live answer, job after job: lines of one job stay together. */
  async catchUp() {
    if (this.busy) return;
    this.busy = true;
    try {
      for (const job of [...this.jobs.values()].sort((a, b) => a.number - b.number)) await this.#read(job);
    } catch {
      /* the live answers say that the API is away; the next one continues here */
    } finally {
      this.busy = false;
      this.#sum();
    }
  }

  async #read(job) {
    do {
      if (job.complete || this.lines.full || (job.number === 0 && job.offset >= job.size)) return;
      if (job.offset > BY_ITSELF && !this.wanted) return;
      const found = await logRange(this.run, job.number, job.offset, job.offset + RANGE - 1);
      this.#add(job, found.bytes, found);
      this.#sum();
    } while (job.offset < job.size);
  }

  #add(job, bytes, { size, complete }) {
    job.offset += bytes.length;
    job.size = Math.max(job.size, size, job.offset);
    job.complete = complete && job.offset >= job.size;
    this.lines.append(job.lines(bytes));
  }

  #sum() {
    const all = [...this.jobs.values()];
    this.offset = all.reduce((sum, job) => sum + job.offset, 0);
    this.size = all.reduce((sum, job) => sum + job.size, 0);
    this.complete = all.every((job) => job.complete);
    this.notify();
  }
}

/** One job's log: how far it is read, and the beginning of its last line, which has not ended. */
class Job {
  offset = 0;
  size = 0;
  complete = false;
  rest = new Uint8Array();

  /**
   * @param {number} number
   * @param {number} nodes the most that the run may have
   */
  constructor(number, nodes) {
    this.number = number;
    this.prefix = new TextEncoder().encode(`${jobName(number, nodes)} | `);
  }

  /** The lines that these bytes complete, each behind the job's name, as bytes. */
  lines(bytes) {
    const known = joined(this.rest, bytes),
      parts = [];
    let from = 0;
    for (let at = known.indexOf(10); at >= 0; at = known.indexOf(10, from)) {
      parts.push(this.prefix, known.subarray(from, at + 1));
      from = at + 1;
    }
    this.rest = known.slice(from);
    if (this.complete && this.rest.length) {
      parts.push(this.prefix, this.rest, new Uint8Array([10]));
      this.rest = new Uint8Array();
    }
    return joined(...parts);
  }
}

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
