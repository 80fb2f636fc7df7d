// The page: a tab for each run, and one for all of them side by side. Lists with an entry a layer
// begin with layer 1.

const METRICS = { roc_auc: "AUROC", accuracy: "Accuracy", ap: "Average precision", f1: "Macro F1", mae: "MAE", mse: "MSE" };
const report = JSON.parse(document.getElementById("data").textContent);

function metricName(run) {
  return METRICS[run.metric] ?? run.metric;
}

function score(run, value) {
  if (value === null || value === undefined) return "–";
  return run.task === "regression" ? number(value) : (100 * value).toFixed(1);
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${seconds.toFixed(0)} s`;
  return seconds < 5400 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function heading(run) {
  const what = `${run.model} on ${run.dataset}`;
  const about = [`split ${run.split}`, `seed ${run.seed}`, run.exits ? `up to ${run.layers} layers` : `${run.layers} layers`];
  if (!run.finished) about.push("not finished");
  const numbers = [
    [`Test ${metricName(run)}`, score(run, run.test), run.val === null ? "" : `validation ${score(run, run.val)}`],
    run.exits ? ["Budget used", percent(run.left.cost, 0), `mean exit ${number(run.left.mean, 1)}`] : ["Depth", number(run.layers), "layers, for all"],
    run.exits ? ["Median exit", number(run.left.median, 1), `from ${run.left.min} to ${run.left.max}`] : null,
    ["Parameters", number(run.params), ""],
    ["Training", duration(run.seconds), run.best === null ? "" : `best epoch ${run.best}`],
  ].filter(Boolean);
  const list = el("dl", { class: "numbers" });
  for (const [name, value, more] of numbers) list.append(el("div", {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, more ? `  ${more}` : ""))));
  return el("div", { class: "head" }, el("h1", {}, what), el("p", { class: "quiet small" }, [run.name, ...about].join(" · ")), list);
}

function exitHistogram(run) {
  const counts = run.left.histogram, total = counts.reduce((a, b) => a + b, 0);
  const bars = counts.map((value, k) => ({ from: k + 0.5, to: k + 1.5, value, color: css(exitColor(k + 1, run.layers)) }));
  return card("Exit layers", `Where the ${number(total)} test ${run.level}s leave.`,
    chart({
      label: `Histogram of exit layers, median ${run.left.median}`,
      x: layerAxis(run.layers, "exit layer"), y: { domain: [0, Math.max(...counts) * 1.05], format: (v) => number(v, 0) },
      marks: [{ kind: "bars", bars }],
      hover: counts.map((value, k) => ({ x: k + 1, text: `layer ${k + 1}: ${number(value)} (${percent(value / total)})` })),
    }), numbersTable(["layer", `${run.level}s`], counts.map((value, k) => [k + 1, value])));
}

function exitTime(run) {
  const { edges, counts, mean } = run.left.time;
  const bars = counts.map((value, k) => ({ from: edges[k], to: edges[k + 1], value, color: "var(--accent)" }));
  return card("Exit time", `The sum of the steps τ up to the exit: the paper's continuous depth. Mean ${number(mean, 2)}.`,
    chart({
      label: `Histogram of exit times, mean ${number(mean, 2)}`,
      x: { domain: [0, edges.at(-1)], title: "Σ τ" }, y: { domain: [0, Math.max(...counts) * 1.05], format: (v) => number(v, 0) },
      marks: [{ kind: "bars", bars }],
      hover: counts.map((value, k) => ({ x: (edges[k] + edges[k + 1]) / 2, text: `${number(edges[k], 2)} to ${number(edges[k + 1], 2)}: ${number(value)}` })),
    }), numbersTable(["from", "to", `${run.level}s`], counts.map((value, k) => [number(edges[k]), number(edges[k + 1]), value])));
}

