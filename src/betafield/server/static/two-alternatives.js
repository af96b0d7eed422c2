/* Two alternatives: on which side are the stripes? From loading to the last trial.
 *
 * ?study=NAME&trials=40#token=…  The token is behind the #, which browsers do not send.
 */
"use strict";

const CROSS = 350, SHOWN = 700, AFTER = 350; // milliseconds
const by = (id) => document.getElementById(id);
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Return what the address asks for; the token is taken out of it and kept for this tab. */
function asked() {
  const query = new URLSearchParams(location.search);
  const name = query.get("study") || "";
  const told = new URLSearchParams(location.hash.slice(1)).get("token");
  const place = `betafield-token:${name}`;
  if (told) {
    sessionStorage.setItem(place, told);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const trials = Math.min(Math.max(Math.trunc(Number(query.get("trials"))) || 40, 1), 10000);
  return { name, trials, token: told || sessionStorage.getItem(place) || undefined };
}

/** Draw a disc: grey, or a grating of this contrast under a bell. */
function draw(canvas, contrast) {
  const paper = canvas.getContext("2d"), { width, height } = canvas;
  const picture = paper.createImageData(width, height);
  const turn = Math.PI / 4, period = width / 8, sigma = width / 6;
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const u = x - width / 2, v = y - height / 2;
      const bell = Math.exp(-(u * u + v * v) / (2 * sigma * sigma));
      const wave = Math.sin((2 * Math.PI * (u * Math.cos(turn) + v * Math.sin(turn))) / period);
      // A screen has 256 greys; rounding at random shows what lies between them.
      const grey = Math.floor(127.5 + 127.5 * contrast * wave * bell + Math.random());
      picture.data.set([grey, grey, grey, 255], 4 * (y * width + x));
    }
  }
  paper.putImageData(picture, 0, 0);
}

function clear() {
  for (const side of ["left", "right"]) {
    const canvas = by(side), paper = canvas.getContext("2d");
    paper.fillStyle = "#808080";
    paper.fillRect(0, 0, canvas.width, canvas.height);
  }
}

/** Resolve with the side that is chosen, by key or by button. */
function chosen() {
  return new Promise((resolve) => {
    const keys = { ArrowLeft: "left", f: "left", F: "left", ArrowRight: "right", j: "right", J: "right" };
    const buttons = { "choose-left": "left", "choose-right": "right" };
    const choose = (side) => {
      removeEventListener("keydown", pressed);
      for (const id of Object.keys(buttons)) {
        by(id).disabled = true;
        by(id).onclick = null;
      }
      resolve(side);
    };
    const pressed = (event) => {
      if (keys[event.key] && !event.repeat && !event.ctrlKey && !event.altKey && !event.metaKey) {
        event.preventDefault();
        choose(keys[event.key]);
      }
    };
    addEventListener("keydown", pressed);
    for (const [id, side] of Object.entries(buttons)) {
      by(id).disabled = false;
      by(id).onclick = () => choose(side);
    }
  });
}

function trouble(text) {
  by("trouble").textContent = text;
  by("trouble").hidden = !text;
}

function show(id) {
  for (const each of ["welcome", "run", "end"]) by(each).hidden = each !== id;
}

class Session {
  constructor(study, trials) {
    this.study = study;
    this.trials = trials;
    this.done = 0;
    this.right = 0;
    this.pending = null;
  }

  async run() {
    show("run");
    clear();
    by("done").max = this.trials;
    by("stage").focus({ preventScroll: true });
    while (this.done < this.trials) {
      this.pending = await this.patiently(() => this.study.ask());
      if (this.pending === null) break; // the study was stopped
      await this.one(this.pending);
      if (this.study.enough) break;
    }
    await this.end();
  }

  async one(trial) {
    const contrast = trial.values.contrast;
    if (typeof contrast !== "number") {
      throw new Error(`this example needs a study with a feature "contrast"; found ${Object.keys(trial.values)}`);
    }
    const side = Math.random() < 0.5 ? "left" : "right";
    clear();
    await sleep(CROSS);
    by("feedback").textContent = "";
    draw(by("left"), side === "left" ? contrast : 0);
    draw(by("right"), side === "right" ? contrast : 0);
    const choice = chosen();
    const timer = setTimeout(clear, SHOWN);
    const success = (await choice) === side;
    clearTimeout(timer);
    this.pending = null;
    this.done += 1;
    this.right += success;
    by("done").value = this.done;
    by("feedback").textContent = success ? "✓ right" : "✗ the other one";
    by("feedback").className = `feedback ${success ? "yes" : "no"}`;
    clear();
    const [isThere] = await Promise.all([this.study.tell(trial, success), sleep(AFTER)]);
    trouble(isThere ? "" : "No connection: your answers are kept, and sent as soon as it is back.");
  }

  /** Try for as long as it takes; null if the study has been stopped. */
  async patiently(attempt) {
    for (;;) {
      try {
        const found = await attempt();
        trouble("");
        return found;
      } catch (error) {
        if (error instanceof Betafield.Refused && error.status === 409) return null;
        if (!(error instanceof Betafield.Away)) throw error;
        trouble("No connection. Please keep this page open: it continues by itself.");
        await sleep(1000);
      }
    }
  }

  async end() {
    show("end");
    const share = this.done ? `${Math.round((100 * this.right) / this.done)} %` : "none";
    by("result").textContent = `You have made ${this.done} trials; ${share} of your answers were right.`;
    const sent = await this.study.send().then(() => true, () => false);
    trouble("");
    by("kept").textContent = sent
      ? "All of them have arrived. You can close this page."
      : `${this.study.unsent.length} of them wait for a connection. They are kept in this browser.`;
    by("again").hidden = sent;
    by("again").onclick = () => this.end();
    by("end-title").focus();
  }
}

function begin() {
  const { name, trials, token } = asked();
  by("length").textContent = `${trials} trials, about ${Math.max(1, Math.round((trials * 2) / 60))} min`;
  by("start").addEventListener("submit", async (event) => {
    event.preventDefault();
    let session;
    try {
      const participant = by("participant").value.trim() || null;
      const study = new Betafield.Study(location.origin, { study: name, token, participant, patience: 5000 });
      session = new Session(study, trials);
      addEventListener("pagehide", () => session.pending && study.abandon(session.pending).catch(() => {}));
      await session.run();
    } catch (error) {
      show("welcome");
      trouble(`This did not work: ${error.message}`);
    }
  });
}

begin();
