/*
 * log.js - a rank's log: its end, what comes behind it, and a search that goes back through it
 *
 * At most KEEP characters are held; what is dropped is read again when one goes back.
 */
import {$, el, setText} from "/dom.js";
import {ask} from "/api.js";

const KEEP = 2000000, PART = 131072, MARKS = 2000, BACK = 32;

const state = {job: 0, rank: 0, parts: [], mark: -1, drawn: "", tail: null};
let working = false;

const text = () => state.parts.map((p) => p.text).join("");
const url = (more) => "/api/jobs/" + state.job + "/logs?rank=" + state.rank + more;

function reset() {
  state.parts = [];
  state.mark = -1;
  state.drawn = "\0";
  $("log").replaceChildren();
}

/* Marks where `word` occurs; all of the text is drawn anew only when something before its end changed. */
function draw() {
  const box = $("log"), whole = text(), word = $("log-search").value;
  const top = box.scrollHeight - box.scrollTop, follow = $("log-follow").checked;
  if (!word && state.drawn !== "\0" && whole.startsWith(state.drawn) && !box.querySelector("mark")) {
    box.append(whole.slice(state.drawn.length));
  } else {
    const out = document.createDocumentFragment(), low = whole.toLowerCase(), w = word.toLowerCase();
    let at = 0, n = 0;
    for (let i = w ? low.indexOf(w) : -1; i >= 0 && n < MARKS; i = low.indexOf(w, at), n++) {
      out.append(whole.slice(at, i), el("mark", "", whole.slice(i, i + w.length)));
      at = i + w.length;
    }
    out.append(whole.slice(at));
    box.replaceChildren(out);
    if (!follow) box.scrollTop = box.scrollHeight - top; /* what was in view stays there */
  }
  state.drawn = whole;
  $("log-earlier").hidden = !state.parts.length || state.parts[0].offset === 0;
  tell();
  if (follow) box.scrollTop = box.scrollHeight;
}

function tell() {
  const marks = $("log").getElementsByTagName("mark").length;
  setText($("log-found"), !$("log-search").value ? "" : !marks
    ? state.parts.length && state.parts[0].offset ? "not in this part; Enter looks further back" : "not found"
    : (state.mark < 0 ? "" : state.mark + 1 + " of ") + marks + (marks >= MARKS ? "+" : "") + (state.mark < 0 ? " found" : ""));
}

export async function showLog(job, rank) {
  if (job.id !== state.job || rank !== state.rank || job.attempts !== state.attempt) {
    state.job = job.id;
    state.attempt = job.attempts;
    state.rank = rank;
    reset();
  }
  const last = state.parts[state.parts.length - 1], id = state.job;
  const part = await ask(url(last ? "&after=" + last.end : ""));
  if (id !== state.job || rank !== state.rank || state.parts[state.parts.length - 1] !== last) return;
  if (last && part.offset !== last.end) reset(); /* the file began anew */
  else if (last && !part.text) return;
  state.parts.push(part);
  for (let n = text().length; n > KEEP && state.parts.length > 1;) n -= state.parts.shift().text.length;
  draw();
}

/* One part further back; false: there is none. */
async function earlier() {
  const first = state.parts[0], job = state.job, rank = state.rank;
  if (!first || first.offset <= 0) return false;
  const part = await ask(url("&bytes=" + PART + "&before=" + first.offset));
  if (job !== state.job || rank !== state.rank || state.parts[0] !== first || part.end !== first.offset) return false;
  $("log-follow").checked = false;
  state.parts.unshift(part);
  if (state.mark >= 0) state.mark = -1;
  draw();
  return true;
}

function go(mark) {
  const box = $("log"), marks = box.getElementsByTagName("mark");
  $("log-follow").checked = false;
  for (const m of box.querySelectorAll("mark.now")) m.className = "";
  state.mark = mark;
  marks[mark].className = "now";
  box.scrollTop = marks[mark].offsetTop - box.clientHeight / 2;
  tell();
}

/* The next one, upwards from the newest; at the first one further back in the file. */
async function find(down) {
  const marks = $("log").getElementsByTagName("mark");
  if (working || !$("log-search").value) return;
  working = true;
  try {
    if (down && state.mark >= 0 && state.mark + 1 < marks.length) return go(state.mark + 1);
    if (down) return marks.length ? go(0) : undefined;
    if (state.mark > 0) return go(state.mark - 1);
    if (state.mark < 0 && marks.length) return go(marks.length - 1);
    for (let i = 0; i < BACK; i++) {
      const before = marks.length;
      if (!await earlier()) break;
      if (marks.length > before) return go(marks.length - before - 1);
    }
    if (marks.length) go(marks.length - 1);
    tell();
  } finally {
    working = false;
  }
}

const quiet = (promise) => promise.catch(() => setText($("log-found"), "no answer"));

$("log-search").addEventListener("input", () => { state.mark = -1; draw(); });
$("log-search").addEventListener("keydown", (e) => { if (e.key === "Enter") quiet(find(e.shiftKey)); });
$("log-up").addEventListener("click", () => quiet(find(false)));
$("log-down").addEventListener("click", () => quiet(find(true)));
$("log-earlier").addEventListener("click", () => quiet(earlier()));
$("log-follow").addEventListener("change", () => { if ($("log-follow").checked) $("log").scrollTop = $("log").scrollHeight; });
$("log").addEventListener("wheel", (e) => { if (e.deltaY < 0) $("log-follow").checked = false; }, {passive: true});
$("log").addEventListener("keydown", (e) => { if (["PageUp", "ArrowUp", "Home"].includes(e.key)) $("log-follow").checked = false; });