function byLayer(run) {
  const { left, all } = run.byLayer, regression = run.task === "regression", share = (v) => (regression ? number(v) : percent(v));
  const counts = run.left.histogram, most = Math.max(...counts);
  const points = left.map((value, k) => [k + 1, value, counts[k]]).filter(([, value]) => value !== null);
  const marks = [{ kind: "line", points: all.map((value, k) => [k + 1, value]), color: "var(--accent)" }];
  if (run.exits) {
    for (const [l, value, count] of points) marks.push({ kind: "dots", points: [[l, value]], color: css(exitColor(l, run.layers)), r: 3 + 6 * Math.sqrt(count / most) });
  }
  const simple = regression ? metricName(run) : "share right";
  const about = run.exits
    ? `Line: ${metricName(run)} if all units left at that layer. Dots: ${simple} of the units that did, by their number.`
    : `${metricName(run)} if the model stopped at that layer.`;
  const hover = all.map((value, k) => ({
    x: k + 1,
    text: `layer ${k + 1}\nif all left here: ${score(run, value)}` + (run.exits && left[k] !== null ? `\n${number(counts[k])} left here: ${share(left[k])}` : ""),
  }));
  return card("Score by layer", about,
    chart({
      label: `Score by exit layer`, x: layerAxis(run.layers, "layer"),
      y: { domain: padded([...all, ...(run.exits ? left : [])]), format: (v) => (regression ? number(v, 2) : (100 * v).toFixed(0)) }, marks, hover,
    }), numbersTable(["layer", "if all left here", ...(run.exits ? ["of those who did", "how many"] : [])],
      all.map((value, k) => [k + 1, score(run, value), ...(run.exits ? [left[k] === null ? "–" : share(left[k]), counts[k]] : [])])));
}

function costCurve(run) {
  const { points, limits, own, full, best } = run.cost;
  const line = points.map((p) => [p.cost, p.score]);
  const rule = (p) => [p.threshold === null ? "own rule" : `threshold ${number(p.threshold)}`, p.max_layers === null ? null : `at most ${p.max_layers} layers`].filter(Boolean).join(", ");
  const hover = [...points, ...limits, own, ...best].filter((p) => p.score !== null).map((p) => ({ x: p.cost, y: p.score, text: `${rule(p)}\n${percent(p.cost, 0)} of the budget\n${metricName(run)} ${score(run, p.score)}` }));
  const shown = [...points, ...limits, own, full, ...best].map((p) => p.score);
  const marks = [
    { kind: "line", points: limits.map((p) => [p.cost, p.score]), color: "var(--quiet)", width: 1.4, dash: "2 3" },
    { kind: "line", points: line, color: "var(--accent)" },
  ];
  if (best.length) marks.push({ kind: "dots", points: best.map((p) => [p.cost, p.score]), color: "var(--quiet)", r: 2.5 });
  marks.push({ kind: "dots", points: [[full.cost, full.score]], color: "var(--warm)", r: 5 }, { kind: "dots", points: [[own.cost, own.score]], color: "var(--accent)", stroke: "var(--card)", r: 7 });
  const entries = [["exit threshold", "var(--accent)"], ["depth limit", "var(--quiet)"], ["own rule", "var(--accent)", "dot"], ["nobody leaves", "var(--warm)", "dot"]];
  if (best.length) entries.push(["calibrated pairs", "var(--quiet)", "dot"]);
  return card("Score against cost", "What leaving earlier or later is worth on test units, without training again.",
    chart({
      label: `${metricName(run)} against the share of the budget`, x: { domain: [0, 1], title: "share of the budget", format: (v) => `${Math.round(100 * v)} %` },
      y: { domain: padded(shown), format: (v) => (run.task === "regression" ? number(v, 2) : (100 * v).toFixed(0)) }, marks, hover,
    }), key(...entries), numbersTable(["rule", "cost", metricName(run)], [own, full, ...points, ...limits].map((p) => [rule(p), percent(p.cost), score(run, p.score)])));
}

