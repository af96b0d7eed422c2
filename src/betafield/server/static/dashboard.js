/* The dashboard of a study: asks this server what is known whenever it says that something changed. */
"use strict";

const study = JSON.parse(document.body.dataset.study);
const base = `/studies/${encodeURIComponent(study.name)}`;
const { names, ranges } = study; // all features; those that have no levels
const by = (id) => document.getElementById(id);

const LEAST_PAUSE = 700; // milliseconds between two looks
const MOST_TRIALS = 2000; // in the picture
const ROWS = 12;
const GRID = ranges.length === 1 ? 121 : 33;
const trials = new Map();

// Words ----------------------------------------------------------------------------------------

/** A number as people read it, to a precision that its range asks for. */
function said(x, range) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const digits = range > 0 ? Math.min(Math.max(Math.ceil(-Math.log10(range)) + 3, 0), 8) : 3;
  return Math.abs(x) >= 1e6 ? x.toExponential(3) : String(Number(x.toFixed(digits)));
}

/** About how many: two digits are more than is known. */
function rounded(n) {
  return n === null || n === undefined ? "–" : Number(n.toPrecision(2)).toLocaleString("en-GB");
}

const percent = (p) => (p === null || p === undefined ? "–" : `${said(100 * p, 100)} %`);
const isLog = (name) => study.kinds[name] === "log";
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const shortened = (text) => cut(text, 40);

/** Text that plotly shows as it is: it takes some HTML for meant. */
function literal(text) {
  return shortened(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");
}

/** A number of a feature; over decades, each to its own precision. */
function number(name, x) {
  const [low, high] = study.space[name];
  return said(x, isLog(name) ? Math.abs(x) : high - low);
}

/** A number or a level of a feature. */
function value(name, x) {
  return ranges.includes(name) ? number(name, x) : shortened(String(x));
}

/** The number at a share of a range, from 0 to 1. */
function numberAt(name, share) {
  const [low, high] = study.space[name];
  const x = isLog(name) ? low * (high / low) ** share : low + share * (high - low);
  return Math.min(Math.max(study.kinds[name] === "integer" ? Math.round(x) : x, low), high);
}

function point(values) {
  return names.map((name) => `${literal(name)} ${literal(value(name, values[name]))}`).join("<br>");
}

function put(id, text) {
  const place = by(id);
  if (place.textContent !== text) place.textContent = text;
}

// What is known ----------------------------------------------------------------------------------

function answer(known) {
  const kind = study.goal.kind;
  if (!known) return ["Known", "–", "no outcomes yet"];
  if (known.threshold !== undefined) {
    const [name] = names;
    const never = known.not_reached > 0.005 ? `; not reached within the space: ${percent(known.not_reached)}` : "";
    const [low, high] = known.interval.map((x) => number(name, x));
    return [`${shortened(name)} at ${percent(study.goal.level)}`, number(name, known.threshold), `95 % interval ${low} to ${high}${never}`];
  }
  if (kind === "LevelSet") return [`Share above ${percent(study.goal.level)}`, percent(known.share_above), "of the whole space"];
  if (known.best) {
    const best = names.map((name) => `${shortened(name)} ${value(name, known.best[name])}`).join(", ");
    const more = known.interval ? `P(success) ${percent(known.mean)}, ${percent(known.interval[0])} to ${percent(known.interval[1])}`
      : `the best with probability ${percent(Math.max(...known.prob_best))}`;
    return [{ Maximize: "Highest", Minimize: "Lowest", Compare: "Best" }[kind], best, more];
  }
  return ["P(success)", `${percent(known.lowest)} to ${percent(known.highest)}`, "from the lowest to the highest mean"];
}

function tell(status) {
  const [what, value, more] = answer(status.known);
  put("answer-name", what);
  put("answer", value);
  put("answer-more", more);
  const within = study.goal.within === undefined ? 0.05 : study.goal.within;
  put("sure", status.unsure === null || status.unsure === undefined ? "–" : said(status.unsure, 1));
  put("means", status.means ? `${status.means}; ${within} is enough` : "not known yet");
  by("progress").value = status.unsure > 0 ? Math.min(1, within / status.unsure) : Number(Boolean(status.enough));
  const planned = study.enough && study.enough.trials;
  const left = planned ? Math.max(0, planned - status.told) : null;
  put("needed", status.enough || left === 0 ? "enough" : rounded(status.still_needed));
  put("needed-more", left ? `trials for the goal, roughly; ${left} of the planned trials are left` : status.enough ? "the goal is reached" : "trials, roughly");
}

function count(now) {
  put("told", String(now.told));
  put("pending", `${now.pending} pending, ${now.abandoned} given up`);
  const people = now.participants || [];
  put("people", String(people.length));
  put("who", people.length ? people.slice(0, 8).map(shortened).join(", ") + (people.length > 8 ? " …" : "") : "nobody identified within the last minute");
  state(now.stopped ? "stopped" : "live", now.stopped ? "stopped" : now.enough ? "live, enough" : "live");
  if (by("stop")) {
    by("stop").hidden = now.stopped;
    by("resume").hidden = !now.stopped;
    if (now.stopped) sure(false);
  }
}

function state(kind, text) {
  by("state").dataset.state = kind;
  put("state", text);
}

// Trials -----------------------------------------------------------------------------------------

function list() {
  const last = [...trials.values()].sort((a, b) => b.id - a.id).slice(0, ROWS);
  by("rows").replaceChildren(...last.map(row));
}

function row(trial) {
  const line = document.createElement("tr");
  const outcome = trial.state === "told" ? (trial.success ? "▲ success" : "▼ failure")
    : trial.state === "pending" ? "◇ pending" : "given up";
  const at = trial.ended_at || trial.asked_at;
  const when = at ? new Date(1000 * at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }) : "";
  cell(line, "th", String(trial.id)).scope = "row";
  for (const name of names) {
    const found = cell(line, "td", value(name, trial.values[name]));
    if (!ranges.includes(name)) found.title = String(trial.values[name]);
  }
  cell(line, "td", outcome).className = trial.state === "told" ? (trial.success ? "yes" : "no") : "soft";
  cell(line, "td", trial.participant || "").title = trial.participant || "";
  cell(line, "td", when);
  return line;
}

