/* app.js - the page: the list of jobs, one job, and when what is asked for again */
import {$, el, fillList, loss, ms, num, setText} from "/dom.js";
import {Refused, ask, listen} from "/api.js";
import {Chart} from "/chart.js";
import {Series} from "/series.js";
import {live, showEvents, showFailure, showMemory, showRanks, showSummary, speedOf, unitOf} from "/job.js";
import {showLog} from "/log.js";

const POINTS = 600, LINES = 12; /* ranks that get a line of their own */
const ATTEMPTS = 8; /* earlier ones that are drawn */
const COLORS = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];
const state = {jobs: [], more: null, job: null, id: 0, range: null, busy: false, again: false, series: {}};

function link(cls, text) {
  $("link").className = "link " + cls;
  setText($("link"), text);
}

/* The list */

function pick() {
  const wanted = Number((location.hash.match(/^#job=(\d+)$/) || [])[1] || 0);
  const alive = state.jobs.find(live);
  return wanted || (alive || state.jobs[0] || {id: 0}).id;
}

function showList() {
  fillList($("jobs"), state.jobs.length, () => {
    const li = el("li"), a = el("a"), row = el("span", "row");
    row.append(el("b"), el("span"));
    a.append(row, el("small"));
    li.append(a);
    return li;
  }, (li, i) => {
    const j = state.jobs[i], a = li.firstChild, [name, where] = a.firstChild.children;
    a.href = "#job=" + j.id;
    if (j.id === state.id) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
    setText(name, j.id + " " + j.name);
    name.title = j.name;
    setText(where, j.state);
    where.className = "state " + j.state;
    setText(a.lastChild, [j.step ? num(j.step) + (j.steps ? " / " + num(j.steps) : "") + " steps" : "no step yet",
                          j.loss !== null ? "loss " + loss(j.loss) : ""].filter(Boolean).join(", "));
  });
  $("older").hidden = state.more === null;
  $("empty").hidden = state.jobs.length > 0;
}

/* The charts */

const zoom = (first, last) => { setRange(first === null ? null : [first, last]); };
const charts = {
  loss: new Chart($("loss"), {bars: true, format: loss, zoom}),
  speed: new Chart($("speed"), {zero: true, format: (x) => num(x, 5), zoom}),
  each: new Chart($("each"), {bars: true, format: (x) => num(x, 5), zoom}),
  time: new Chart($("time"), {zero: true, clip: true, bars: true, format: ms, zoom}),
  split: new Chart($("split"), {zero: true, clip: true, stacked: true, format: ms, zoom}),
};

function setRange(range) {
  state.range = range && range[1] > range[0] ? range : null;
  $("unzoom").hidden = !state.range;
  setText($("range-now"), state.range ? "steps " + num(state.range[0]) + " to " + num(state.range[1]) : "all steps");
  $("range-hint").hidden = !!state.range;
  refresh();
}

function series(query, points, over) {
  const s = state.series;
  if (!s[query]) s[query] = new Series(query, points || POINTS, over);
  return s[query].load(state.job, state.range);
}

/* Rows of dygraphs from lists of points: a row per step that any of them has. */
function join(lists, value) {
  const by = new Map(), empty = lists.map(() => null);
  lists.forEach((points, k) => {
    for (const p of points) {
      let row = by.get(p[0]);
      if (!row) by.set(p[0], row = [p[0], ...empty]);
      row[k + 1] = value(p);
    }
  });
  return [...by.values()].sort((a, b) => a[0] - b[0]);
}

const bar = (p) => [p[1], p[3], p[2]];
const gap = [null, null, null];
const bars = (rows) => rows.map((r) => r.map((v) => v === null ? gap : v));

/* A job's loss over its attempts: each counts up to where the next one went on. */
async function wholeLoss(job, metric) {
  const numbers = [], last = await series("metric=" + metric);
  let points = last.length ? last[0].points : [];
  for (let a = Math.max(1, job.attempts - ATTEMPTS); a < job.attempts; a++) numbers.push(a);
  const old = await Promise.all(numbers.map((a) => series("metric=" + metric + "&attempt=" + a, POINTS, true)));
  for (const s of old.reverse()) {
    const from = points.length ? points[0][0] : Infinity;
    if (s.length) points = s[0].points.filter((p) => p[0] < from).concat(points);
  }
  return {points, width: last.length ? last[0].width : 1};
}

async function showLoss(job) {
  const [train, valid] = await Promise.all([wholeLoss(job, "loss"), wholeLoss(job, "valid.loss")]);
  const lines = [{name: "training", color: "--c0", band: true}], lists = [train.points];
  if (valid.points.length) {
    lines.push({name: "validation", color: "--c1", dots: true});
    lists.push(valid.points);
  }
  return () => charts.loss.show(lines, bars(join(lists, bar)), "loss", state.range,
                                train.width, job.step);
}

async function showSpeed(job) {
  const all = await series("metric=units_per_second&over=ranks"), n = all.length ? all[0].ranks : 0;
  const own = n > 0 && n <= LINES ? await series("metric=units_per_second", POINTS / 2) : null, unit = unitOf(job) + "/s";
  return () => {
    if (!n) return;
    charts.speed.show([{name: n === 1 ? "1 rank" : "all " + n + " ranks", color: "--c2", width: 2}],
                      all[0].points.map((p) => [p[0], p[3] * n]), unit, state.range, all[0].width, job.step);
    if (own)
      charts.each.show(own.map((s, i) => ({name: "rank " + s.rank, color: COLORS[i % 8], dash: i >> 3, width: 1.3})),
                       bars(join(own.map((s) => s.points), (p) => [p[3], p[3], p[3]])), unit, state.range,
                       own[0].width, job.step);
    else
      charts.each.show([{name: "mean, slowest to fastest", color: "--c0", band: true}],
                       all[0].points.map((p) => [p[0], bar(p)]), unit, state.range, all[0].width, job.step);
  };
}

async function showTime(job) {
  const [step, comm, data] = await Promise.all(["step_ms", "comm_ms", "data_ms"].map((m) => series("metric=" + m + "&over=ranks")));
  return () => {
    if (!step.length) return;
    charts.time.show([{name: "mean over ranks, least to greatest", color: "--c0", band: true}],
                     step[0].points.map((p) => [p[0], bar(p)]), "ms", state.range, step[0].width, job.step);
    const rows = join([step, comm, data].map((s) => s[0].points), (p) => p[3]).filter((r) => r[1] !== null)
      .map((r) => [r[0], Math.max(0, r[1] - r[2] - r[3]), r[2], r[3]]);
    charts.split.show([{name: "compute", color: "--c0"}, {name: "waiting", color: "--c4"}, {name: "data", color: "--c3"}],
                      rows, "ms", state.range, step[0].width, job.step);
  };
}

async function showCharts(job) {
  const draw = await Promise.all([showLoss(job), showSpeed(job), showTime(job)]);
  if (job.id !== state.id) return;
  draw.forEach((f) => f());
  const v = job.metrics["valid.loss"];
  setText($("loss-now"), job.loss === null ? "" : loss(job.loss) + (v ? ", validation " + loss(v.value) : ""));
  setText($("speed-now"), speedOf(job) ? num(speedOf(job)) + " " + unitOf(job) + "/s, last 20 steps" : "");
}

function showPick(job) {
  const select = $("log-rank"), n = job.ranks.length || job.world_size || 1, old = select.value;
  if (select.options.length !== n) {
    fillList(select, n, () => el("option"), (o, i) => {
      setText(o, job.ranks[i] ? job.ranks[i].rank : i);
      o.value = o.textContent;
    });
    if (old && Number(old) < n) select.value = old;
  }
}

function openLog(rank) {
  $("log-rank").value = String(rank);
  refresh();
  $("log").scrollIntoView({block: "center"});
  $("log").focus({preventScroll: true});
}

/* One round: list, then the chosen job. Asked for again meanwhile: once more. */
async function refresh() {
  if (state.busy) { state.again = true; return; }
  state.busy = true;
  try {
    do {
      state.again = false;
      await round();
    } while (state.again);
  } catch (e) {
    state.again = false;
    if (e instanceof Refused && e.message === "no such job") { location.hash = ""; later(); }
    else if (e instanceof Refused) link("lost", "the token has changed: open the printed link again");
    else if (!ended) link("lost", "reconnecting");
  } finally {
    state.busy = false;
  }
}

async function round() {
  const list = await ask("/api/jobs?limit=50");
  const known = new Set(list.jobs.map((j) => j.id)), least = Math.min(...known);
  const old = state.jobs.filter((j) => j.id < least);
  state.jobs = list.jobs.concat(old);
  if (!old.length) state.more = list.next;
  const id = pick();
  if (id !== state.id) {
    state.id = id;
    state.series = {};
    state.range = null;
    setRange(null);
  }
  showList();
  $("job").hidden = !id;
  if (!id) return;
  const job = await ask("/api/jobs/" + id);
  state.job = job;
  showSummary(job);
  showMemory(job);
  showRanks(job);
  showEvents(job);
  showPick(job);
  await Promise.all([showCharts(job), showFailure(job, openLog), showLog(job, Number($("log-rank").value || 0))]);
}

/* At most one round a second, none while nobody looks. */
let timer = 0, ended = false;
function later() {
  if (!timer && !document.hidden) timer = setTimeout(() => { timer = 0; refresh(); }, 1000);
}

listen((what) => {
  if (what === "live") {
    ended = false;
    link("live", "live");
    refresh();
  } else if (what === "closing") {
    ended = true;
    link("", "ended; what you see is the last state. \u201cshardlaunch serve\u201d shows all jobs");
    refresh();
  } else if (what === "reconnecting") {
    if (!ended) link("lost", "reconnecting");
  } else {
    later();
  }
});

window.addEventListener("hashchange", refresh);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
$("log-rank").addEventListener("change", refresh);
$("unzoom").addEventListener("click", () => setRange(null));
$("last").addEventListener("change", () => {
  const n = Number($("last").value), step = state.job ? state.job.step : 0;
  setRange(n && step > n ? [step - n + 1, step] : null);
  $("last").value = "";
});
$("older").addEventListener("click", async () => {
  const list = await ask("/api/jobs?limit=50&before=" + state.more);
  state.jobs = state.jobs.concat(list.jobs);
  state.more = list.next;
  showList();
});
/* Ages and clocks go on even when nothing is written. */
setInterval(() => { if (state.job && live(state.job) && $("link").classList.contains("live")) later(); }, 5000);
refresh();