function learning(run) {
  const { epoch, loss, val, exit_quantiles: quantiles } = run.curves;
  if (!epoch.length) return null;
  const x = { domain: [0, epoch.at(-1)] };
  const best = run.best === null ? [] : [{ kind: "rule", at: run.best }];
  const hover = epoch.map((e, k) => ({ x: e, text: `epoch ${e}\nloss ${number(loss[k])}\nvalidation ${score(run, val[k])}` + (run.exits && quantiles[k] ? `\nmedian exit ${number(quantiles[k][1], 1)}` : "") }));
  const finite = loss.filter((v) => v > 0), far = finite.length && Math.max(...finite) > 30 * Math.min(...finite);
  const part = (name, drawn) => el("div", {}, el("p", { class: "small quiet" }, name), drawn);
  const parts = [
    part("training loss", chart({ height: 130, label: "Training loss by epoch", x, y: { domain: far ? [Math.min(...finite), Math.max(...finite)] : padded(loss), log: far }, marks: [{ kind: "line", points: epoch.map((e, k) => [e, loss[k]]), color: "var(--accent)", width: 1.3 }, ...best], hover })),
    part(`validation ${metricName(run)}`, chart({ height: 130, label: "Validation score by epoch", x, y: { domain: padded(val), format: (v) => (run.task === "regression" ? number(v, 2) : (100 * v).toFixed(0)) }, marks: [{ kind: "line", points: epoch.map((e, k) => [e, val[k]]), color: "var(--warm)", width: 1.3 }, ...best], hover })),
  ];
  if (run.exits && quantiles[0]) {
    parts.push(part("exit layer, median and 10 to 90 %",
      chart({ height: 130, label: "Exit layers by epoch", x, y: layerAxis(run.layers), marks: [{ kind: "band", points: epoch.map((e, k) => [e, quantiles[k][0], quantiles[k][2]]), color: "var(--good)" }, { kind: "line", points: epoch.map((e, k) => [e, quantiles[k][1]]), color: "var(--good)", width: 1.3 }, ...best], hover })));
  }
  return card("Learning", run.best === null ? `${epoch.at(-1)} epochs.` : `${epoch.at(-1)} epochs; the dashed line is the best one, ${run.best}.`, el("div", { class: "grid tight" }, ...parts));
}

function confusion(run) {
  const matrix = run.confusion, names = run.classes;
  const brief = (name) => (matrix.length > 4 ? name.replace("class ", "") : name);
  const head = el("tr", {}, el("td", { style: "background:none" }), ...names.map((name) => el("th", { scope: "col", title: name }, brief(name))));
  const rows = matrix.map((row, truth) => {
    const total = row.reduce((a, b) => a + b, 0);
    const cells = row.map((count, answer) => {
      const share = total ? count / total : 0;
      const color = answer === truth ? "var(--good)" : "var(--warm)";
      const cell = el("td", { title: `${names[truth]} taken for ${names[answer]}: ${number(count)}` }, matrix.length > 10 ? (share >= 0.005 ? (100 * share).toFixed(0) : "") : percent(share, 0));
      if (matrix.length <= 10) cell.append(el("br"), el("span", { class: "faint" }, number(count)));
      cell.style.background = `color-mix(in srgb, ${color} ${Math.round(8 + 72 * share)}%, var(--soft))`;
      return cell;
    });
    return el("tr", {}, el("th", { scope: "row" }, brief(names[truth])), ...cells);
  });
  return card("Confusion", "Rows are the truth, columns the answer; shares of a row, test part.",
    el("table", { class: matrix.length > 10 ? "confusion many" : "confusion" }, el("thead", {}, head), el("tbody", {}, ...rows)));
}

function dirichlet(run) {
  const values = run.dirichlet, positive = values.filter((v) => v > 0);
  const log = positive.length === values.length && Math.max(...values) > 20 * Math.min(...values);
  return card("Dirichlet energy", "How much neighbours differ, layer by layer; near zero they could not be told apart.",
    chart({
      label: "Dirichlet energy by layer", x: { domain: [0, run.layers], title: "layer" }, y: { domain: log ? [Math.min(...values), Math.max(...values)] : padded([0, ...values]), log },
      marks: [{ kind: "line", points: values.map((v, l) => [l, v]), color: "var(--accent)" }, { kind: "dots", points: values.map((v, l) => [l, v]), color: "var(--accent)", r: 2.5 }],
      hover: values.map((v, l) => ({ x: l, text: `layer ${l}: ${number(v)}` })),
    }), numbersTable(["layer", "energy"], values.map((v, l) => [l, number(v)])));
}