function cell(line, kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  line.append(made);
  return made;
}

// Pictures ---------------------------------------------------------------------------------------

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: of("ink"), soft: of("soft"), grid: of("grid"), paper: of("paper"), blue: of("blue"), band: of("band"), good: of("good"), warning: of("warning") };
}

function layout(colour, x, y, more) {
  const axis = { gridcolor: colour.grid, linecolor: colour.soft, zeroline: false, ticks: "outside", tickcolor: colour.soft, automargin: true, fixedrange: true };
  const font = { color: colour.ink, family: getComputedStyle(document.body).fontFamily, size: 13 };
  return {
    font, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 8, r: 12, t: 8, b: 8 },
    showlegend: false, hovermode: "closest", dragmode: false, autosize: true, uirevision: "kept",
    hoverlabel: { bgcolor: colour.paper, bordercolor: colour.soft, font },
    xaxis: { ...axis, ...x }, yaxis: { ...axis, ...y }, ...more,
  };
}

const OPTIONS = { displayModeBar: false, responsive: true, staticPlot: false };

function marks(trials, style, place) {
  return {
    type: "scatter", mode: "markers", hoverinfo: "text", x: trials.map((t) => place(t)[0]), y: trials.map((t) => place(t)[1]),
    text: trials.map((t) => `trial ${t.id}: ${style.word}<br>${point(t.values)}${t.participant ? `<br>${literal(t.participant)}` : ""}`),
    marker: { size: 8, ...style },
  };
}

