"use strict";
// Draws the trials that are packed in the page. Both pictures share nothing with the estimator but its numbers.
(() => {
  const trials = JSON.parse(document.getElementById("trials").textContent);
  const choose = document.getElementById("choose");
  const align = document.getElementById("align");
  const told = document.getElementById("told");
  const pointer = document.getElementById("pointer");
  const LEFT = 54, RIGHT = 10, TOP = 10, BOTTOM = 36, FLOOR_DB = -50;
  let trial = null;

  // --- unpacking -----------------------------------------------------------------------------------------------------

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  function unpack(curve) {
    if (!curve) return null;
    if (curve.y) return curve;
    if (curve.u8 !== undefined) curve.y = Float32Array.from(bytes(curve.u8), (b) => (b - 255) / 4);
    else {
      const view = new DataView(bytes(curve.i16).buffer);
      curve.y = new Float32Array(view.byteLength / 2);
      for (let k = 0; k < curve.y.length; k++) curve.y[k] = (view.getInt16(2 * k, true) / 32767) * curve.scale;
    }
    return curve;
  }
  const level = (curve) => ({ start_s: curve.start_s, step_s: curve.step_s, y: curve.y.map((v) => 20 * Math.log10(Math.max(v, 1e-5))) });
  const ms = (s, digits) => (s === null || s === undefined ? "-" : (1e3 * s).toFixed(digits));
  const number = (v, digits) => (v === null || v === undefined ? "-" : v.toFixed(digits));
  const found = (t) => (t.valid ? t.latency_s : t.unconfirmed_s);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // --- a picture that can be moved and zoomed ------------------------------------------------------------------------

  class Picture {
    constructor(id, paint, unit, gutter) {
      this.canvas = document.getElementById(id);
      this.paint = paint;
      this.unit = unit;
      this.gutter = gutter;
      this.range = [0, 1];
      this.home = [0, 1];
      this.touches = new Map();
      const c = this.canvas;
      c.addEventListener("wheel", (e) => {
        if (!e.ctrlKey && !e.metaKey && document.activeElement !== c) return;
        e.preventDefault();
        this.zoom(Math.exp(0.002 * e.deltaY), this.at(e.offsetX));
      }, { passive: false });
      c.addEventListener("pointerdown", (e) => { this.touches.set(e.pointerId, e.offsetX); c.setPointerCapture(e.pointerId); });
      c.addEventListener("pointermove", (e) => this.moved(e));
      for (const end of ["pointerup", "pointercancel"]) c.addEventListener(end, (e) => this.touches.delete(e.pointerId));
      c.addEventListener("pointerleave", () => { pointer.textContent = ""; });
      c.addEventListener("dblclick", () => this.show(this.home));
      c.addEventListener("keydown", (e) => this.key(e));
      new ResizeObserver(() => this.draw()).observe(c);
    }
    get span() { return this.range[1] - this.range[0]; }
    get inner() { return Math.max(10, this.canvas.clientWidth - LEFT - RIGHT); }
    at(px) { return this.range[0] + ((px - LEFT) / this.inner) * this.span; }
    px(x) { return LEFT + ((x - this.range[0]) / this.span) * this.inner; }
    show(range) { this.range = [range[0], range[1]]; this.draw(); }
    zoom(factor, about) {
      const whole = this.home[1] - this.home[0];
      const f = Math.min(Math.max(this.span * factor, 2e-4), 1.2 * whole) / this.span;
      this.show([about + (this.range[0] - about) * f, about + (this.range[1] - about) * f]);
    }
    shift(by) { this.show([this.range[0] + by, this.range[1] + by]); }
    moved(e) {
      pointer.textContent = `${(1e3 * this.at(e.offsetX)).toFixed(3)} ms ${this.unit}`;
      if (!this.touches.has(e.pointerId)) return;
      const before = [...this.touches.values()];
      const last = this.touches.get(e.pointerId);
      this.touches.set(e.pointerId, e.offsetX);
      if (before.length === 1) return this.shift(-((e.offsetX - last) / this.inner) * this.span);
      const after = [...this.touches.values()];
      const wide = (v) => Math.max(8, Math.abs(v[1] - v[0]));
      this.zoom(wide(before) / wide(after), this.at((after[0] + after[1]) / 2));
    }
    key(e) {
      const middle = (this.range[0] + this.range[1]) / 2;
      const act = {
        ArrowLeft: () => this.shift(-0.15 * this.span), ArrowRight: () => this.shift(0.15 * this.span),
        "+": () => this.zoom(0.6, middle), "=": () => this.zoom(0.6, middle), "-": () => this.zoom(1.7, middle),
        0: () => this.show(this.home),
      }[e.key];
      if (act) { e.preventDefault(); act(); }
    }
    draw() {
      const c = this.canvas, ratio = window.devicePixelRatio || 1;
      if (!c.clientWidth || !trial) return;
      c.width = Math.round(c.clientWidth * ratio);
      c.height = Math.round(c.clientHeight * ratio);
      const g = c.getContext("2d");
      g.scale(ratio, ratio);
      g.font = "12px system-ui, sans-serif";
      this.axis(g, c.clientHeight);
      this.gutter?.(g, this, c.clientHeight);
      g.save();
      g.beginPath();
      g.rect(LEFT, 0, this.inner, c.clientHeight - BOTTOM + 1);
      g.clip();
      this.paint(g, this, c.clientHeight);
      g.restore();
    }
    axis(g, height) {
      const raw = (1e3 * this.span) / Math.max(2, this.inner / 90);
      const power = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      g.textAlign = "center";
      for (let k = Math.ceil((1e3 * this.range[0]) / step); k * step <= 1e3 * this.range[1]; k++) {
        const x = this.px((k * step) / 1e3);
        rule(g, x, TOP, x, height - BOTTOM);
        g.fillStyle = colour("--soft");
        g.fillText((k * step).toFixed(digits), x, height - BOTTOM + 15);
      }
      g.fillText(`ms ${this.unit}`, LEFT + this.inner / 2, height - 5);
    }
  }
  function rule(g, x1, y1, x2, y2, ink = "--rule", width = 1, dash = []) {
    g.strokeStyle = colour(ink); g.lineWidth = width; g.setLineDash(dash);
    g.beginPath(); g.moveTo(x1, y1); g.lineTo(x2, y2); g.stroke(); g.setLineDash([]);
  }
  // A line of a curve, or where several samples share a pixel their extremes, so that no peak is lost.
  function trace(g, view, curve, move_s, y, ink, width) {
    if (!curve) return;
    const from = Math.max(0, Math.floor((view.range[0] - curve.start_s - move_s) / curve.step_s) - 1);
    const to = Math.min(curve.y.length - 1, Math.ceil((view.range[1] - curve.start_s - move_s) / curve.step_s) + 1);
    if (to < from) return;
    g.strokeStyle = colour(ink); g.lineWidth = width; g.lineJoin = "round";
    g.beginPath();
    const per = ((to - from) / view.inner) * 0.5;
    const bin = Math.max(1, Math.floor(per));
    for (let k = from; k <= to; k += bin) {
      let low = Infinity, high = -Infinity;
      for (let j = k; j < Math.min(k + bin, to + 1); j++) { low = Math.min(low, curve.y[j]); high = Math.max(high, curve.y[j]); }
      const x = view.px(curve.start_s + move_s + k * curve.step_s);
      if (k === from) g.moveTo(x, y(high));
      else g.lineTo(x, y(high));
      if (bin > 1) g.lineTo(x, y(low));
    }
    g.stroke();
  }

  // --- what is drawn -------------------------------------------------------------------------------------------------

  const peak = (curve) => curve.y.reduce((m, v) => Math.max(m, Math.abs(v)), 1e-9);
  function paintWaves(g, view, height) {
    const lane = (height - BOTTOM - TOP) / 2;
    const move = align.checked && found(trial) !== null ? -found(trial) : 0;
    [[trial.reference, 0, "--c0", "reference"], [trial.ear, move, "--c1", move ? "ear, moved back" : "ear"]].forEach(([curve, by, ink, name], i) => {
      const middle = TOP + lane * (i + 0.5), top = peak(curve);
      rule(g, LEFT, middle, LEFT + view.inner, middle);
      trace(g, view, curve, by, (v) => middle - (v / top) * lane * 0.46, ink, 1.2);
      label(g, `${name}, peak ${(20 * Math.log10(top)).toFixed(1)} dBFS`, LEFT + 6, TOP + lane * i + 12, "--ink");
    });
  }
  const decibelAt = (height) => (db) => TOP + (db / FLOOR_DB) * (height - BOTTOM - TOP);
  function decibels(g, view, height) {
    const y = decibelAt(height);
    g.textAlign = "right";
    for (let db = 0; db >= FLOOR_DB; db -= 10) {
      rule(g, LEFT, y(db), LEFT + view.inner, y(db));
      g.fillStyle = colour("--soft");
      g.fillText(`${db} dB`, LEFT - 5, y(db) + 4);
    }
  }
  function paintLags(g, view, height) {
    const y = decibelAt(height);
    // Unthinned where it was kept, and the overview to both sides of it.
    const outside = (whole, near) => {
      if (!whole || !near) return [whole];
      const end = near.start_s + near.step_s * (near.y.length - 1);
      const cut = (low, high) => {
        const a = Math.max(0, Math.ceil((low - whole.start_s) / whole.step_s));
        const b = Math.min(whole.y.length, Math.floor((high - whole.start_s) / whole.step_s) + 1);
        return b > a ? { start_s: whole.start_s + a * whole.step_s, step_s: whole.step_s, y: whole.y.subarray(a, b) } : null;
      };
      return [cut(-Infinity, near.start_s), near, cut(end, Infinity)];
    };
    for (const part of outside(trial.matched, trial.matched_near)) trace(g, view, part, 0, y, "--c3", 1);
    const fine = trial.timed.length ? 0.35 : 1;
    g.globalAlpha = fine;
    for (const part of outside(trial.response, trial.response_near)) trace(g, view, part, 0, y, "--c0", 1.2);
    g.globalAlpha = 1;
    for (const curve of trial.timed) trace(g, view, level(curve), 0, y, "--c0", 2);
    const at = found(trial);
    if (trial.dominant_s !== null) arrow(g, view, y, trial.dominant_s, `strongest ${ms(trial.dominant_s, 3)}`, "--soft", [4, 3], 32);
    if (at !== null) arrow(g, view, y, at, trial.valid ? `first arrival ${ms(at, 3)} ms` : `refused; would be ${ms(at, 3)} ms`, trial.valid ? "--ink" : "--bad", trial.valid ? [] : [4, 3], 14);
  }
  function arrow(g, view, y, s, words, ink, dash, down) {
    const x = view.px(s), right = x > LEFT + view.inner * 0.6;
    rule(g, x, TOP, x, y(FLOOR_DB), ink, 1.5, dash);
    label(g, words, x + (right ? -6 : 6), TOP + down, ink, right ? "right" : "left");
  }
  // Words that stay readable over a trace.
  function label(g, words, x, y, ink, where = "left") {
    g.textAlign = where;
    g.strokeStyle = colour("--paper"); g.lineWidth = 4; g.lineJoin = "round";
    g.strokeText(words, x, y);
    g.fillStyle = colour(ink);
    g.fillText(words, x, y);
  }

  const waves = new Picture("waves", paintWaves, "after the stimulus began");
  const lags = new Picture("lags", paintLags, "of lag", decibels);
  const pictures = [waves, lags];

  // --- choosing ------------------------------------------------------------------------------------------------------

  const ends = (curve, by = 0) => [curve.start_s + by, curve.start_s + by + curve.step_s * (curve.y.length - 1)];
  function homes() {
    const move = align.checked && found(trial) !== null ? -found(trial) : 0;
    const a = ends(trial.reference), b = ends(trial.ear, move);
    waves.home = [Math.min(a[0], b[0]), Math.max(a[1], b[1])];
    if (trial.response) lags.home = ends(trial.response);
  }
  function say() {
    const verdict = trial.valid ? "accepted" : `refused: ${trial.reason}`;
    const facts = [
      ["trial", `${trial.index} of run ${trial.run}`], ["verdict", verdict],
      ["latency", trial.valid ? `${ms(trial.latency_s, 4)} ± ${ms(1.96 * trial.u_s, 4)} ms` : "none"],
      ["SNR", `${number(trial.snr_db, 1)} dB`], ["peak over noise, z", number(trial.z, 0)],
      ["over its decoy", `${number(trial.decoy_db, 1)} dB`], ["coherence", number(trial.coherence, 2)],
      ["second half minus first", `${ms(trial.split_s, 3)} ms`],
      ["band", trial.band_hz ? `${trial.band_hz.map((f) => f.toFixed(0)).join(" to ")} Hz` : "-"],
    ];
    if (trial.note) facts.push(["note", trial.note]);
    told.replaceChildren(...facts.map(([name, value]) => {
      const pair = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name; dd.textContent = value; pair.append(dt, dd);
      return pair;
    }));
    const name = `Trial ${trial.index} of run ${trial.run}, ${verdict}`;
    waves.canvas.setAttribute("aria-label", `${name}. The samples of reference and ear over time.`);
    lags.canvas.setAttribute("aria-label", `${name}. Impulse response and correlation over lag${found(trial) === null ? "" : `, the arrival at ${ms(found(trial), 3)} ms`}.`);
  }
  function open(position) {
    trial = trials[position];
    choose.selectedIndex = position;
    for (const name of ["reference", "ear", "matched", "response", "matched_near", "response_near"]) unpack(trial[name]);
    trial.timed.forEach(unpack);
    homes();
    waves.range = [...waves.home];
    lags.range = [...lags.home];
    say();
    pictures.forEach((p) => p.draw());
  }
  const toArrival = () => {
    const at = found(trial);
    if (at !== null) { lags.show([at - 0.012, at + 0.012]); }
    const begin = align.checked || at === null ? 0 : at;
    waves.show([begin - 0.002, begin + 0.012]);
  };
  const act = {
    previous: () => open(Math.max(0, choose.selectedIndex - 1)),
    next: () => open(Math.min(trials.length - 1, choose.selectedIndex + 1)),
    in: () => pictures.forEach((p) => p.zoom(0.5, (p.range[0] + p.range[1]) / 2)),
    out: () => pictures.forEach((p) => p.zoom(2, (p.range[0] + p.range[1]) / 2)),
    arrival: toArrival,
    all: () => pictures.forEach((p) => p.show(p.home)),
  };
  for (const [k, t] of trials.entries()) {
    choose.add(new Option(`run ${t.run}, ${t.index}: ${t.valid ? `${ms(t.latency_s, 3)} ms` : `refused, ${t.reason}`}`, k));
  }
  choose.addEventListener("change", () => open(choose.selectedIndex));
  align.addEventListener("change", () => { homes(); waves.show(waves.home); });
  document.querySelector(".controls").addEventListener("click", (e) => act[e.target.dataset.do]?.());
  document.addEventListener("click", (e) => {
    const name = e.target.dataset?.trial;
    const position = name ? trials.findIndex((t) => `${t.run}-${t.index}` === name) : -1;
    if (position < 0) return;
    open(position);
    document.getElementById("trial").scrollIntoView({ behavior: "smooth" });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => pictures.forEach((p) => p.draw()));
  for (const when of ["beforeprint", "afterprint"]) {
    addEventListener(when, () => document.querySelectorAll("details").forEach((d) => { d.open = when === "beforeprint"; }));
    addEventListener(when, () => pictures.forEach((p) => p.draw()));
  }
  open(0);
})();