function cards(run) {
  return [
    run.exits ? exitHistogram(run) : null,
    byLayer(run),
    run.cost ? costCurve(run) : null,
    run.exits ? exitTime(run) : null,
    run.confusion ? confusion(run) : null,
    run.dirichlet ? dirichlet(run) : null,
  ].filter(Boolean);
}

let explorers = [];

function runView(run) {
  const explorer = new Explorer(run);
  explorer.select(explorer.example());
  return { explorers: [explorer], node: el("div", {}, heading(run), explorer.node, el("div", { class: "grid" }, ...cards(run)), learning(run)) };
}

function compareView(runs) {
  const made = runs.map((run) => new Explorer(run, (share, from) => made.forEach((other) => other !== from && other.goTo(Math.round(share * other.run.layers), false))));
  const rows = runs.map((run) => [run.name, run.dataset, run.model, `${metricName(run)} ${score(run, run.test)}`, run.exits ? percent(run.left.cost, 0) : "100 %", run.exits ? `${run.left.min} / ${number(run.left.median, 1)} / ${run.left.max}` : String(run.layers), number(run.params), duration(run.seconds)]);
  const head = ["run", "data", "model", "test", "budget", "exits, min / median / max", "parameters", "training"];
  const table = el("table", { class: "compare" }, el("thead", {}, el("tr", {}, ...head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell))))));
  const columns = el("div", { class: "columns" }, ...runs.map((run, k) => el("div", { class: "column" }, el("h2", {}, run.name), made[k].node, ...cards(run), learning(run))));
  columns.style.setProperty("--runs", Math.min(3, runs.length));
  return { explorers: made, node: el("div", {}, el("section", { class: "card compare-box head", "aria-label": "All runs" }, table), columns) };
}

function start() {
  const { runs } = report, main = document.getElementById("main"), tabs = document.getElementById("tabs");
  const views = runs.map((run) => ({ name: run.name, make: () => runView(run) }));
  if (runs.length > 1) views.unshift({ name: "Side by side", make: () => compareView(runs) });
  const show = (k, focus = false) => {
    explorers.forEach((one) => one.stop());
    tip.hide();
    views[k].made ??= views[k].make();
    explorers = views[k].made.explorers;
    main.replaceChildren(views[k].made.node, footer());
    [...tabs.children].forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === k);
      tab.tabIndex = i === k ? 0 : -1;
      if (focus && i === k) tab.focus();
    });
    explorers.forEach((one) => one.paint());
  };
  views.forEach((view, k) => tabs.append(el("button", { type: "button", role: "tab", "aria-controls": "main", onclick: () => show(k) }, view.name)));
  tabs.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const at = [...tabs.children].findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    show((at + move + views.length) % views.length, true);
  });
  if (views.length === 1) tabs.style.visibility = "hidden";
  show(views.length - runs.length); // the first run
}

function footer() {
  return el("footer", {}, `EEGNN ${report.version}. Space plays and pauses, the arrow keys move through the layers.`);
}

document.addEventListener("keydown", (event) => {
  const target = event.target;
  const typing = target.matches("button, summary, select, input:not([type=range])");
  if (event.key === " " && !typing) {
    event.preventDefault();
    explorers[0]?.toggle();
  } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !target.matches("input, canvas, [tabindex='0']")) {
    explorers[0]?.stop();
    explorers[0]?.goTo(explorers[0].layer + (event.key === "ArrowRight" ? 1 : -1));
  }
});

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  explorers.forEach((one) => one.paint());
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => explorers.forEach((one) => one.paint()));

start();
