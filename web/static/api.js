/* api.js - asking the server, and hearing from it: a stream that comes back by itself */

let ahead = 0; /* the server's clock minus ours, in seconds: a tunnel may lead to another machine */

export const now = () => Date.now() / 1000 + ahead;

export class Refused extends Error {}

export async function ask(path) {
  const r = await fetch(path, {headers: {Accept: "application/json"}, signal: AbortSignal.timeout(20000)});
  const date = Date.parse(r.headers.get("Date"));
  if (date) {
    const off = date / 1000 - Date.now() / 1000;
    if (Math.abs(off - ahead) > 2) ahead = off;
  }
  if (r.status === 401) throw new Refused("token");
  const body = await r.json();
  if (r.status === 404) throw new Refused(body.error);
  if (!r.ok) throw new Error(body.error);
  return body;
}

/*
 * /api/events: `on` is told "live", "reconnecting", "closing" (the server ends: look a last time),
 * "change", and gets each event once, also those that were missed while there was no connection.
 * The browser comes back by itself while it may; where it gave up (a proxy's error, too many
 * streams) or the server said goodbye, we ask again, less and less often.
 */
export function listen(on) {
  let source, last = -1, wait = 1000, timer = 0;

  const again = () => {
    source.close();
    clearTimeout(timer);
    timer = setTimeout(open, wait);
    wait = Math.min(10000, wait * 2);
  };
  function open() {
    source = new EventSource("/api/events" + (last >= 0 ? "?after=" + last : ""));
    source.addEventListener("open", () => { wait = 1000; on("live"); });
    source.addEventListener("change", () => on("change"));
    source.addEventListener("event", (e) => {
      last = Math.max(last, Number(e.lastEventId));
      on("event", JSON.parse(e.data));
    });
    source.addEventListener("closing", () => { on("closing"); wait = 5000; again(); });
    source.addEventListener("error", () => {
      on("reconnecting");
      if (source.readyState === EventSource.CLOSED) again();
    });
  }
  open();
}
