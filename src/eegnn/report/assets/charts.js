// Small charts in SVG, and the helpers that everything else is built from.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element; strings among the children become text, so nothing is ever read as markup. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  return fill(node, attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(1).replace("e+", "e");
  return size >= 100 ? value.toFixed(0) : value.toFixed(digits);
}

/** For axes: 1,000,000 is 1M. */
function short(value, digits) {
  return Math.abs(value) >= 10000 ? new Intl.NumberFormat("en", { notation: "compact" }).format(value) : number(value, digits);
}

function percent(value, digits = 1) {
  return value === null || !Number.isFinite(value) ? "–" : `${(100 * value).toFixed(digits)} %`;
}

/** Round steps that divide a range into about `count` parts. */
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((m) => unit * m >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(+(k * step).toPrecision(12));
  return found;
}

/** An axis of the layers at which one can leave, from 1 on. */
function layerAxis(layers, title) {
  const whole = ticks(1, layers, 6).filter((value) => value > 1 && Number.isInteger(value));
  return { domain: [0.4, layers + 0.6], title, ticks: [1, ...whole] };
}

function logTicks(low, high) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const every = Math.max(1, Math.ceil((last - first) / 4));
  const found = [];
  for (let k = first; k <= last; k++) if ((k - first) % every === 0) found.push(10 ** k);
  const inside = found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  return inside.length > 1 ? inside : ticks(low, high, 3).filter((value) => value > 0);
}

const tip = {
  show(event, text) {
    const box = document.getElementById("tip");
    box.textContent = text;
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const above = event.clientY - height - 14;
    box.style.left = `${Math.max(8, left)}px`;
    box.style.top = `${above < 8 ? event.clientY + 18 : above}px`;
  },
  hide() {
    document.getElementById("tip").hidden = true;
  },
};

/**
 * A chart that follows the width of its place.
 *
 * spec: height, label (for those who cannot see it), x and y: {domain, title, ticks, format, log},
 * marks: [{kind: "line" | "band" | "bars" | "dots" | "rule", …}], hover: [{x, y?, text}].
 */
function chart(spec) {
  const host = el("div", { class: "chart" });
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width > 90 && width !== drawn) {
      drawn = width;
      host.replaceChildren(drawChart(spec, width));
    }
  }).observe(host);
  host.update = () => drawn && host.replaceChildren(drawChart(spec, drawn));
  return host;
}

function scale({ domain, log }, from, to) {
  const [low, high] = log ? domain.map(Math.log10) : domain;
  const span = high - low || 1;
  return (value) => from + (((log ? Math.log10(value) : value) - low) / span) * (to - from);
}

