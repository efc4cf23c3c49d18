"use strict";
/*
 * app.js - the page: asks the API, writes text into elements
 *
 * Everything that comes from the API is put in with textContent: names, reasons and log lines are
 * people's text and stay text.
 */
const $ = (id) => document.getElementById(id);
const KINDS = ["parameters", "gradients", "optimizer", "activations", "communication", "workspace"];
const LIVE = ["queued", "held", "starting", "running", "stopping"];
const state = {jobs: [], more: null, job: null, id: 0, logEnd: -1, busy: false, again: false};

function el(tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined && text !== null) e.textContent = text;
  return e;
}

function bytes(n) {
  if (n === null || n === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++; }
  return (i ? n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0) : n) + " " + units[i];
}

function num(x, digits) {
  if (x === null || x === undefined) return "";
  return Number.isInteger(x) && Math.abs(x) < 1e15 ? x.toLocaleString("en")
    : Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en") : String(+x.toPrecision(digits || 4));
}

function ms(x) {
  return x === null ? "" : x.toFixed(x < 10 ? 2 : 1);
}

function span(seconds) {
  if (seconds === null || !(seconds >= 0)) return "";
  const s = Math.round(seconds), two = (x) => String(x).padStart(2, "0");
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + ":" + two(s % 60);
  if (s < 86400) return Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60);
  return Math.floor(s / 86400) + " d " + two(Math.floor(s / 3600) % 24) + " h";
}

function clock(t) {
  return t === null ? "" : new Date(t * 1000).toTimeString().slice(0, 8);
}

async function ask(path) {
  const r = await fetch(path, {headers: {Accept: "application/json"}});
  if (r.status === 401) { link("lost", "the token has changed: open the printed link again"); throw new Error("401"); }
  const body = await r.json();
  if (!r.ok) throw new Error(body.error);
  return body;
}

function link(cls, text) {
  $("link").className = "link " + cls;
  $("link").textContent = text;
}

/* The list */

