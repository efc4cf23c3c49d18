"use strict";
/*
 * chart.js - a line over steps on a canvas: mean as a line, least to greatest as a band
 *
 *   const c = new Chart(element);
 *   c.show([{points: [[step, min, max, mean], ...], color: "--c0", dots: false}], format);
 */
class Chart {
  constructor(box) {
    this.box = box;
    this.canvas = document.createElement("canvas");
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.none = document.createElement("div");
    this.none.className = "none";
    this.none.textContent = "nothing yet";
    box.append(this.canvas, this.tip, this.none);
    this.lines = [];
    this.format = String;
    this.at = null;
    new ResizeObserver(() => this.draw()).observe(box);
    this.canvas.addEventListener("pointermove", (e) => { this.at = e.offsetX; this.draw(); });
    this.canvas.addEventListener("pointerleave", () => { this.at = null; this.draw(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(lines, format) {
    this.lines = lines.filter((l) => l.points.length);
    this.format = format;
    this.draw();
  }

  /* Round numbers around lo..hi, about n of them. */
  static ticks(lo, hi, n) {
    const raw = (hi - lo) / n, power = 10 ** Math.floor(Math.log10(raw));
    const unit = [1, 2, 5, 10].find((m) => m * power >= raw) * power, out = [];
    for (let x = Math.ceil(lo / unit) * unit; x <= hi + unit * 1e-9; x += unit) out.push(x);
    return out;
  }

  static short(x) {
    const a = Math.abs(x);
    if (a >= 1e6) return +(x / 1e6).toPrecision(4) + "M";
    if (a >= 1e4) return +(x / 1e3).toPrecision(4) + "k";
    return String(+x.toPrecision(4));
  }

  range() {
    let x0 = Infinity, x1 = -Infinity;
    const values = [];
    for (const l of this.lines)
      for (const p of l.points) {
        x0 = Math.min(x0, p[0]);
        x1 = Math.max(x1, p[0]);
        if (p[1] !== null) values.push(p[1], p[2]);
      }
    let y0 = Math.min(...values.slice(0, 60000)), y1 = Math.max(...values.slice(0, 60000));
    if (!(y1 > y0)) { y0 -= Math.abs(y0) * 0.05 + 1e-6; y1 += Math.abs(y1) * 0.05 + 1e-6; }
    if (!(x1 > x0)) { x0 -= 1; x1 += 1; }
    const room = (y1 - y0) * 0.06;
    return {x0, x1, y0: y0 >= 0 ? Math.max(0, y0 - room) : y0 - room, y1: y1 + room};
  }

  draw() {
    const w = this.box.clientWidth, h = this.box.clientHeight, ratio = devicePixelRatio || 1;
    const css = getComputedStyle(document.documentElement);
    const color = (name) => css.getPropertyValue(name).trim();
    const g = this.canvas.getContext("2d");
    this.canvas.width = Math.max(1, Math.round(w * ratio));
    this.canvas.height = Math.max(1, Math.round(h * ratio));
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.tip.textContent = "";
    this.none.hidden = this.lines.length > 0;
    this.none.style.display = this.lines.length ? "none" : "";
    if (!this.lines.length || w < 80 || h < 60) return;
    const r = this.range(), left = 48, right = 8, top = 8, bottom = 22;
    const X = (x) => left + (x - r.x0) / (r.x1 - r.x0) * (w - left - right);
    const Y = (y) => top + (r.y1 - y) / (r.y1 - r.y0) * (h - top - bottom);
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = color("--dim");
    g.strokeStyle = color("--line");
    g.lineWidth = 1;
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const y of Chart.ticks(r.y0, r.y1, 4)) {
      g.beginPath();
      g.moveTo(left, Math.round(Y(y)) + 0.5);
      g.lineTo(w - right, Math.round(Y(y)) + 0.5);
      g.stroke();
      g.fillText(Chart.short(y), left - 6, Y(y));
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const x of Chart.ticks(r.x0, r.x1, Math.max(2, w / 110)))
      if (Number.isInteger(x) && x >= 0) g.fillText(Chart.short(x), X(x), h - bottom + 6);
    for (const l of this.lines) this.line(g, l, X, Y, color(l.color));
    this.read(g, X, h, top, bottom, color);
  }

  line(g, l, X, Y, color) {
    const points = l.points.filter((p) => p[3] !== null);
    g.fillStyle = g.strokeStyle = color;
    if (l.dots) {
      for (const p of points) {
        g.beginPath();
        g.arc(X(p[0]), Y(p[3]), 3, 0, 7);
        g.fill();
      }
      return;
    }
    if (points.some((p) => p[1] !== p[2])) {
      g.globalAlpha = 0.22;
      g.beginPath();
      points.forEach((p, i) => i ? g.lineTo(X(p[0]), Y(p[2])) : g.moveTo(X(p[0]), Y(p[2])));
      for (let i = points.length - 1; i >= 0; i--) g.lineTo(X(points[i][0]), Y(points[i][1]));
      g.fill();
      g.globalAlpha = 1;
    }
    g.lineWidth = 1.5;
    g.lineJoin = "round";
    g.beginPath();
    points.forEach((p, i) => i ? g.lineTo(X(p[0]), Y(p[3])) : g.moveTo(X(p[0]), Y(p[3])));
    g.stroke();
    if (points.length === 1) {
      g.beginPath();
      g.arc(X(points[0][0]), Y(points[0][3]), 2.5, 0, 7);
      g.fill();
    }
  }

  /* What stands below the pointer. */
  read(g, X, h, top, bottom, color) {
    if (this.at === null) return;
    const near = (points) => points.reduce((a, p) =>
      Math.abs(X(p[0]) - this.at) < Math.abs(X(a[0]) - this.at) ? p : a);
    const p = near(this.lines[0].points);
    g.strokeStyle = color("--dim");
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(Math.round(X(p[0])) + 0.5, top);
    g.lineTo(Math.round(X(p[0])) + 0.5, h - bottom);
    g.stroke();
    this.tip.textContent = "step " + p[0] + ": " + this.format(p[3]) +
      (p[1] !== p[2] ? " (" + this.format(p[1]) + " to " + this.format(p[2]) + ")" : "");
  }
}
