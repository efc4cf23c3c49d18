/*
 * dom.js - elements and the forms of numbers
 *
 * Text goes into elements as text only: names, reasons and log lines are people's and stay text.
 */
export const $ = (id) => document.getElementById(id);

export function el(tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined && text !== null) e.textContent = text;
  return e;
}

/* Only what differs is touched: a selection, a focus or a reader's place survives a refresh. */
export function setText(e, text) {
  const t = text === null || text === undefined ? "" : String(text);
  if (e.textContent !== t) e.textContent = t;
}

/* Make `parent` have n children made by `make`, and hand each to `fill` with its index. */
export function fillList(parent, n, make, fill) {
  while (parent.children.length > n) parent.lastElementChild.remove();
  while (parent.children.length < n) parent.append(make());
  for (let i = 0; i < n; i++) fill(parent.children[i], i);
}

const known = (x) => x !== null && x !== undefined && Number.isFinite(x);

export function bytes(n) {
  if (!known(n)) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++; }
  return (i ? n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0) : n) + " " + units[i];
}

export function num(x, digits) {
  if (!known(x)) return "";
  if (Number.isInteger(x) && Math.abs(x) < 1e15) return x.toLocaleString("en");
  return Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en") : String(+x.toPrecision(digits || 4));
}

/* With a steady number of places, so that a changing value keeps its width. */
export function loss(x) {
  return !known(x) ? "" : Math.abs(x) < 1000 && Math.abs(x) >= 0.001 ? x.toFixed(4) : num(x);
}

export function short(x) {
  const a = Math.abs(x);
  if (a >= 1e9) return +(x / 1e9).toPrecision(4) + "G";
  if (a >= 1e6) return +(x / 1e6).toPrecision(4) + "M";
  if (a >= 1e4) return +(x / 1e3).toPrecision(4) + "k";
  return String(+x.toPrecision(4));
}

export function ms(x) {
  return !known(x) ? "" : x.toFixed(x < 10 ? 2 : x < 1000 ? 1 : 0);
}

export function span(seconds) {
  if (!known(seconds) || seconds < 0) return "";
  const s = Math.round(seconds), two = (x) => String(x).padStart(2, "0");
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + ":" + two(s % 60);
  if (s < 86400) return Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60);
  return Math.floor(s / 86400) + " d " + two(Math.floor(s / 3600) % 24) + " h";
}

/* The time of day; with the day when that was not today's or last night's. */
export function clock(t) {
  if (!known(t)) return "";
  const d = new Date(t * 1000), two = (x) => String(x).padStart(2, "0");
  return Math.abs(Date.now() / 1000 - t) < 72000 ? d.toTimeString().slice(0, 8)
    : two(d.getMonth() + 1) + "-" + two(d.getDate()) + " " + d.toTimeString().slice(0, 5);
}

const SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
  9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
  24: "SIGXCPU", 25: "SIGXFSZ"};

/* A rank's end: its status, or the signal that 128 + N stands for. */
export function ending(status) {
  if (!known(status)) return "";
  return status > 128 && status < 193 ? SIGNALS[status - 128] || "signal " + (status - 128) : String(status);
}