function pick() {
  const wanted = Number((location.hash.match(/^#job=(\d+)$/) || [])[1] || 0);
  const live = state.jobs.find((j) => LIVE.includes(j.state));
  return wanted || (live || state.jobs[0] || {id: 0}).id;
}

function showList() {
  const list = $("jobs");
  list.replaceChildren(...state.jobs.map((j) => {
    const li = el("li"), a = el("a"), row = el("span", "row");
    a.href = "#job=" + j.id;
    if (j.id === state.id) a.setAttribute("aria-current", "page");
    row.append(el("b", "", j.id + " " + j.name), el("span", "state " + j.state, j.state));
    const where = j.step ? "step " + num(j.step) + (j.steps ? " of " + num(j.steps) : "") : "";
    a.append(row, el("small", "", [where, j.loss !== null ? "loss " + num(j.loss) : ""].filter(Boolean).join(", ")));
    li.append(a);
    return li;
  }));
  $("older").hidden = state.more === null;
  $("empty").hidden = state.jobs.length > 0;
}

/* The job */

function fact(name, value) {
  const d = el("div");
  d.append(el("dt", "", name), el("dd", "", value));
  return d;
}

function total(job) {
  return job.ranks.reduce((sum, r) => sum + (r.units_per_second || 0), 0);
}

function unitOf(job) {
  const r = job.ranks.find((x) => x.unit);
  return r ? r.unit : "units";
}

function showSummary(job) {
  const live = LIVE.includes(job.state), speed = total(job);
  const first = job.ranks[0], facts = [];
  document.title = job.name + " (" + job.state + ") - shardlaunch";
  $("name").textContent = job.name;
  $("state").textContent = job.state;
  $("state").className = "state " + job.state;
  $("reason").textContent = job.reason;
  $("reason").hidden = !job.reason;
  $("progress").hidden = !job.steps;
  $("progress").firstElementChild.style.width = job.steps ? Math.min(100, 100 * job.step / job.steps) + "%" : "0";
  $("progress").setAttribute("aria-valuemax", job.steps);
  $("progress").setAttribute("aria-valuenow", job.step);
  facts.push(fact("job", String(job.id)));
  facts.push(fact("step", num(job.step) + (job.steps ? " / " + num(job.steps) : "")));
  if (job.loss !== null) facts.push(fact("loss", num(job.loss)));
  for (const [name, m] of Object.entries(job.metrics)) facts.push(fact(name, num(m.value)));
  if (speed) facts.push(fact(unitOf(job) + "/s", num(speed)));
  facts.push(fact("ranks", job.world_size || job.ranks.length));
  if (job.strategy) facts.push(fact("strategy", job.strategy));
  if (job.attempts > 1) facts.push(fact("attempt", job.attempts));
  if (job.started_at !== null)
    facts.push(fact("time", span((job.ended_at || Date.now() / 1000) - job.started_at)));
  if (live && job.steps && first && first.step_ms)
    facts.push(fact("left", span((job.steps - job.step) * first.step_ms / 1000)));
  if (job.exit_status !== null) facts.push(fact("exit status", job.exit_status));
  $("facts").replaceChildren(...facts);
}

/* Planned bytes of a rank: one strategy's numbers, unless ranks differ. */
function planned(job, rank) {
  const s = job.plan && job.plan.strategies && job.plan.strategies[0];
  if (!s) return null;
  const own = Array.isArray(s.per_rank) ? s.per_rank[rank] : null;
  return own && own.total_bytes ? own.total_bytes : s.total_bytes;
}

function showMemory(job) {
  const rows = job.memory.map((m) => {
    const parts = KINDS.filter((k) => m.categories[k]).map((k) => [k, m.categories[k].bytes]);
    return {rank: m.rank, parts, sum: parts.reduce((s, p) => s + p[1], 0), plan: planned(job, m.rank),
            process: m.categories.process ? m.categories.process.bytes : 0};
  });
  const most = Math.max(1, ...rows.map((r) => Math.max(r.sum, r.plan || 0, r.process))) * 1.02;
  const seen = KINDS.filter((k) => rows.some((r) => r.parts.some((p) => p[0] === k)));
  const legend = seen.map((k) => {
    const s = el("span");
    s.append(el("i", "k" + KINDS.indexOf(k)), k);
    return s;
  });
  if (rows.some((r) => r.plan)) {
    const s = el("span");
    s.append(el("i", "line"), "planned");
    legend.push(s);
  }
  $("legend").replaceChildren(...legend);
  $("memory").replaceChildren(...(rows.length ? rows.map((r) => {
    const bar = el("div", "bar"), track = el("div", "track"), fill = el("div", "fill"), size = el("span", "size");
    for (const [k, n] of r.parts) {
      const i = el("i", "k" + KINDS.indexOf(k));
      i.style.width = 100 * n / most + "%";
      i.title = k + ": " + bytes(n);
      fill.append(i);
    }
    track.append(fill);
    if (r.plan) {
      const mark = el("div", "mark");
      mark.style.left = 100 * r.plan / most + "%";
      mark.title = "planned: " + bytes(r.plan);
      track.append(mark);
    }
    size.append(bytes(r.sum), el("span", "of", r.plan ? " of " + bytes(r.plan) : ""));
    bar.append(el("span", "who", r.rank), track, size);
    return bar;
  }) : [el("p", "dim", "nothing yet")]));
  const sum = rows.reduce((s, r) => s + r.sum, 0);
  $("memory-now").textContent = sum ? bytes(sum) + " together" : "";
}

function showRanks(job) {
  const memory = new Map(job.memory.map((m) => [m.rank, m.categories]));
  $("speed-unit").textContent = unitOf(job) + "/s";
  $("ranks").tBodies[0].replaceChildren(...job.ranks.map((r) => {
    const tr = el("tr"), cats = memory.get(r.rank) || {};
    const cells = [r.rank, r.host, r.pid || "", r.device, r.step ? num(r.step) : "", num(r.units_per_second),
      ms(r.step_ms), ms(r.comm_ms), ms(r.data_ms), cats.process ? bytes(cats.process.bytes) : "",
      r.exit_status === null ? "" : r.exit_status];
    cells.forEach((c, i) => tr.append(el("td", i === 1 || i === 3 ? "text" : "", c)));
    return tr;
  }));
  const select = $("log-rank"), want = job.ranks.length || job.world_size || 1;
  if (select.options.length !== want) {
    const old = select.value;
    select.replaceChildren(...Array.from({length: want}, (_, i) => {
      const r = job.ranks[i] ? job.ranks[i].rank : i, o = el("option", "", r);
      o.value = r;
      return o;
    }));
    if (old) select.value = old;
  }
}

function showEvents(job) {
  const bad = ["error", "failed", "lost", "nan", "hang", "died"];
  const list = $("events");
  list.replaceChildren(...job.events.slice().reverse().map((e) => {
    const li = el("li", bad.includes(e.kind) ? "bad" : "");
    const time = el("time", "", clock(e.time));
    time.title = new Date(e.time * 1000).toISOString();
    li.append(time, el("span", "kind", e.kind),
      el("span", "text", (e.rank === null ? "" : "rank " + e.rank + ": ") + e.message));
    return li;
  }));
}

async function showLog() {
  const rank = $("log-rank").value || 0, box = $("log"), id = state.id;
  const after = state.logEnd >= 0 ? "&after=" + state.logEnd : "";
  const part = await ask("/api/jobs/" + id + "/logs?rank=" + rank + after);
  if (id !== state.id || String(rank) !== String($("log-rank").value || 0)) return;
  const down = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
  if (state.logEnd < 0 || part.offset !== state.logEnd) box.textContent = "";
  box.append(part.text);
  if (box.textContent.length > 400000) box.textContent = box.textContent.slice(-200000);
  state.logEnd = part.end;
  if (down) box.scrollTop = box.scrollHeight;
}

/* Charts */

const charts = {};

/* The sum over ranks where all have the bucket; the last may be missing on some. */
function together(series) {
  const by = new Map();
  for (const s of series)
    for (const p of s.points) {
      const q = by.get(p[0]) || [p[0], 0, 0, 0, 0];
      q[1] += p[1]; q[2] += p[2]; q[3] += p[3]; q[4]++;
      by.set(p[0], q);
    }
  return [...by.values()].filter((q) => q[4] === series.length).sort((a, b) => a[0] - b[0]);
}

async function showCharts(job) {
  const points = Math.max(100, Math.min(1000, $("loss-chart").clientWidth || 500));
  const base = "/api/jobs/" + job.id + "/series?points=" + points + "&metric=";
  const [loss, speed] = await Promise.all([ask(base + "loss"), ask(base + "units_per_second")]);
  const lines = [{points: loss.series.length ? loss.series[0].points : [], color: "--c0"}];
  if (job.metrics["valid.loss"]) {
    const valid = await ask(base + "valid.loss");
    lines.push({points: valid.series[0].points, color: "--c1", dots: true});
  }
  if (job.id !== state.id) return;
  const v = job.metrics["valid.loss"];
  charts.loss.show(lines, (x) => num(x));
  charts.speed.show([{points: together(speed.series), color: "--c2"}], (x) => num(x));
  $("loss-now").textContent = job.loss === null ? "" : num(job.loss) + (v ? ", validation " + num(v.value) : "");
  $("speed-now").textContent = total(job) ? num(total(job)) + " " + unitOf(job) + "/s" : "";
}

/* One round: list, then the chosen job. Asked for again meanwhile: once more. */
async function refresh() {
  if (state.busy) { state.again = true; return; }
  state.busy = true;
  try {
    const list = await ask("/api/jobs?limit=50");
    const known = new Set(list.jobs.map((j) => j.id));
    state.jobs = list.jobs.concat(state.jobs.filter((j) => !known.has(j.id) && j.id < Math.min(...known)));
    if (state.more === null || state.jobs.length <= list.jobs.length) state.more = list.next;
    const id = pick();
    if (id !== state.id) { state.id = id; state.logEnd = -1; $("log").textContent = ""; }
    showList();
    $("job").hidden = !id;
    if (id) {
      const job = await ask("/api/jobs/" + id);
      showSummary(job);
      showMemory(job);
      showRanks(job);
      showEvents(job);
      await Promise.all([showCharts(job), showLog()]);
      state.job = job;
    }
  } catch (e) {
    if (e.message === "no such job") location.hash = "";
    else if (e.message !== "401") link("lost", "no answer from shardlaunch");
  } finally {
    state.busy = false;
    if (state.again) { state.again = false; later(); }
  }
}

/* At most one round a second, none while nobody looks. */
let timer = 0;
function later() {
  if (!timer && !document.hidden) timer = setTimeout(() => { timer = 0; refresh(); }, 1000);
}

function listen() {
  const events = new EventSource("/api/events");
  events.addEventListener("open", () => { link("live", "live"); later(); });
  events.addEventListener("error", () => link("lost", "connection lost, trying again"));
  events.addEventListener("change", later);
  events.addEventListener("event", later);
}

charts.loss = new Chart($("loss-chart"));
charts.speed = new Chart($("speed-chart"));
window.addEventListener("hashchange", refresh);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
$("log-rank").addEventListener("change", () => { state.logEnd = -1; refresh(); });
$("older").addEventListener("click", async () => {
  const list = await ask("/api/jobs?limit=50&before=" + state.more);
  state.jobs = state.jobs.concat(list.jobs);
  state.more = list.next;
  showList();
});
setInterval(() => { if (state.job && LIVE.includes(state.job.state)) later(); }, 5000);
refresh();
listen();
