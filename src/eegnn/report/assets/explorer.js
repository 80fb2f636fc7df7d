// The exit explorer: a graph, layer by layer, and the trajectory of a unit. Arrays with a row a
// layer begin with layer 1.

const TYPES = { u2: Uint16Array, u4: Uint32Array, f4: Float32Array };
const FULL = 65535;
const STEP = 520; // milliseconds a layer when playing
const FLASH = 420; // milliseconds in which a unit that leaves takes its colour

function unpack(packed) {
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
  return new TYPES[packed.dtype](bytes.buffer);
}

// Viridis at nine places, from the end that stands for deep to the one that stands for early.
const VIRIDIS = [[72, 24, 106], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140], [40, 174, 128], [94, 201, 98], [173, 220, 48], [253, 231, 37]];
const CLASSES = [[58, 120, 178], [222, 110, 28], [26, 148, 112], [190, 110, 160], [224, 164, 30], [92, 178, 226], [120, 96, 190], [128, 128, 128]];

function mix(a, b, share) {
  return [0, 1, 2].map((k) => a[k] + (b[k] - a[k]) * share);
}

function viridis(share) {
  const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const below = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return mix(VIRIDIS[below], VIRIDIS[below + 1], at - below);
}

/** Early exits are light, deep ones dark. */
function exitColor(layer, layers) {
  return viridis(1 - (layer - 1) / Math.max(1, layers - 1));
}

function classColor(label) {
  const color = CLASSES[label % CLASSES.length], round = Math.floor(label / CLASSES.length);
  return round ? mix(color, round % 2 ? [255, 255, 255] : [0, 0, 0], 0.35) : color;
}

function css(color) {
  return `rgb(${color.map(Math.round).join(" ")})`;
}