/** Trials at the levels that are chosen, by how they ended; `along`: at all levels of this feature. */
function kinds(colour, along) {
  const isShown = (t) => last.chosen.every(({ name, level }) => name === along || t.values[name] === level);
  const all = [...trials.values()].filter(isShown);
  return [
    [all.filter((t) => t.success === true), { word: "success", symbol: "triangle-up", color: colour.good, opacity: 0.7 }],
    [all.filter((t) => t.success === false), { word: "failure", symbol: "triangle-down", color: colour.warning, opacity: 0.7 }],
    [all.filter((t) => t.state === "pending"), { word: "pending", symbol: "diamond-open", color: colour.ink, size: 10 }],
  ];
}

const summed = (found, i) => `P(success) ${percent(found.mean[i])}<br>95 % interval ${percent(found.low[i])} to ${percent(found.high[i])}`;
const SHARES = { title: { text: "P(success)" }, range: [-0.09, 1.09], tickvals: [0, 0.25, 0.5, 0.75, 1], ticktext: ["0", "25 %", "50 %", "75 %", "100 %"] };
const height = (t) => (t.success === true ? 1.04 : t.success === false ? -0.04 : 0.5);

/** The line at the probability that the goal is about. */
function goalLine(colour) {
  if (study.goal.kind !== "LevelSet" || study.goal.under) return [];
  return [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: study.goal.level, y1: study.goal.level, line: { color: colour.soft, width: 1.5, dash: "dash" } }];
}

/** The levels of one feature: mean and interval of each, and trials side by side. */
function bars(colour, name, found) {
  const levels = study.space[name], data = [];
  const text = levels.map((level, i) => `${point(found.points[i])}<br>${summed(found, i)}`);
  if (found.mean[0] !== null) {
    const above = found.mean.map((mean, i) => found.high[i] - mean), below = found.mean.map((mean, i) => mean - found.low[i]);
    data.push({ type: "scatter", mode: "markers", x: levels.map((_, i) => i), y: found.mean, hoverinfo: "text", text, marker: { size: 12, color: colour.blue },
      error_y: { type: "data", symmetric: false, array: above, arrayminus: below, color: colour.blue, thickness: 2.5, width: 8 } });
  }
  const beside = (t) => ((0.618 * t.id) % 1) / 2 - 0.25; // trials of one level would hide each other
  const at = (t) => [levels.indexOf(t.values[name]) + beside(t), height(t)];
  for (const [some, style] of kinds(colour, name)) data.push(marks(some, style, at));
  const some = levels.map((_, i) => i).filter((i) => i % Math.ceil(levels.length / 24) === 0);
  const ticks = { tickvals: some, ticktext: some.map((i) => literal(cut(String(levels[i]), 16))), range: [-0.6, levels.length - 0.4] };
  return [data, layout(colour, { title: { text: literal(name) }, ...ticks }, SHARES, { shapes: goalLine(colour) })];
}

/** The curve of one feature: mean, interval, level, threshold and trials. */
function curve(colour, name, found, known, isOnly) {
  const x = found.points.map((p) => p[name]);
  const line = { type: "scatter", mode: "lines", x, hoverinfo: "skip", line: { width: 0 } };
  const text = x.map((_, i) => `${literal(name)} ${number(name, x[i])}<br>${summed(found, i)}`);
  const data = found.mean[0] === null ? [] : [
    { ...line, y: found.low },
    { ...line, y: found.high, fill: "tonexty", fillcolor: colour.band },
    { ...line, y: found.mean, line: { width: 3, color: colour.blue }, hoverinfo: "text", text },
  ];
  const shapes = goalLine(colour);
  if (isOnly && known && known.threshold !== undefined) {
    const [low, high] = known.interval;
    const y = study.goal.under ? 0 : study.goal.level;
    shapes.push({ type: "line", yref: "paper", y0: 0, y1: 1, x0: known.threshold, x1: known.threshold, line: { color: colour.warning, width: 1.5, dash: "dot" } });
    data.push({ type: "scatter", mode: "lines", x: [low, high], y: [y, y], hoverinfo: "skip", line: { width: 7, color: colour.warning }, opacity: 0.55 });
    data.push({ type: "scatter", mode: "markers", x: [known.threshold], y: [y], hoverinfo: "text",
      text: [`${literal(name)} at ${percent(study.goal.level)}: ${number(name, known.threshold)}<br>95 % interval ${number(name, low)} to ${number(name, high)}`],
      marker: { size: 13, color: colour.warning, line: { color: colour.paper, width: 2 } } });
  }
  const place = (t) => [t.values[name], height(t)];
  for (const [some, style] of kinds(colour)) data.push(marks(some, style, place));
  return [data, layout(colour, axisOf(name), SHARES, { shapes })];
}

