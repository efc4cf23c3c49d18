/*
 * chart.js - a chart of steps: lines, bands and stacked areas, drawn by dygraphs
 *
 * dygraphs' own legend writes style attributes, which the page's policy forbids, and HTML; ours is
 * made of elements that hold text. Nothing that comes from the API reaches dygraphs but numbers.
 */
/* global Dygraph */
import {el, num, setText, short} from "/dom.js";

Dygraph.PLUGINS = Dygraph.PLUGINS.filter((p) => p !== Dygraph.Plugins.Legend);
const dark = matchMedia("(prefers-color-scheme: dark)");
const DASHES = [null, [6, 3], [2, 2], [8, 3, 2, 3]];

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export class Chart {
  /*
   * box: where it goes. o.zero: the axis begins at 0; o.stacked: areas on top of each other; o.clip:
   * a few very high peaks, as a first step's, go out of the picture instead of flattening the rest;
   * o.format: a value as text; o.zoom(first, last): a part was chosen, zoom(null) all of it.
   */
  constructor(box, o) {
    this.o = o;
    this.title = box.querySelector("h3").firstChild.textContent.trim();
    this.legend = el("div", "legend");
    this.plot = el("div", "plot");
    this.none = el("div", "none", "nothing yet");
    this.unit = el("span", "unit");
    this.at = el("span", "at", "step");
    this.frame = el("div", "frame");
    this.frame.setAttribute("role", "img");
    this.frame.append(this.unit, this.plot, this.at, this.none);
    box.append(this.frame, this.legend);
    this.lines = [];
    this.rows = [];
    new ResizeObserver(() => { if (this.g) this.g.resize(); }).observe(this.plot);
    dark.addEventListener("change", () => this.draw(true));
  }

  /*
   * lines: [{name, color: "--c0", band, dots, dash, width}]; rows: [[step, value...]], a value a
   * number or null, or [least, mean, greatest] for all lines where o.bars. unit: of the y axis;
   * width: how many steps a row stands for; last: the last step there is.
   */
  show(lines, rows, unit, range, width, last) {
    const same = JSON.stringify(lines) === JSON.stringify(this.lines);
    this.lines = lines;
    this.rows = rows;
    this.range = range;
    this.width = width || 1;
    this.last = last;
    this.shown = unit;
    this.draw(!same);
    setText(this.unit, unit + (this.top() ? "; higher peaks are cut off" : ""));
  }

  options() {
    const series = {}, colors = [], labels = ["step"];
    this.lines.forEach((l, i) => {
      const name = "s" + i;
      labels.push(name);
      colors.push(color(l.color));
      series[name] = {drawPoints: !!l.dots, pointSize: 3, strokeWidth: l.width || 1.6,
        strokePattern: DASHES[l.dash || 0], highlightCircleSize: 3.5};
    });
    return {labels, colors, series, customBars: !!this.o.bars, stackedGraph: !!this.o.stacked,
      fillAlpha: this.o.stacked ? 0.75 : 0.25, connectSeparatedPoints: true, drawGapEdgePoints: true,
      gridLineColor: color("--line"), axisLineColor: color("--line"), gridLineWidth: 1,
      labelsKMB: false, rightGap: 8, xRangePad: 2,
      axes: {x: {axisLabelFormatter: (v) => Number.isInteger(v) ? short(v) : "", drawGrid: false,
        pixelsPerLabel: 64, axisLabelHeight: 16},
      y: {axisLabelFormatter: (v) => short(v), axisLabelWidth: 46, pixelsPerLabel: 34,
        includeZero: !!this.o.zero}}};
  }

  /* null, or where the axis ends when the highest value is far above nearly all others. */
  top() {
    if (!this.o.clip || this.rows.length < 20) return null;
    const sum = (row) => row.slice(1).reduce((a, v) => a + (Array.isArray(v) ? v[2] : v || 0), 0);
    const seen = this.range ? this.rows.filter((r) => r[0] >= this.range[0] && r[0] <= this.range[1]) : this.rows;
    const all = seen.map(sum).sort((a, b) => a - b), most = all[Math.floor(all.length * 0.97)];
    return most > 0 && all[all.length - 1] > 3 * most ? 1.6 * most : null;
  }

  draw(fresh) {
    const empty = !this.rows.length || !this.lines.length, top = empty ? null : this.top();
    const valueRange = top ? [0, top] : null;
    this.none.hidden = !empty;
    this.frame.classList.toggle("empty", empty);
    if (empty) {
      if (this.g) { this.g.destroy(); this.g = null; }
    } else if (!this.g || fresh) {
      if (this.g) this.g.destroy();
      const M = Dygraph.defaultInteractionModel, self = this;
      /* The mouse only: a finger on a chart scrolls the page. */
      const model = {mousedown: M.mousedown, dblclick: () => self.o.zoom(null)};
      this.g = new Dygraph(this.plot, this.rows, {...this.options(), dateWindow: this.range || null,
        valueRange, interactionModel: model,
        zoomCallback: (a, b) => this.o.zoom(Math.max(1, Math.floor(a)), Math.max(2, Math.ceil(b))),
        highlightCallback: (e, x, points, row) => this.tell(row),
        unhighlightCallback: () => this.tell(-1)});
    } else if (this.g) {
      this.g.updateOptions({file: this.rows, dateWindow: this.range || null, valueRange});
    }
    if (fresh) {
      this.legend.replaceChildren(...this.lines.map((l) => {
        const s = el("span", "key"), mark = el("i", (l.dots ? "dot" : l.dash ? "dash" : "") + (l.band ? " band" : ""));
        mark.style.color = color(l.color);
        s.append(mark, el("span", "name", l.name), el("b", "value"));
        return s;
      }));
    }
    this.tell(-1);
  }

  /* The steps that a row stands for. */
  steps(row) {
    const a = this.rows[row][0], b = Math.min(a + this.width - 1, Math.max(a, this.last || 0));
    return a === b ? "step " + num(a) : "steps " + num(a) + " to " + num(b);
  }

  /* The values of a row, or the last ones. */
  tell(row) {
    const last = this.rows.length - 1, r = row < 0 ? last : row;
    const text = this.lines.map((l, i) => {
      let at = r, v = null;
      for (; at >= 0 && v === null; at--) {
        v = this.rows[at][i + 1];
        if (Array.isArray(v)) v = v[1];
        if (row >= 0 && !l.dots) break;
      }
      return v === null || v === undefined ? "" : this.o.format(v);
    });
    this.lines.forEach((l, i) => setText(this.legend.children[i].lastChild, text[i]));
    setText(this.at, row < 0 || r < 0 ? "step" : this.steps(r));
    if (row < 0)
      this.frame.setAttribute("aria-label", this.title + " by step" + (last < 0 ? ": nothing yet"
        : ", now " + this.steps(last) + ": "
          + this.lines.map((l, i) => l.name + " " + text[i] + " " + this.shown).join(", ")));
  }
}
