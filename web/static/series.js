/*
 * series.js - one quantity over the steps of a job, kept and continued
 *
 * The server sends at most so many points, each the least, greatest and mean value of `width`
 * steps. While a run goes on only the last of them are asked for again; when there are twice as many
 * as wanted, all are asked for anew, in wider steps.
 */
import {ask} from "/api.js";

export class Series {
  /* query: "metric=loss"; points: how many are wanted; over: nothing more will come */
  constructor(query, points, over) {
    this.query = query;
    this.over = over;
    this.want = points;
    this.key = "";
    this.list = []; /* of {rank, ranks, width, points: [[step, min, max, mean], ...]} */
  }

  /* range: null or [first, last]. Resolves to the list. */
  async load(job, range) {
    const key = [job.id, job.attempts, range ? range.join("-") : ""].join("/");
    const base = "/api/jobs/" + job.id + "/series?" + this.query;
    if (key === this.key && (this.over || (this.done === job.step && job.ended_at !== null))) return this.list;
    if (key !== this.key || range || !await this.more(base)) {
      const part = range ? "&from=" + range[0] + "&to=" + range[1] : "";
      this.list = (await ask(base + "&points=" + this.want + part)).series;
    }
    this.key = key;
    this.done = job.step;
    return this.list;
  }

  /* Ask for what came behind the last point; false: it does not fit to what there is. */
  async more(base) {
    const full = this.list.filter((s) => s.points.length);
    if (!full.length || full.length !== this.list.length) return false;
    const width = full[0].width, from = Math.min(...full.map((s) => s.points[s.points.length - 1][0]));
    if (full.some((s) => s.width !== width || s.points.length > 2 * this.want)) return false;
    const got = (await ask(base + "&from=" + from + "&width=" + width)).series;
    if (got.length !== full.length) return false;
    for (let i = 0; i < got.length; i++) {
      const old = full[i], s = got[i];
      if (s.width !== width || s.rank !== old.rank || s.ranks !== old.ranks || !s.points.length) return false;
      while (old.points.length && old.points[old.points.length - 1][0] >= s.points[0][0]) old.points.pop();
      old.points.push(...s.points);
    }
    return true;
  }
}
