/* job.js - a job's words and numbers: summary, failure, memory, ranks, events */
import {$, bytes, clock, el, ending, fillList, loss, ms, num, setText, span} from "/dom.js";
import {ask, now} from "/api.js";

export const LIVE = ["queued", "held", "starting", "running", "stopping"];
const KINDS = ["parameters", "gradients", "optimizer", "activations", "communication", "workspace"];
const BAD = ["error", "failed", "lost", "nan", "hang", "culprit", "recorder", "log"];

export const live = (job) => LIVE.includes(job.state);

export function unitOf(job) {
  const r = job.ranks.find((x) => x.unit);
  return r ? r.unit : "units";
}

export function speedOf(job) {
  return job.ranks.reduce((sum, r) => sum + (r.units_per_second || 0), 0);
}

/* As fast as until now; an attempt that went on from somewhere has only its last step to go by. */
function left(job) {
  const r = job.ranks[0], one = job.attempts > 1 ? (r && r.step_ms || 0) / 1000 : (now() - job.started_at) / job.step;
  return (job.steps - job.step) * one;
}

export function showSummary(job) {
  const speed = speedOf(job), facts = [], bar = $("progress");
  document.title = job.name + " (" + job.state + ") - shardlaunch";
  setText($("name"), job.name);
  setText($("state"), job.state);
  $("state").className = "state " + job.state;
  setText($("reason"), job.reason);
  $("reason").hidden = !job.reason || ["failed", "lost", "done"].includes(job.state);
  bar.hidden = !job.steps;
  bar.firstElementChild.style.width = job.steps ? Math.min(100, 100 * job.step / job.steps) + "%" : "0";
  bar.setAttribute("aria-valuemax", job.steps);
  bar.setAttribute("aria-valuenow", job.step);
  facts.push(["step", num(job.step) + (job.steps ? " of " + num(job.steps) : "")]);
  facts.push(["loss", job.loss === null && job.step ? "not finite" : loss(job.loss)]);
  for (const [name, m] of Object.entries(job.metrics)) facts.push([name, name.includes("loss") ? loss(m.value) : num(m.value)]);
  facts.push([unitOf(job) + "/s", num(speed || null)]);
  facts.push(["ranks", job.world_size || job.ranks.length]);
  if (job.strategy) facts.push(["strategy", job.strategy]);
  if (job.attempts > 1) facts.push(["attempt", job.attempts]);
  if (job.started_at !== null) facts.push(["started", clock(job.started_at)]);
  if (job.started_at !== null) facts.push(["time", span((job.ended_at || now()) - job.started_at)]);
  if (live(job) && job.steps && job.step) facts.push(["left, about", span(left(job))]);
  if (job.exit_status !== null) facts.push(["exit status", job.exit_status]);
  fillList($("facts"), facts.length, () => {
    const d = el("div");
    d.append(el("dt"), el("dd"));
    return d;
  }, (d, i) => {
    setText(d.firstElementChild, facts[i][0]);
    setText(d.lastElementChild, facts[i][1]);
  });
}

/* The first rank that failed: the agent says so in an event; older stores have it in the reason only. */
function culprit(job) {
  const e = job.events.find((x) => x.attempt === job.attempts && x.rank !== null && x.kind === "culprit");
  const m = e ? null : job.reason.match(/\brank (\d+)\b/);
  return e ? e.rank : m ? Number(m[1]) : null;
}

let told = "";

