// One chart: curves with bands over steps, to point at, zoom into and choose from.

const SPAN = { left: 46, right: 12, top: 8, bottom: 32 }; // of the plot, in pixels

class Chart {
  /** `shared` is what the section's own controls set: hidden (runs), bands, smooth. */
  constructor(spec, runs, shared) {
    Object.assign(this, { spec, runs, shared });
    this.names = [...new Set(spec.lines.map((line) => line.name))];
    this.several = runs.length > 1;
    this.hidden = new Set(spec.lines.filter((line) => line.quiet).map((line) => line.name));
    this.lines = spec.lines.map((line) => ({
      ...line, x: line.x ?? runs[line.run].x, style: look(this.several, line.run, this.names.indexOf(line.name)),
    }));
    const ends = this.lines.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]);
    this.whole = [Math.min(...ends), Math.max(...ends)];
    if (this.whole[0] === this.whole[1]) this.whole[1] += 1;
    this.range = this.whole;
    this.log = false;
    this.cursor = null;
    this.build();
  }

  build() {
    this.plot = shape("svg", {
      class: "plot", role: "img", tabindex: 0,
      "aria-label": `${this.spec.title}: ${say("arrow keys read values, + and - zoom, 0 shows all")}`,
    });
    this.pointer = shape("svg", { class: "pointer", "aria-hidden": "true" }); // a layer of its own: quick to change
    this.tip = make("div", { class: "tip", role: "status", hidden: "" });
    const least = Math.min(...this.lines.flatMap((line) => line.y.filter((value) => value !== null)));
    const log = toggle("log", false, (on) => { this.log = on; this.draw(); });
    log.title = say("logarithmic scale");
    const tools = make("div", { class: "bar pick" },
      press("M8 3V13M3 8H13", say("zoom in"), () => this.zoom(0.5)),
      press("M3 8H13", say("zoom out"), () => this.zoom(2)),
      press("M3 6V3H6M10 3H13V6M13 10V13H10M6 13H3V10", say("show all"), () => this.show(this.whole)),
      least > 0 && least < Infinity ? log : null,
    );
    this.element = make("div", { class: "chart" },
      make("div", { class: "head" }, make("h3", {}, this.spec.title), tools),
      make("p", { class: "small" }, this.spec.about),
      this.legend(), make("div", { class: "sheet" }, this.plot, this.pointer), this.tip);
    this.listen();
  }

  legend() {
    if (this.names.length < 2) return null;
    const buttons = this.names.map((name, number) => {
      const style = this.several ? { ...look(true, 0, number), colour: "var(--muted)", marker: null } : look(false, 0, number);
      return toggle([swatch(style), name], !this.hidden.has(name), (on) => {
        if (on) this.hidden.delete(name); else this.hidden.add(name);
        this.draw();
      });
    });
    return make("div", { class: "bar names" }, ...buttons);
  }

  get shown() {
    return this.lines.filter((line) => !this.hidden.has(line.name) && !this.shared.hidden.has(line.run));
  }

  /** What is drawn of a line: its points in range and one beyond on each side, smoothed. */
  points(line) {
    const key = this.shared.smooth;
    if (line.key !== key) {
      line.key = key;
      line.now = { y: smoothed(line.y, key), low: smoothed(line.low, key), high: smoothed(line.high, key) };
    }
    return line.now;
  }

  inside(line) {
    let first = line.x.findIndex((x) => x >= this.range[0]);
    let last = line.x.findLastIndex((x) => x <= this.range[1]);
    if (first < 0) first = line.x.length - 1;
    if (last < 0) last = 0;
    return [Math.max(0, first - 1), Math.min(line.x.length - 1, last + 1)];
  }

  /** The least and the largest number to be seen. */
  heights() {
    let low = Infinity, high = -Infinity;
    const see = (value) => {
      if (value === null || (this.log && value <= 0)) return;
      if (value < low) low = value;
      if (value > high) high = value;
    };
    for (const level of this.spec.levels) see(level.y);
    for (const line of this.shown) {
      const now = this.points(line);
      const [first, last] = this.inside(line);
      for (let place = first; place <= last; place += 1) {
        see(now.y[place]);
        if (this.shared.bands && now.low) { see(now.low[place]); see(now.high[place]); }
      }
    }
    if (!(low <= high)) [low, high] = this.log ? [0.1, 1] : [0, 1];
    if (this.log) return [low / 1.1, high * 1.1];
    const room = (high - low || Math.abs(high) || 1) * 0.05;
    return [low - room, high + room];
  }

  draw(wide = Math.max(260, this.element.clientWidth - 24)) {
    const tall = Math.round(Math.min(this.element.matches(":first-child") ? 340 : 230, wide * 0.75));
    this.size = { wide, tall };
    const [low, high] = this.heights();
    const bend = this.log ? Math.log10 : (value) => value;
    const right = wide - SPAN.right, bottom = tall - SPAN.bottom;
    const [from, to] = this.range;
    this.atX = (x) => SPAN.left + (x - from) / (to - from) * (right - SPAN.left);
    this.atY = (y) => bottom - (bend(Math.max(y, this.log ? low : -Infinity)) - bend(low)) / (bend(high) - bend(low)) * (bottom - SPAN.top);
    this.stepAt = (pixel) => from + (pixel - SPAN.left) / (right - SPAN.left) * (to - from);
    const clip = `clip-${this.spec.number}`;
    const inner = shape("g", { "clip-path": `url(#${clip})` });
    for (const layer of [this.plot, this.pointer]) layer.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
    this.plot.replaceChildren(
      shape("clipPath", { id: clip }, shape("rect", { x: SPAN.left, y: 0, width: right - SPAN.left, height: bottom + 2 })),
      ...this.axes(low, high, right, bottom), inner);
    for (const level of this.spec.levels) {
      inner.append(shape("line", { class: "level", x1: SPAN.left, x2: right, y1: this.atY(level.y), y2: this.atY(level.y) }),
        shape("text", { x: SPAN.left + 4, y: this.atY(level.y) + 12 }, `${level.name} ${short(level.y)}`));
    }
    const shown = this.shown;
    if (this.shared.bands) for (const line of shown) if (line.low) inner.append(this.band(line));
    for (const line of shown) inner.append(...this.curve(line));
    this.point(this.cursor);
  }

  axes(low, high, right, bottom) {
    const made = [];
    const heights = this.log
      ? Array.from({ length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1 }, (_, n) => 10 ** (Math.floor(Math.log10(low)) + n))
      : ticks(low, high, 5);
    const levels = this.log && heights.filter((y) => y >= low && y <= high).length < 2 ? ticks(low, high, 4).filter((y) => y > 0) : heights;
    for (const y of levels.filter((value) => value >= low && value <= high)) {
      made.push(shape("line", { class: "grid", x1: SPAN.left, x2: right, y1: this.atY(y), y2: this.atY(y) }),
        shape("text", { x: SPAN.left - 5, y: this.atY(y) + 4, "text-anchor": "end" }, short(y)));
    }
    for (const x of ticks(...this.range, Math.max(2, Math.floor(right / 75)), 1)) {
      made.push(shape("line", { class: "grid", x1: this.atX(x), x2: this.atX(x), y1: SPAN.top, y2: bottom }),
        shape("text", { x: this.atX(x), y: bottom + 13, "text-anchor": "middle" }, count(x)));
    }
    made.push(shape("text", { x: right, y: bottom + 27, "text-anchor": "end" }, this.spec.axis));
    return made;
  }

  curve(line) {
    const { y } = this.points(line);
    const [first, last] = this.inside(line);
    let d = "", pen = "M";
    const seen = [];
    for (let place = first; place <= last; place += 1) {
      if (y[place] === null) { pen = "M"; continue; }
      d += `${pen}${tenth(this.atX(line.x[place]))} ${tenth(this.atY(y[place]))}`;
      pen = "L";
      seen.push(place);
    }
    const path = shape("path", { class: "curve", d, "stroke-dasharray": line.style.dash });
    path.style.stroke = line.style.colour;
    const made = [path];
    const lone = seen.length === 1;
    const gap = Math.max(1, Math.floor(seen.length / 7));
    if (line.style.marker || lone) {
      const style = { ...line.style, marker: line.style.marker ?? MARKERS[0] };
      const begin = lone ? 0 : Math.floor(gap * (0.3 + 0.6 * line.run / this.runs.length)); // side by side
      for (let n = begin; n < seen.length; n += gap) {
        made.push(marker(style, this.atX(line.x[seen[n]]), this.atY(y[seen[n]])));
      }
    }
    return made;
  }

  band(line) {
    const { low, high } = this.points(line);
    const [first, last] = this.inside(line);
    let d = "", there = [], back = [];
    const close = () => {
      if (there.length) d += `M${there.join("L")}L${back.reverse().join("L")}Z`;
      there = []; back = [];
    };
    for (let place = first; place <= last; place += 1) {
      if (low[place] === null) { close(); continue; }
      const x = tenth(this.atX(line.x[place]));
      there.push(`${x} ${tenth(this.atY(high[place]))}`);
      back.push(`${x} ${tenth(this.atY(low[place]))}`);
    }
    close();
    const path = shape("path", { class: "band", d });
    path.style.fill = line.style.colour;
    return path;
  }

  show(range) {
    const least = (this.whole[1] - this.whole[0]) / 200;
    const wide = Math.min(this.whole[1] - this.whole[0], Math.max(least, range[1] - range[0]));
    const from = Math.min(Math.max(range[0], this.whole[0]), this.whole[1] - wide);
    this.range = [from, from + wide];
    this.draw();
  }

  zoom(factor) {
    const middle = this.cursor ?? (this.range[0] + this.range[1]) / 2;
    this.show(this.range.map((end) => middle + (end - middle) * factor));
  }

  /** Say what the curves are at a step, or nothing. */
  point(step) {
    this.cursor = step;
    this.pointer.replaceChildren();
    this.tip.hidden = step === null || !this.shown.length;
    if (this.tip.hidden) return;
    const rows = [], marks = [];
    let at = null;
    for (const line of this.shown) {
      const place = nearest(line.x, step);
      const { y } = this.points(line);
      const here = line.x[place], gap = (line.x[1] ?? here + 1) - line.x[0];
      if (y[place] === null || Math.abs(here - step) > gap || here < this.range[0] || here > this.range[1]) continue;
      at ??= here;
      const name = !this.several ? line.name : this.names.length < 2 ? this.runs[line.run].name : `${this.runs[line.run].name}, ${line.name}`;
      const ends = line.low ? ` (${short(line.low[place])} … ${short(line.high[place])})` : "";
      rows.push([y[place], make("div", {}, make("span", {}, swatch(line.style), name), make("b", {}, short(y[place]) + ends))]);
      const mark = shape("circle", { cx: this.atX(here), cy: this.atY(y[place]), r: 3.5 });
      mark.style.fill = line.style.colour;
      marks.push(mark);
    }
    at ??= Math.round(step);
    const x = this.atX(Math.min(Math.max(at, this.range[0]), this.range[1]));
    this.pointer.append(shape("line", { class: "cursor", x1: x, x2: x, y1: SPAN.top, y2: this.size.tall - SPAN.bottom }), ...marks);
    rows.sort((one, two) => two[0] - one[0]);
    this.tip.replaceChildren(make("div", {}, make("span", {}, this.spec.axis), make("b", {}, at.toLocaleString("en"))), ...rows.map((row) => row[1]));
    this.place(x);
  }

  /** The tip goes beside the cursor, or below the chart where that is narrow. */
  place(x) {
    const { style } = this.tip, { wide } = this.size;
    const narrow = wide < 520, left = x < wide / 2;
    const top = this.plot.getBoundingClientRect().top - this.element.getBoundingClientRect().top;
    style.left = narrow ? "0px" : left ? `${x + 24}px` : "auto";
    style.right = narrow ? "0px" : left ? "auto" : `${wide - x + 24}px`;
    style.top = narrow ? "100%" : `${top + 8}px`;
  }

  listen() {
    let began = null, waiting = null;
    const pixel = (event) => {
      const box = this.plot.getBoundingClientRect();
      return (event.clientX - box.left) * this.size.wide / box.width;
    };
    this.plot.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) began = pixel(event);
    });
    this.plot.addEventListener("pointermove", (event) => {
      const now = pixel(event);
      if (waiting === null) requestAnimationFrame(() => { this.drag(began, waiting); waiting = null; });
      waiting = now;
    });
    this.plot.addEventListener("pointerup", (event) => {
      const ends = [began, pixel(event)].sort((one, two) => one - two);
      if (began !== null && ends[1] - ends[0] > 6) this.show(ends.map((end) => this.stepAt(end)));
      began = null;
    });
    this.plot.addEventListener("pointerleave", () => { began = null; this.point(null); });
    this.plot.addEventListener("blur", () => this.point(null));
    this.plot.addEventListener("dblclick", () => this.show(this.whole));
    this.plot.addEventListener("keydown", (event) => this.key(event));
  }

  drag(began, now) {
    this.point(this.stepAt(now));
    if (began === null || Math.abs(now - began) < 6) return;
    this.pointer.append(shape("rect", { class: "chosen", x: Math.min(began, now), y: SPAN.top,
      width: Math.abs(now - began), height: this.size.tall - SPAN.bottom - SPAN.top }));
  }

  key(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0" || event.key === "Escape") this.show(this.whole);
    else if (move && event.shiftKey) {
      const by = move * (this.range[1] - this.range[0]) / 4;
      this.show([this.range[0] + by, this.range[1] + by]);
    } else if (move && this.shown.length) {
      const { x } = this.shown[0];
      const [first, last] = this.inside(this.shown[0]);
      const now = this.cursor === null ? (move > 0 ? first - 1 : last + 1) : nearest(x, this.cursor);
      this.point(x[Math.min(Math.max(now + move, 0), x.length - 1)]);
    } else return;
    event.preventDefault();
  }
}