function drawChart(spec, width) {
  const height = spec.height ?? 190;
  const left = spec.left ?? 44, right = 10, top = spec.top ?? 8, bottom = spec.x.title ? 36 : 22;
  const x = scale(spec.x, left, width - right);
  const y = scale(spec.y, height - bottom, top);
  const root = svg("svg", { width, height, role: "img", "aria-label": spec.label });
  const xTicks = spec.x.ticks ?? ticks(...spec.x.domain, Math.min(8, width / 60));
  const yTicks = spec.y.ticks ?? (spec.y.log ? logTicks(...spec.y.domain) : ticks(...spec.y.domain, 4));
  const xText = spec.x.format ?? ((v) => short(v, 1)), yText = spec.y.format ?? ((v) => short(v, 2));
  for (const value of yTicks) {
    root.append(svg("line", { class: "grid-line", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    root.append(svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, yText(value)));
  }
  root.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  for (const value of xTicks) {
    root.append(svg("text", { x: x(value), y: height - bottom + 16, "text-anchor": "middle" }, xText(value)));
  }
  if (spec.x.title) {
    root.append(svg("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, spec.x.title));
  }
  for (const mark of spec.marks) root.append(MARKS[mark.kind](mark, x, y, { left, right: width - right, top, base: height - bottom }));
  if (spec.hover?.length) addHover(root, spec.hover, x, y, { left, right: width - right, top, base: height - bottom });
  return root;
}

const MARKS = {
  line({ points, color, width = 1.8, dash, opacity = 1 }, x, y) {
    let path = "", pen = "M";
    for (const [a, b] of points) {
      if (b === null || !Number.isFinite(b)) { pen = "M"; continue; }
      path += `${pen}${x(a).toFixed(1)} ${y(b).toFixed(1)}`;
      pen = "L";
    }
    return svg("path", { d: path, fill: "none", stroke: color, "stroke-width": width, "stroke-linejoin": "round", "stroke-linecap": "round", "stroke-dasharray": dash, opacity });
  },
  band({ points, color }, x, y) {
    const up = points.map(([a, , high]) => `${x(a).toFixed(1)} ${y(high).toFixed(1)}`);
    const down = points.map(([a, low]) => `${x(a).toFixed(1)} ${y(low).toFixed(1)}`).reverse();
    return svg("path", { d: `M${[...up, ...down].join("L")}Z`, fill: color, opacity: 0.18 });
  },
  bars({ bars, gap = 0.15 }, x, y, frame) {
    const group = svg("g");
    for (const { from, to, value, color } of bars) {
      if (value === null) continue;
      const a = x(from), b = x(to), inset = Math.min(3, (b - a) * gap);
      const edge = y(value);
      group.append(svg("rect", { x: a + inset, width: Math.max(1, b - a - 2 * inset), y: edge, height: Math.max(0, frame.base - edge), rx: Math.min(2, (b - a) / 4), fill: color }));
    }
    return group;
  },
  dots({ points, color, r = 3, stroke = "none" }, x, y) {
    const group = svg("g");
    for (const [a, b] of points) {
      if (b !== null && Number.isFinite(b)) group.append(svg("circle", { cx: x(a), cy: y(b), r, fill: color, stroke, "stroke-width": 2 }));
    }
    return group;
  },
  rule({ at, value, color = "var(--quiet)", text, dash = "3 3" }, x, y, frame) {
    const group = svg("g");
    if (at !== undefined) {
      group.append(svg("line", { x1: x(at), x2: x(at), y1: frame.top, y2: frame.base, stroke: color, "stroke-dasharray": dash }));
      const late = x(at) > (frame.left + frame.right) / 2;
      if (text) group.append(svg("text", { x: x(at) + (late ? 4 : -4), y: frame.top - 5, "text-anchor": late ? "end" : "start" }, text));
    } else {
      group.append(svg("line", { x1: frame.left, x2: frame.right, y1: y(value), y2: y(value), stroke: color, "stroke-dasharray": dash }));
      if (text) group.append(svg("text", { x: frame.left + 5, y: y(value) - 4 }, text));
    }
    return group;
  },
};

/** The nearest point under the pointer tells what it is. */
function addHover(root, hover, x, y, frame) {
  const guide = svg("line", { class: "guide", y1: frame.top, y2: frame.base, visibility: "hidden" });
  const area = svg("rect", { x: frame.left, y: 0, width: Math.max(0, frame.right - frame.left), height: frame.base, fill: "transparent" });
  area.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    const away = (point) => Math.hypot(x(point.x) - px, point.y === undefined ? 0 : (y(point.y) - py) * 2);
    const nearest = hover.reduce((a, b) => (away(a) <= away(b) ? a : b));
    guide.setAttribute("x1", x(nearest.x));
    guide.setAttribute("x2", x(nearest.x));
    guide.setAttribute("visibility", "visible");
    tip.show(event, nearest.text);
  });
  area.addEventListener("pointerleave", () => {
    guide.setAttribute("visibility", "hidden");
    tip.hide();
  });
  root.append(guide, area);
}

/** The numbers behind a chart, for those who want to read or copy them. */
function numbersTable(columns, rows) {
  const details = el("details", {}, el("summary", {}, "Numbers"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) {
      const head = el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)));
      const body = rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, String(cell)))));
      details.append(el("div", { class: "scroll", tabindex: "0" }, el("table", {}, head, ...body)));
    }
  });
  return details;
}

function card(title, about, ...children) {
  return el("section", { class: "card", "aria-label": title }, el("h2", {}, title), el("p", {}, about), ...children);
}

function key(...entries) {
  return el("div", { class: "key" }, ...entries.map(([name, color, shape]) => {
    const swatch = el("i", { class: shape });
    swatch.style.background = color;
    return el("span", {}, swatch, name);
  }));
}

function padded(values, share = 0.08) {
  const finite = values.filter((value) => value !== null && Number.isFinite(value));
  if (!finite.length) return [0, 1];
  const low = Math.min(...finite), high = Math.max(...finite);
  const room = (high - low || Math.abs(high) || 1) * share;
  return [low - room, high + room];
}