export async function showFailure(job, openLog) {
  const bad = job.state === "failed" || job.state === "lost", rank = bad ? culprit(job) : null;
  const key = [job.id, job.attempts, job.state].join("/");
  if (!bad) { told = ""; $("failure").hidden = true; return; }
  if (key === told) return;
  const r = job.ranks.find((x) => x.rank === rank);
  const hang = job.events.some((e) => e.kind === "hang" && e.attempt === job.attempts);
  const part = rank === null ? null : await ask("/api/jobs/" + job.id + "/logs?bytes=4096&rank=" + rank);
  const stack = job.events.find((e) => e.kind === "stack" && e.rank === rank && e.attempt === job.attempts);
  const lines = part ? part.text.replace(/\n$/, "").split("\n").slice(-20).join("\n") : "";
  const how = !r || r.exit_status === null ? "" : r.exit_status > 128 ? ": killed by " + ending(r.exit_status)
    : ": status " + r.exit_status;
  setText($("failure-title"), job.state === "lost" ? "Lost"
    : rank === null ? "Failed" : hang ? "Rank " + rank + " hung" : "Rank " + rank + " failed first" + how);
  setText($("failure-reason"), job.reason);
  setText($("failure-who"), r ? [r.host && "on " + r.host, r.pid && "process " + r.pid, r.device,
    r.step && "last step " + num(r.step), r.time && "last sign of life " + clock(r.time)].filter(Boolean).join(" · ") : "");
  $("failure-last").hidden = $("failure-open").hidden = rank === null;
  setText($("failure-lines"), lines || "it has printed nothing");
  $("failure-stack").hidden = !stack;
  setText($("failure-where"), stack ? stack.message.replace(/^ {2}/gm, "") : "");
  $("failure-open").onclick = () => openLog(rank);
  $("failure").hidden = false;
  $("failure-lines").scrollTop = $("failure-lines").scrollHeight;
  told = key;
}

/* Planned bytes of a rank: one strategy's numbers, unless ranks differ. */
function planned(job, rank) {
  const s = job.plan && job.plan.strategies && job.plan.strategies[0];
  if (!s) return null;
  const own = Array.isArray(s.per_rank) ? s.per_rank[rank] : null;
  return own && own.total_bytes ? own.total_bytes : s.total_bytes;
}

function makeBar() {
  const bar = el("div", "bar"), track = el("div", "track"), fill = el("div", "fill");
  for (let k = 0; k < KINDS.length; k++) fill.append(el("i", "k" + k));
  track.append(fill, el("div", "mark plan"), el("div", "mark limit"));
  bar.append(el("span", "who"), track, el("span", "size"));
  return bar;
}

function place(mark, bytesOf, most) {
  mark.hidden = !bytesOf;
  if (bytesOf) mark.style.left = 100 * bytesOf / most + "%";
}

function makeKey() {
  const s = el("span", "key");
  s.append(el("i"), el("span", "name"));
  return s;
}

/* A round step for four or so ticks below `most` bytes. */
function ticks(most) {
  const raw = most / 4, power = 2 ** Math.floor(Math.log2(raw)), out = [];
  for (let x = power; x < most * 0.94; x += power) out.push(x);
  return out.length > 5 ? out.filter((x, i) => i % 2) : out;
}