/** The axis of a range; over decades it is logarithmic, and so are its ends. */
function axisOf(name) {
  const [low, high] = study.space[name].map((end) => (isLog(name) ? Math.log10(end) : end));
  const room = 0.02 * (high - low);
  return { title: { text: literal(name) }, type: isLog(name) ? "log" : "linear", range: [low - room, high + room] };
}

/** The map of two features: of the mean, or of the width of the interval. */
function map(colour, found, of) {
  const [first, second] = ranges;
  const [columns, lines] = ranges.map((name) => found.grid[name]); // whole numbers may be fewer than asked for
  const index = (i, j) => i * lines + j;
  const x = Array.from({ length: columns }, (_, i) => found.points[index(i, 0)][first]);
  const y = Array.from({ length: lines }, (_, j) => found.points[j][second]);
  const shade = (k) => (of === "mean" ? found.mean[k] : found.high[k] - found.low[k]);
  const z = y.map((_, j) => x.map((__, i) => shade(index(i, j))));
  const text = y.map((_, j) => x.map((__, i) => `${point(found.points[index(i, j)])}<br>${summed(found, index(i, j))}`));
  const data = [];
  if (found.mean[0] !== null) {
    const bar = { thickness: 12, outlinewidth: 0, tickformat: ".0%", tickcolor: colour.soft };
    data.push({ type: "heatmap", x, y, z, text, hoverinfo: "text", zmin: 0, zmax: 1, zsmooth: ranges.some(isLog) ? false : "best", colorscale: of === "mean" ? "RdBu" : "Cividis", reversescale: of === "mean", colorbar: bar });
    if (of === "mean" && study.goal.kind === "LevelSet" && !study.goal.under) {
      const contours = { coloring: "none", start: study.goal.level, end: study.goal.level, size: 1, showlabels: false };
      data.push({ type: "contour", x, y, z, contours, showscale: false, hoverinfo: "skip", line: { color: "#111111", width: 2 } });
    }
  }
  const style = (one) => ({ ...one, color: one.word === "pending" ? "#111111" : one.color, opacity: 0.9, size: 7, line: { color: "#ffffff", width: one.word === "pending" ? 2 : 0.8 } });
  const place = (t) => [t.values[first], t.values[second]];
  if (of === "mean") for (const [some, one] of kinds({ ...colour, good: "#007a59", warning: "#b84f00" })) data.push(marks(some, style(one), place));
  return [data, layout(colour, axisOf(first), axisOf(second))];
}

let last = null;

function draw() {
  if (last === null) return;
  const colour = colours(), { status, found } = last;
  const known = status.known;
  const figures = ranges.length === 0 ? found.map((each, k) => bars(colour, names[k], each))
    : ranges.length === 1 ? [curve(colour, ranges[0], found[0], known, names.length === 1)]
      : ranges.length === 2 ? [map(colour, found[0], "mean"), map(colour, found[0], "width")]
        : found.map((each, k) => curve(colour, ranges[k], each, known, false));
  figures.forEach(([data, looks], k) => Plotly.react(`plot-${k}`, data, looks, OPTIONS));
  document.documentElement.dataset.drawn = status.told;
}

// Asking the server --------------------------------------------------------------------------------

async function get(path) {
  const response = await fetch(base + path, { credentials: "same-origin", cache: "no-store" });
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(found.detail || `status ${response.status}`);
  return found;
}

/** How an address names a feature: one that is named as an option gets `value_`. */
const parameter = (name) => (["grid", "level"].includes(name) ? `value_${name}` : name);
const selects = [...document.querySelectorAll("select[data-feature]")];

