/* A study on a betafield server, from a browser. One file, nothing else is needed.
 *
 *   <script src="https://lab.example/static/betafield.js"></script>
 *   const study = new Betafield.Study("https://lab.example", {study: "contrast", token, participant: "p1"});
 *   const trial = await study.ask();              // {id, values: {contrast: 0.31}, why}
 *   await study.tell(trial, true);
 *
 * As a module: import { Study } from "https://lab.example/static/betafield.module.js".
 *
 * Requests that get no answer are repeated, and count once. Outcomes are in localStorage until the
 * server has them: if the network is away, or the tab is closed, they are sent by the next `ask`,
 * `tell` or `send` of the same study in this browser.
 */
(function (root) {
  "use strict";

  const LATER = new Set([408, 425, 429, 500, 502, 503, 504]);
  const FIRST_WAIT = 100, LONGEST_WAIT = 5000;
  const NAME = /^[A-Za-z0-9_-]{1,64}$/;

  /** What the server refuses, in its own words; `status` is that of HTTP. */
  class Refused extends Error {
    constructor(message, status) {
      super(message);
      this.name = "Refused";
      this.status = status;
    }
  }

  /** Nobody answers; the request may be made again later. */
  class Away extends Error {
    constructor(message) {
      super(message);
      this.name = "Away";
    }
  }

  function newKey() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

  /** localStorage, or as much of it as this browser allows. */
  class Kept {
    constructor(prefix) {
      this.prefix = prefix;
      this.memory = new Map();
    }

    add(key, entry) {
      const text = JSON.stringify(entry);
      try {
        root.localStorage.setItem(this.prefix + key, text);
      } catch {
        this.memory.set(key, text); // private windows, full disks: as long as the page lives
      }
    }

    remove(key) {
      this.memory.delete(key);
      try {
        root.localStorage.removeItem(this.prefix + key);
      } catch { /* it was never there */ }
    }

    /** The entries, the oldest first. */
    all() {
      const found = [...this.memory];
      try {
        for (let i = 0; i < root.localStorage.length; i += 1) {
          const name = root.localStorage.key(i);
          if (name.startsWith(this.prefix)) {
            found.push([name.slice(this.prefix.length), root.localStorage.getItem(name)]);
          }
        }
      } catch { /* nothing is there */ }
      return found.map(([key, text]) => this.read(key, text)).filter(Boolean)
        .sort((a, b) => a.at - b.at);
    }

    read(key, text) {
      try {
        const { path, body, at } = JSON.parse(text);
        return typeof path === "string" ? { key, path, body, at } : null;
      } catch {
        return null;
      }
    }
  }

  class Study {
    /**
     * @param {string} url  The server, or the study itself (…/studies/NAME).
     * @param {object} options
     * @param {string} [options.study]  Name of the study, if the address does not have it.
     * @param {string} [options.token]  Of the role run.
     * @param {string} [options.participant]  Who is tested.
     * @param {number} [options.patience]  Milliseconds for which a request is repeated.
     * @param {number} [options.timeout]  Milliseconds after which an answer is given up.
     */
    constructor(url, options = {}) {
      const { study, token, participant = null, patience = 60000, timeout = 30000 } = options;
      const base = String(url).replace(/\/+$/, "");
      const named = base.match(/\/studies\/([^/]+)$/);
      this.name = study === undefined ? named && named[1] : study;
      if (!NAME.test(this.name || "")) {
        throw new TypeError(`study: found ${JSON.stringify(this.name)}; letters, digits, _ and - are needed`);
      }
      this.url = study === undefined ? base : `${base}/studies/${study}`;
      this.participant = participant;
      this.patience = patience;
      this.timeout = timeout;
      /** Whether the study had trials enough when it was last asked. */
      this.enough = false;
      /** Outcomes of this page that the server would not have, with `why`. */
      this.refused = [];
      this.headers = { "Content-Type": "application/json" };
      if (token) this.headers.Authorization = `Bearer ${token}`;
      this.kept = new Kept(`betafield:${new URL(this.url, root.location && root.location.href).href}:`);
      this.sending = null;
    }

    /** The trial to make next; with `n`, an array of that many. */
    async ask({ n, fixed = {}, participant = this.participant } = {}) {
      await this.send();
      const body = { n: n === undefined ? 1 : n, fixed, participant, key: newKey() };
      const answer = await this.request("/asks", body, this.patience);
      if (!Array.isArray(answer.trials)) throw new Away(`${this.url}: found no trials in the answer`);
      this.enough = Boolean(answer.enough);
      return n === undefined ? answer.trials[0] : answer.trials;
    }

    /**
     * Say how a trial ended: a trial, its id, or values that were not asked for.
     * @returns {Promise<boolean>} True once the server has it; false if it is kept for later.
     */
    async tell(trial, success, { context = null } = {}) {
      if (typeof success !== "boolean") {
        throw new TypeError(`success: found ${JSON.stringify(success)}; true or false is needed`);
      }
      const key = newKey(), id = idOf(trial);
      const body = { success, context, participant: this.participant };
      if (id === null) Object.assign(body, { values: trial, key });
      const path = id === null ? "/trials" : `/trials/${id}/outcome`;
      this.kept.add(key, { path, body, at: Date.now() });
      return this.sendKept(0, key);
    }

    /** Say that a trial will not be made. */
    async abandon(trial) {
      const id = idOf(trial);
      if (id === null) throw new TypeError("trial: a trial that was asked for, or its id, is needed");
      await this.request(`/trials/${id}/abandon`, {}, this.patience);
    }

    /** Outcomes that the server does not have yet. */
    get unsent() {
      return this.kept.all();
    }

    /** Send what is kept; rejects with `Away` if nobody answers for as long as `patience`. */
    async send() {
      if (this.unsent.length && !(await this.sendKept(this.patience))) {
        throw new Away(`${this.url}: ${this.unsent.length} outcomes are kept until there is an answer`);
      }
    }

    /** Status of the study, for those who may see it. */
    async status() {
      return this.request("/status", undefined, this.patience);
    }

    /** Send what is kept, one after the other; true if all of it is there. */
    async sendKept(patience, mine) {
      while (this.sending) await this.sending.catch(() => {});
      this.sending = this.sendEach(patience, mine);
      try {
        return await this.sending;
      } finally {
        this.sending = null;
      }
    }

    async sendEach(patience, mine) {
      for (const { key, path, body } of this.kept.all()) {
        try {
          const answer = await this.request(path, body, patience);
          // A page of a hotel's network may answer everything: only this is the server's word.
          if (!Number.isInteger(answer.id)) throw new Away(`${this.url}: found a strange answer`);
          this.kept.remove(key);
        } catch (error) {
          if (error instanceof Away) return false;
          if (!(error instanceof Refused) || error.status === 401 || error.status === 403) throw error;
          this.kept.remove(key);
          this.refused.push({ path, body, why: error.message });
          if (key === mine) throw error;
        }
      }
      return true;
    }

    async request(path, body, patience) {
      const ends = Date.now() + patience;
      for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
        const { answer, why, after } = await this.once(path, body);
        if (answer) return answer;
        const pause = Math.max(wait * (0.5 + Math.random() / 2), after || 0);
        if (Date.now() + pause > ends) throw new Away(`${this.url}: ${why}`);
        await sleep(pause);
      }
    }

    /** One attempt: the answer, or why there is none; throws what the server refuses. */
    async once(path, body) {
      const stop = new AbortController();
      const timer = setTimeout(() => stop.abort(), this.timeout);
      try {
        const response = await fetch(this.url + path, {
          method: body === undefined ? "GET" : "POST",
          headers: this.headers,
          body: body === undefined ? undefined : JSON.stringify(body),
          signal: stop.signal,
          keepalive: true, // an outcome is sent even if the page is closed now
          credentials: "omit",
          cache: "no-store",
          redirect: "error",
          referrerPolicy: "no-referrer",
        });
        return await read(response);
      } catch (error) {
        if (error instanceof Refused) throw error;
        return { why: `no answer (${error.message})` };
      } finally {
        clearTimeout(timer);
      }
    }
  }

  async function read(response) {
    const found = await response.json().catch(() => null);
    const detail = found && typeof found.detail === "string" ? found.detail : `status ${response.status}`;
    if (response.ok && found) return { answer: found };
    if (response.ok || LATER.has(response.status)) {
      return { why: detail, after: 1000 * (Number(response.headers.get("Retry-After")) || 0) };
    }
    throw new Refused(detail, response.status);
  }

  /** The id of a trial that was asked for; null for values that were not. */
  function idOf(trial) {
    const id = typeof trial === "number" ? trial : trial && trial.id;
    const isAsked = typeof trial === "number" || (trial && typeof trial.values === "object");
    if (!isAsked) {
      if (trial && typeof trial === "object") return null;
      throw new TypeError(`trial: found ${JSON.stringify(trial)}; a trial, its id or values are needed`);
    }
    if (!Number.isInteger(id) || id < 0) throw new TypeError(`trial: found the id ${JSON.stringify(id)}`);
    return id;
  }

  const Betafield = { Study, Refused, Away };
  root.Betafield = Betafield;
  if (typeof module === "object" && module.exports) module.exports = Betafield;
})(globalThis);