export function showMemory(job) {
  const rows = job.memory.map((m) => {
    const parts = KINDS.map((k) => m.categories[k] ? m.categories[k].bytes : 0);
    return {rank: m.rank, parts, sum: parts.reduce((a, b) => a + b, 0), plan: planned(job, m.rank),
            process: m.categories.process ? m.categories.process.bytes : null};
  });
  const top = Math.max(1, ...rows.map((r) => Math.max(r.sum, r.plan || 0)));
  /* A limit far away would make everything small: it is told in words then. */
  const near = job.memory_limit && job.memory_limit <= 3 * top, most = (near ? Math.max(top, job.memory_limit) : top) * 1.04;
  const keys = KINDS.map((k, i) => [k, "k" + i]).filter((k, i) => rows.some((r) => r.parts[KINDS.indexOf(k[0])]));
  if (rows.some((r) => r.plan)) keys.push(["planned", "line plan"]);
  if (near) keys.push(["limit", "line limit"]);
  $("memory-none").hidden = rows.length > 0;
  fillList($("memory-keys"), keys.length, makeKey, (s, i) => {
    s.firstElementChild.className = keys[i][1];
    setText(s.lastElementChild, keys[i][0]);
  });
  fillList($("memory"), rows.length, makeBar, (bar, i) => {
    const r = rows[i], [who, track, size] = bar.children, words = [];
    setText(who, r.rank);
    r.parts.forEach((n, k) => {
      track.firstElementChild.children[k].style.width = 100 * n / most + "%";
      if (n) words.push(KINDS[k] + " " + bytes(n));
    });
    place(track.children[1], r.plan, most);
    place(track.children[2], near ? job.memory_limit : 0, most);
    track.title = words.join("\n") + (r.plan ? "\nplanned " + bytes(r.plan) : "")
      + (job.memory_limit ? "\nlimit " + bytes(job.memory_limit) : "") + (r.process ? "\nwhole process " + bytes(r.process) : "");
    track.setAttribute("role", "img");
    track.setAttribute("aria-label", "rank " + r.rank + ": " + track.title.replaceAll("\n", ", "));
    setText(size, bytes(r.sum));
  });
  const marks = rows.length ? ticks(most) : [];
  fillList($("memory-axis"), marks.length, () => el("span"), (s, i) => {
    s.style.left = 100 * marks[i] / most + "%";
    setText(s, bytes(marks[i]).replace(/\.0+ /, " "));
  });
  const words = [];
  if (rows.length && rows[0].plan) words.push("planned " + bytes(Math.max(...rows.map((r) => r.plan))));
  words.push(job.memory_limit ? "limit " + bytes(job.memory_limit) : "no limit set");
  setText($("memory-now"), rows.length ? bytes(Math.max(...rows.map((r) => r.sum))) : "");
  setText($("memory-note"), rows.length ? words.join(", ") : "");
}

/* How long ago a rank told of a step; after the end, when that was. */
function life(job, r) {
  if (r.time === null) return "";
  return live(job) && r.exit_status === null ? span(Math.max(0, now() - r.time)) + " ago" : clock(r.time);
}

export function showRanks(job) {
  const memory = new Map(job.memory.map((m) => [m.rank, m.categories]));
  const typical = job.ranks.map((r) => r.step_ms || 0).sort((a, b) => a - b)[job.ranks.length >> 1] || 0;
  setText($("speed-unit"), unitOf(job) + "/s");
  fillList($("ranks").tBodies[0], job.ranks.length, () => {
    const tr = el("tr");
    for (let i = 0; i < 12; i++) tr.append(el(i ? "td" : "th", i === 1 || i === 3 ? "text" : ""));
    tr.firstChild.scope = "row";
    return tr;
  }, (tr, i) => {
    const r = job.ranks[i], p = (memory.get(r.rank) || {}).process;
    const late = live(job) && r.exit_status === null && r.time !== null && now() - r.time > 5 + 4 * typical / 1000;
    [r.rank, r.host, r.pid || "", r.device, p ? bytes(p.bytes) : "", r.step ? num(r.step) : "",
     num(r.units_per_second), ms(r.step_ms), ms(r.comm_ms), ms(r.data_ms), life(job, r), ending(r.exit_status)]
      .forEach((c, k) => setText(tr.children[k], c));
    tr.children[10].classList.toggle("late", late);
    tr.children[11].classList.toggle("bad", r.exit_status > 0);
  });
}

let shown = "";

export function showEvents(job) {
  const list = $("events"), last = job.events.length ? job.events[job.events.length - 1].id : 0, key = job.id + "/" + last;
  if (key === shown) return;
  const down = list.scrollTop + list.clientHeight >= list.scrollHeight - 8;
  fillList(list, job.events.length, () => {
    const li = el("li");
    li.append(el("time"), el("span", "kind"), el("span", "text"));
    return li;
  }, (li, i) => {
    const e = job.events[i], [time, kind, text] = li.children;
    li.className = BAD.includes(e.kind) ? "bad" : "";
    setText(time, clock(e.time));
    time.dateTime = new Date(e.time * 1000).toISOString();
    time.title = time.dateTime;
    setText(kind, e.kind);
    setText(text, (e.rank === null ? "" : "rank " + e.rank + ": ") + e.message);
  });
  if (down || !shown.startsWith(job.id + "/")) list.scrollTop = list.scrollHeight;
  shown = key;
}