function themeColor(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const value = parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** What the units of a run did, unpacked when it is first looked at. */
class Trails {
  constructor(run) {
    const graph = run.graph;
    this.run = run;
    this.layers = run.layers;
    this.count = graph.units;
    this.side = graph.side;
    for (const name of ["ids", "size", "part", "layer", "time", "x", "y", "unitOf", "edges", "answer", "sure", "truth", "value", "target", "count", "right", "stay", "tau"]) {
      this[name === "count" ? "labels" : name] = unpack(graph[name]);
    }
    this.span = this.value ? padded([...this.value, ...(this.target ?? [])], 0) : null;
  }

  /** Where the value of a unit at a layer stands in an array with a row a layer. */
  place(layer, unit) {
    return (layer - 1) * this.count + unit;
  }

  /** The same of the answer that stands at a layer: a unit that left keeps the one it left with. */
  at(layer, unit) {
    return this.place(Math.min(layer, this.layer[unit]), unit);
  }

  /** In [0, 1]; null where there is no truth. */
  rightness(layer, unit) {
    const k = this.at(layer, unit);
    if (this.answer) return this.truth ? +(this.answer[k] === this.truth[unit]) : null;
    if (this.right) return this.right[k] / FULL;
    if (!this.value || !this.target) return null;
    return 1 - Math.min(1, (4 * Math.abs(this.value[k] - this.target[unit])) / (this.span[1] - this.span[0] || 1));
  }

  name(unit) {
    if (this.side) return `Cell ${Math.floor(unit / this.side) + 1}, ${(unit % this.side) + 1}`;
    return `${this.run.graph.unit === "graph" ? "Graph" : "Node"} ${this.ids[unit]}`;
  }

  /** The answer at a layer in words. */
  said(row) {
    if (this.answer) return `${this.run.classes[this.answer[row]]}, ${percent(this.sure[row] / FULL, 0)} sure`;
    if (this.value) return number(this.value[row]);
    return `${this.labels[row]} labels` + (this.right ? `, ${percent(this.right[row] / FULL, 0)} right` : "");
  }

  true(unit) {
    if (this.truth) return this.run.classes[this.truth[unit]];
    return this.target ? number(this.target[unit]) : null;
  }
}

class Explorer {
  constructor(run, onLayer = () => {}) {
    this.trails = new Trails(run);
    this.run = run;
    this.onLayer = onLayer;
    this.layer = run.layers;
    this.mode = run.exits ? "exit" : "answer";
    this.selected = null;
    this.timer = null;
    this.flash = 1;
    this.node = this.build();
    this.showPanel();
    this.status();
  }

  build() {
    const { run, trails } = this;
    const unit = run.graph.unit, plural = `${unit}s`;
    this.canvas = el("canvas", {
      tabindex: "0", role: "application",
      "aria-label": `${run.graph.caption} Click a ${unit} for its trajectory, or move with the arrow keys.`,
      onclick: (event) => this.select(this.hit(event)),
      onpointermove: (event) => this.hover(event),
      onpointerleave: () => { this.under = null; tip.hide(); this.paint(); },
      onkeydown: (event) => this.walk(event),
    });
    this.slider = el("input", {
      type: "range", min: 1, max: run.layers, step: 1, value: run.layers, "aria-label": "Layer",
      oninput: () => { this.stop(); this.goTo(+this.slider.value); },
    });
    this.button = el("button", { class: "play", type: "button", "aria-label": "Play", onclick: () => this.toggle() });
    this.icon();
    this.bars = el("div", { "aria-hidden": "true", title: "How many leave at each layer (heights are square roots)" });
    this.statusLine = el("p", { class: "status" });
    this.panel = el("aside", { class: "panel", "aria-label": "Trajectory" });
    const place = el("div", { class: "canvas" }, this.canvas);
    const left = el("div", {}, place,
      el("div", { class: "controls" }, this.button, el("div", { class: "timeline" }, this.bars, this.slider)),
      this.statusLine);
    const head = el("div", { class: "explorer-head" },
      el("div", {}, el("h2", {}, "Exit explorer"), el("p", {}, run.graph.caption)), this.modes(plural));
    new ResizeObserver(([entry]) => this.resize(entry.contentRect.width)).observe(place);
    return el("section", { class: "card explorer", "aria-label": "Exit explorer" }, head, el("div", { class: "stage" }, left, this.panel));
  }

  modes() {
    const name = `mode-${Explorer.made = (Explorer.made ?? 0) + 1}`;
    const all = [["exit", "Exit layer"], ["answer", "Answer"], ["right", "Right or wrong"]];
    const possible = all.filter(([mode]) => (mode !== "exit" || this.run.exits) && (mode !== "right" || this.trails.rightness(1, 0) !== null));
    const field = el("fieldset", { class: "choice", "aria-label": "Colour by" });
    for (const [mode, text] of possible) {
      const input = el("input", { type: "radio", name, value: mode, onchange: () => { this.mode = mode; this.drawBars(); this.paint(); } });
      input.checked = mode === this.mode;
      field.append(el("label", {}, input, el("span", {}, text)));
    }
    return field;
  }

  icon() {
    const path = this.timer ? "M7 5v14M17 5v14" : "M8 5l11 7-11 7z";
    const shape = svg("path", { d: path, fill: this.timer ? "none" : "currentColor", stroke: "currentColor", "stroke-width": this.timer ? 4 : 2, "stroke-linejoin": "round", "stroke-linecap": "round" });
    this.button.replaceChildren(svg("svg", { viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" }, shape));
    this.button.setAttribute("aria-label", this.timer ? "Pause" : "Play");
  }

  // ---- time

  goTo(layer, tell = true) {
    layer = Math.max(1, Math.min(this.run.layers, layer));
    const forward = layer === this.layer + 1;
    this.layer = layer;
    this.slider.value = layer;
    this.slider.setAttribute("aria-valuetext", `layer ${layer} of ${this.run.layers}`);
    this.status();
    this.drawBars();
    this.trajectory?.mark(layer);
    if (forward && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.animate();
    else { this.flash = 1; this.paint(); }
    if (tell) this.onLayer(layer / this.run.layers, this);
  }

  animate() {
    const start = performance.now();
    const frame = (now) => {
      this.flash = Math.max(0, Math.min(1, (now - start) / FLASH));
      this.paint();
      if (this.flash < 1 && start === this.started) requestAnimationFrame(frame);
    };
    this.started = start;
    this.flash = 0;
    requestAnimationFrame(frame);
  }

  toggle() {
    if (this.timer) return this.stop();
    if (this.layer === this.run.layers) this.goTo(1);
    this.timer = setInterval(() => {
      this.goTo(this.layer + 1);
      if (this.layer === this.run.layers) this.stop();
    }, STEP);
    this.icon();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.icon();
  }

  status() {
    const { trails, layer } = this;
    const unit = this.run.graph.unit;
    let now = 0, left = 0, right = 0, all = 0;
    for (let u = 0; u < trails.count; u++) {
      all += trails.rightness(layer, u) ?? 0;
      if (trails.layer[u] > layer) continue;
      left++;
      now += trails.layer[u] === layer;
      right += trails.rightness(layer, u) ?? 0;
    }
    const strong = (text) => el("b", {}, text);
    const told = trails.answer && trails.truth;
    const parts = [strong(`Layer ${layer}`), ` of ${this.run.layers}`];
    if (this.run.exits) {
      parts.push(" · ", strong(number(now)), now === 1 ? " leaves here · " : " leave here · ", strong(percent(left / trails.count)), ` of ${number(trails.count)} ${unit}s have left`);
      if (told && left) parts.push(" · ", strong(percent(right / left)), " of them right");
    } else if (told) {
      parts.push(" · ", strong(percent(all / trails.count)), ` of ${number(trails.count)} ${unit}s right, if they left here`);
    }
    this.statusLine.replaceChildren(...parts);
  }

  /** Who leaves where, above the slider: its colours are the legend. */
  drawBars() {
    if (!this.run.exits) return;
    const { trails, layer } = this, layers = this.run.layers;
    this.histogram ??= trails.layer.reduce((counts, l) => (counts[l - 1]++, counts), new Array(layers).fill(0));
    const top = Math.sqrt(Math.max(...this.histogram));
    const width = this.bars.clientWidth || 300, inset = 10, slot = (width - 2 * inset) / Math.max(1, layers - 1), height = 34;
    const root = svg("svg", { width, height });
    this.histogram.forEach((count, k) => {
      const h = count ? Math.max(2, (Math.sqrt(count) / top) * height) : 1;
      const thick = Math.max(2, Math.min(18, slot - 2));
      const color = this.mode === "exit" ? css(exitColor(k + 1, layers)) : "var(--quiet)";
      root.append(svg("rect", { x: inset + k * slot - thick / 2, y: height - h, width: thick, height: h, rx: 1.5, fill: k < layer ? color : "var(--idle)" }));
    });
    this.bars.replaceChildren(root);
  }

  // ---- picture

  resize(width) {
    if (!width) return;
    const room = Math.max(320, innerHeight - 270); // what the header and the controls leave
    const { aspect } = this.run.graph;
    this.width = this.trails.side ? Math.min(width, room) : width;
    this.height = Math.min(this.width / Math.min(aspect, 2), room);
    const ratio = Math.min(devicePixelRatio || 1, 2);
    if (this.canvas.width === Math.round(this.width * ratio) && this.canvas.height === Math.round(this.height * ratio)) return;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.ratio = ratio;
    this.drawBars();
    this.paint();
  }

  palette() {
    const [idle, card, ink, good, warm] = ["--idle", "--card", "--ink", "--good", "--warm"].map(themeColor);
    const exits = Array.from({ length: this.run.layers }, (_, k) => exitColor(k + 1, this.run.layers));
    return { idle, card, ink, good, warm, exits };
  }

  /** The colour of a unit now. Who has not left is pale; who leaves now lights up first. */
  color(unit, palette) {
    const { trails, layer } = this;
    const own = trails.layer[unit], here = this.run.exits ? own <= layer : true;
    const fresh = this.run.exits && own === layer && this.flash < 1;
    let color;
    if (this.mode === "exit") {
      if (!here) return palette.idle;
      color = palette.exits[own - 1];
    } else if (this.mode === "answer") {
      const row = trails.at(layer, unit);
      if (trails.answer) {
        const chance = 1 / Math.max(2, this.run.classes.length), sure = trails.sure[row] / FULL;
        color = mix(palette.idle, classColor(trails.answer[row]), 0.25 + 0.75 * Math.max(0, (sure - chance) / (1 - chance)));
      } else if (trails.value) {
        color = viridis((trails.value[row] - trails.span[0]) / (trails.span[1] - trails.span[0] || 1));
      } else color = classColor(trails.labels[row]);
      if (!here) color = mix(palette.idle, color, 0.35);
    } else {
      color = mix(palette.warm, palette.good, trails.rightness(layer, unit));
      if (!here) color = mix(palette.idle, color, 0.3);
    }
    return fresh ? mix(palette.ink, color, this.flash) : color;
  }

  paint() {
    if (!this.width) return;
    const context = this.canvas.getContext("2d");
    const palette = this.palette();
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    if (this.trails.side) this.paintBoard(context, palette);
    else this.paintGraph(context, palette);
  }

  paintBoard(context, palette) {
    const { side } = this.trails;
    this.buffer ??= Object.assign(document.createElement("canvas"), { width: side, height: side });
    const inner = this.buffer.getContext("2d"), image = inner.createImageData(side, side);
    for (let u = 0; u < side * side; u++) {
      const [r, g, b] = this.color(u, palette);
      image.data.set([r, g, b, 255], 4 * u);
    }
    inner.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.buffer, 0, 0, this.width, this.height);
    const cell = this.width / side;
    if (cell >= 9) {
      context.strokeStyle = css(palette.card);
      context.lineWidth = 1;
      context.beginPath();
      for (let k = 1; k < side; k++) {
        context.moveTo(k * cell, 0); context.lineTo(k * cell, this.height);
        context.moveTo(0, k * cell); context.lineTo(this.width, k * cell);
      }
      context.stroke();
    }
    for (const [unit, width] of [[this.under, 1.5], [this.selected, 3]]) {
      if (unit === null || unit === undefined) continue;
      const x = (unit % side) * cell, y = Math.floor(unit / side) * cell;
      context.strokeStyle = css(palette.card);
      context.lineWidth = width + 2;
      context.strokeRect(x - 1.5, y - 1.5, cell + 3, cell + 3);
      context.strokeStyle = css(palette.ink);
      context.lineWidth = width;
      context.strokeRect(x - 1.5, y - 1.5, cell + 3, cell + 3);
    }
  }

  position(node) {
    const margin = 12;
    return [margin + (this.trails.x[node] / FULL) * (this.width - 2 * margin), margin + (this.trails.y[node] / FULL) * (this.height - 2 * margin)];
  }

  paintGraph(context, palette) {
    const { trails } = this, nodes = trails.x.length;
    const many = this.run.graph.unit === "graph";
    const radius = Math.max(2, Math.min(7, (many ? 0.16 : 0.27) * Math.sqrt((this.width * this.height) / Math.max(1, nodes))));
    this.radius = radius;
    const crowd = Math.min(1, (this.width * this.height) / (250 * Math.max(1, trails.edges.length)));
    context.strokeStyle = css(mix(palette.idle, palette.ink, 0.6));
    context.globalAlpha = 0.04 + 0.4 * crowd;
    context.lineWidth = 0.8;
    context.beginPath();
    for (let k = 0; k < trails.edges.length; k += 2) {
      context.moveTo(...this.position(trails.edges[k]));
      context.lineTo(...this.position(trails.edges[k + 1]));
    }
    context.stroke();
    context.globalAlpha = 1;
    const on = (node) => trails.unitOf[node] === this.selected || trails.unitOf[node] === this.under;
    const order = [...trails.x.keys()].sort((a, b) => on(a) - on(b)); // those marked lie on top
    for (const node of order) {
      const [x, y] = this.position(node), marked = on(node);
      context.beginPath();
      context.arc(x, y, marked ? radius * 1.3 : radius, 0, 2 * Math.PI);
      context.fillStyle = css(this.color(trails.unitOf[node], palette));
      context.fill();
      context.lineWidth = marked ? (many ? 1.5 : 2.5) : 0.8;
      context.strokeStyle = css(marked ? palette.ink : palette.card);
      context.stroke();
    }
  }

  // ---- looking at one

  hit(event) {
    const box = this.canvas.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    const { trails } = this;
    if (trails.side) {
      const cell = this.width / trails.side;
      const column = Math.floor(px / cell), row = Math.floor(py / cell);
      return column < 0 || row < 0 || column >= trails.side || row >= trails.side ? null : row * trails.side + column;
    }
    let best = null, nearest = Math.max(14, 2 * this.radius);
    for (let node = 0; node < trails.x.length; node++) {
      const [x, y] = this.position(node), away = Math.hypot(x - px, y - py);
      if (away < nearest) { nearest = away; best = trails.unitOf[node]; }
    }
    return best;
  }

  hover(event) {
    const unit = this.hit(event);
    if (unit !== this.under) { this.under = unit; this.paint(); }
    if (unit === null) return tip.hide();
    const { trails } = this;
    const lines = [trails.name(unit)];
    if (this.run.exits) lines.push(`left at layer ${trails.layer[unit]}`);
    lines.push(trails.said(trails.at(this.layer, unit)));
    if (trails.true(unit) !== null) lines.push(`truth: ${trails.true(unit)}`);
    tip.show(event, lines.join("\n"));
  }

  walk(event) {
    const { side, count } = this.trails;
    const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: side ? -side : -1, ArrowDown: side ? side : 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const next = this.selected === null ? 0 : this.selected + move;
    if (next >= 0 && next < count) this.select(next);
  }

  /** A unit to begin with: of those tested that chose to leave, one in the middle. */
  example() {
    const { trails } = this, tested = [...trails.layer.keys()].filter((u) => trails.part[u] === 2);
    const chose = tested.filter((u) => trails.layer[u] < this.run.layers);
    const order = (chose.length ? chose : tested).sort((a, b) => trails.layer[a] - trails.layer[b]);
    return order.length ? order[order.length >> 1] : null;
  }

  select(unit) {
    this.selected = unit;
    this.showPanel();
    this.paint();
  }

  showPanel() {
    const { trails, run } = this, unit = this.selected;
    const find = el("input", { type: "number", min: 0, "aria-label": `Number of a ${run.graph.unit}`, placeholder: String(trails.ids[0]) });
    find.addEventListener("change", () => {
      const place = trails.ids.indexOf(+find.value);
      if (place >= 0) this.select(place);
      else find.value = "";
    });
    const form = el("label", { class: "find" }, `Show ${run.graph.unit}`, find);
    if (unit === null) {
      this.trajectory = null;
      this.panel.replaceChildren(
        el("h3", {}, "Trajectory"),
        el("p", { class: "quiet small" }, `Click a ${run.graph.unit} to see how its mind was made up: what it would have answered at every layer, how sure it was, and when it left.`),
        form);
      return;
    }
    this.trajectory = new Trajectory(trails, unit);
    this.trajectory.mark(this.layer);
    find.value = trails.ids[unit];
    this.panel.replaceChildren(this.trajectory.node, form);
  }
}

/** One unit: what it would have answered at every layer, and when it left. */
class Trajectory {
  constructor(trails, unit) {
    const run = trails.run, layers = run.layers, own = trails.layer[unit];
    const line = (array, rows = layers, divisor = FULL) => Array.from({ length: rows }, (_, k) => [k + 1, array[trails.place(k + 1, unit)] / divisor]);
    this.now = { kind: "rule", at: layers, color: "var(--accent)", dash: "none" };
    const marks = [], entries = [];
    let domain = [0, 1];
    if (trails.stay) {
      marks.push({ kind: "line", points: line(trails.tau), color: "var(--quiet)", width: 1.4, dash: "2 3" });
      marks.push({ kind: "line", points: line(trails.stay, layers - 1), color: "var(--accent)", width: 2.2 }); // after the last layer nobody is
      entries.push(["still active", "var(--accent)"], ["step τ", "var(--quiet)"]);
    }
    const sure = trails.sure ?? trails.right;
    if (sure) {
      marks.push({ kind: "line", points: line(sure), color: "var(--warm)", width: 2.2 });
      entries.push([trails.sure ? "confidence" : "labels right", "var(--warm)"]);
    } else if (trails.value) {
      domain = padded([...line(trails.value, layers, 1).map(([, v]) => v), trails.target?.[unit] ?? 0]);
    }
    const hover = Array.from({ length: layers }, (_, k) => ({ x: k + 1, text: this.told(trails, unit, k + 1) }));
    if (run.exits) marks.push({ kind: "rule", at: own, text: own < layers ? "leaves" : "stays to the end" });
    this.charts = [chart({
      height: 180, left: 34, top: 20, label: `Trajectory of ${trails.name(unit)} over the layers`,
      x: layerAxis(layers, "layer"), y: { domain: [0, 1.02], ticks: [0, 0.5, 1], format: (v) => String(v) },
      marks: [...marks, this.now], hover,
    })];
    if (trails.value) {
      const target = trails.target ? [{ kind: "rule", value: trails.target[unit], text: "truth" }] : [];
      this.charts.push(chart({
        height: 130, left: 44, label: "Answer by layer", x: layerAxis(layers, "layer"), y: { domain },
        marks: [{ kind: "line", points: line(trails.value, layers, 1), color: "var(--warm)", width: 2.2 }, ...target, this.now], hover,
      }));
      if (!trails.stay) this.charts.shift();
      entries.push(["answer", "var(--warm)"]);
    }
    this.node = el("div", {}, el("h3", {}, trails.name(unit)), this.facts(trails, unit), ...this.charts,
      key(...entries), trails.answer ? this.strip(trails, unit) : null);
  }

  told(trails, unit, layer) {
    const k = trails.place(layer, unit);
    const lines = [`layer ${layer}: ${trails.said(k)}`];
    if (trails.stay) lines.push(`step τ: ${number(trails.tau[k] / FULL)}`);
    if (trails.stay && layer < trails.layers) lines.push(`still active after it: ${percent(trails.stay[k] / FULL)}`);
    return lines.join("\n");
  }

  facts(trails, unit) {
    const run = trails.run, row = trails.at(trails.layers, unit), right = trails.rightness(trails.layers, unit);
    const list = el("dl", { class: "facts" });
    const add = (name, ...value) => list.append(el("dt", {}, name), el("dd", {}, ...value));
    if (run.exits) add("Left at", `layer ${trails.layer[unit]} of ${trails.layers}, time ${number(trails.time[unit], 2)}`);
    const verdict = el("span", { class: "verdict" });
    if (trails.answer && right !== null) {
      verdict.textContent = right ? " ✓ right" : " ✗ wrong";
      verdict.style.color = right ? "var(--good)" : "var(--warm)";
    }
    add("Answer", trails.said(row), verdict);
    if (trails.true(unit) !== null) add("Truth", trails.true(unit));
    add("Part", ["training", "validation", "test", "none"][trails.part[unit]]);
    add(run.graph.unit === "graph" ? "Nodes" : "Neighbours", number(trails.size[unit]));
    return list;
  }

  /** The answer at every layer as a row of colours. */
  strip(trails, unit) {
    const layers = trails.layers, run = trails.run;
    const places = Array.from({ length: layers }, (_, k) => trails.place(k + 1, unit));
    const cells = places.map((place, k) => {
      const cell = el("i", { title: `layer ${k + 1}: ${trails.said(place)}` });
      cell.style.cssText = `flex:1;height:12px;border-radius:2px;background:${css(classColor(trails.answer[place]))};opacity:${k < trails.layer[unit] ? 1 : 0.25}`;
      return cell;
    });
    const row = el("div", { role: "img", "aria-label": "Answer at every layer" }, ...cells);
    row.style.cssText = "display:flex;gap:2px;margin:10px 0 4px";
    const seen = [...new Set(places.map((place) => trails.answer[place]))];
    return el("div", {}, row, key(...seen.sort().map((label) => [run.classes[label], css(classColor(label)), "dot"])));
  }

  mark(layer) {
    this.now.at = layer;
    for (const one of this.charts) one.update();
  }
}