/** The levels that are chosen: in words for the server, and as trials have them. */
function choice() {
  return selects.map((each) => {
    const name = each.dataset.feature;
    return { name, word: each.value, level: study.space[name][each.selectedIndex] };
  });
}

/** The posterior where the figures need it: on a grid at the chosen levels, or along each of several features. */
async function believed(chosen) {
  const elsewhere = (along) => new URLSearchParams(chosen.filter(({ name }) => name !== along).map(({ name, word }) => [parameter(name), word]));
  const asked = (query) => get(`/posterior?${query}`);
  const gridded = (query, size) => (query.append("grid", size), asked(query));
  const shown = (features) => features.slice(0, document.querySelectorAll(".plot").length);
  if (ranges.length === 0) return Promise.all(shown(names).map((along) => gridded(elsewhere(along), 1)));
  if (ranges.length <= 2) return [await gridded(elsewhere(null), GRID)];
  return Promise.all(shown(ranges).map((along) => {
    const query = elsewhere(null);
    for (const name of ranges) {
      if (name !== along) query.append(parameter(name), numberAt(name, 1 / 2)); // once: the same at all points
      else for (let i = 0; i <= 40; i += 1) query.append(parameter(name), numberAt(name, i / 40));
    }
    return asked(query);
  }));
}

/** Read the trials that may have changed since the last look: from the oldest pending one on. */
async function read(total) {
  const pending = [...trials.values()].filter((t) => t.state === "pending").map((t) => t.id);
  let after = trials.size ? Math.min(...pending, Math.max(...trials.keys()) + 1) - 1 : total - MOST_TRIALS - 1;
  for (let next = Math.max(-1, after); next !== null && next !== undefined;) {
    const page = await get(`/trials?after=${next}&limit=1000`);
    for (const trial of page.trials) trials.set(trial.id, trial);
    next = page.next;
  }
  for (const id of trials.keys()) {
    if (trials.size <= MOST_TRIALS) break;
    trials.delete(id);
  }
}

let isLooking = false, isDue = false;

/** Look once, and again if something has changed meanwhile; never two at a time. */
async function look() {
  isDue = true;
  if (isLooking) return;
  isLooking = true;
  while (isDue) {
    isDue = false;
    const began = Date.now();
    try {
      const chosen = choice(), status = await get("/status");
      const [found] = await Promise.all([believed(chosen), read(status.told + status.pending + status.abandoned)]);
      last = { status, found, chosen };
      tell(status);
      list();
      draw();
      by("trouble").hidden = true;
    } catch (error) {
      trouble(error.message);
      setTimeout(look, 3000);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(LEAST_PAUSE, Date.now() - began)));
  }
  isLooking = false;
}

function trouble(text) {
  put("trouble", text);
  by("trouble").hidden = !text;
}

/** Listen to the server; browsers come back by themselves unless they were refused. */
function listen(wait = 1000) {
  const source = new EventSource(`${base}/events`);
  source.addEventListener("status", (event) => {
    wait = 1000;
    count(JSON.parse(event.data));
    look();
  });
  source.onerror = () => {
    state("waiting", "no connection, trying again");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(Math.min(2 * wait, 30000)), wait);
  };
}

// Stopping -----------------------------------------------------------------------------------------

function sure(isAsked) {
  by("sure-stop").hidden = !isAsked;
  by("ask-stop").hidden = isAsked;
  if (isAsked) by("stop-no").focus();
}

async function rule(what) {
  const response = await fetch(`${base}/${what}`, { method: "POST", credentials: "same-origin" });
  if (!response.ok) trouble((await response.json().catch(() => ({}))).detail || `status ${response.status}`);
  sure(false);
}

if (by("stop")) {
  by("stop").onclick = () => sure(true);
  by("stop-no").onclick = () => sure(false);
  by("stop-yes").onclick = () => rule("stop");
  by("resume").onclick = () => rule("resume");
}
for (const each of selects) each.onchange = look;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
listen();
