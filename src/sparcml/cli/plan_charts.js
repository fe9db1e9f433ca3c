const { plan, grid } = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const PARTS = { computing: "computing", work: "the method's own work", exposed: "communication that does not hide" };
// One pair of colour and dash pattern per method, in their order.
const DASHES = ["2 3", "9 3", "", "6 2 2 2", "", "4 3", "12 3 3 3", "9 3", "", "3 2"];
const RATES = Array.from({ length: 61 }, (_, i) => 10 ** (7 + i / 12));
const planned = () => ({
  ranks: plan.ranks, network: { ...plan.network }, ratio: grid.ratio, compute: plan.compute, overlap: plan.overlap,
  optimizer: plan.optimizer,
});
let is = planned();

const digits = (v) => v >= 100 ? v.toFixed(0) : v.toPrecision(3);
const time = (s) => s >= 1 ? `${digits(s)} s` : s >= 1e-3 ? `${digits(s * 1e3)} ms` : `${digits(s * 1e6)} µs`;
const rate = (value) => {
  const r = +value.toPrecision(3);
  return r >= 1e12 ? `${r / 1e12} Tbit/s` : r >= 1e9 ? `${r / 1e9} Gbit/s` : `${r / 1e6} Mbit/s`;
};
const times = (v) => `${v >= 10 ? v.toFixed(1) : v.toFixed(2)}x`;
const draw = (name, attributes, text = "") =>
  `<${name} ${Object.entries(attributes).map(([k, v]) => `${k}="${v}"`).join(" ")}>${text}</${name}>`;
const stroke = (m) => ({ fill: "none", stroke: `var(--m${m})`, "stroke-width": 2.2, "stroke-dasharray": DASHES[m] });

// A page in the background has no width yet.
const width = (id) => Math.max(300, $(id).clientWidth);
// Drawn as wide as they are shown, so that letters keep their size on a phone.
function sheet(id, high) {
  const wide = width(id);
  $(id).setAttribute("viewBox", `0 0 ${wide} ${high}`);
  $(id).style.height = `${high}px`;
  return wide;
}
function bars(best) {
  const narrow = width("bars") < 560, high = narrow ? 40 : 30;
  const wide = sheet("bars", best.length * high), from = narrow ? 0 : 140;
  const scale = (wide - from - (narrow ? 120 : 250)) / Math.max(...best.map((r) => r.step));
  $("bars").innerHTML = best.map((row, i) => {
    const y = i * high, top = narrow ? y + 16 : y + 4;
    let x = from;
    const parts = [["computing", is.compute], ["work", row.work], ["exposed", row.exposed]].map(([part, value]) => {
      x += scale * value;
      return draw("rect", { x: x - scale * value, y: top, width: scale * value, height: 20, fill: `var(--${part})` },
        draw("title", {}, `${row.method}, ${row.collective}: ${time(value)}`));
    });
    const shade = { opacity: kept(row) ? 1 : 0.45 };
    const note = kept(row) ? "" : row.accuracy.verdict === "not kept" ? ", accuracy not kept" : ", not measured";
    const name = narrow ? { x: 0, y: y + 12 } : { x: from - 8, y: y + 19, "text-anchor": "end" };
    const label = draw("text", { x: x + 6, y: top + 15 }, `${time(row.step)}, ${times(row.speedup)}`);
    return draw("text", name, row.method + (narrow ? note : "")) + draw("g", shade, parts.join("")) + label
      + (narrow || !note ? "" : draw("text", { x: wide, y: top + 15, "text-anchor": "end", class: "axis" }, note.slice(2)));
  }).join("");
}
// Round numbers within a range, as closely as there is room for.
function marks(low, high) {
  const within = (firsts) => {
    const powers = [-3, -2, -1, 0, 1, 2, 3, 4].map((p) => 10 ** p);
    return powers.flatMap((p) => firsts.map((f) => f * p)).filter((v) => v >= low && v <= high);
  };
  const steps = [[1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8], [1, 2, 5], [1]].map(within);
  return steps.find((values) => values.length <= 9) ?? steps[2];
}
function lines(id, xs, label, name, at, now) {
  const columns = xs.map((x) => bests(table(grid, at(x)))), all = columns.flat().map((r) => r.speedup);
  const low = Math.min(0.9, ...all) / 1.05, high = Math.max(2, ...all) * 1.05;
  const wide = sheet(id, 320), right = wide - 30, narrow = wide < 560;
  const along = (v, list) => Math.log(v / list[0]) / Math.log(list[list.length - 1] / list[0]);
  const X = (v) => 48 + (right - 48) * Math.min(1, Math.max(0, along(v, xs))), Y = (v) => 270 - 258 * along(v, [low, high]);
  let out = marks(low, high).map((v) => draw("line", { x1: 48, x2: right, y1: Y(v), y2: Y(v), stroke: v === 1 ? "var(--quiet)" : "var(--rule)" })
    + draw("text", { x: 42, y: Y(v) + 4, "text-anchor": "end", class: "axis" }, `${+v.toPrecision(3)}x`)).join("");
  out += draw("line", { x1: X(now), x2: X(now), y1: 12, y2: 270, stroke: "var(--quiet)", "stroke-dasharray": "2 4" });
  const ticks = xs.filter((v) => id === "by-ranks" || [1e7, 1e8, 1e9, 1e10, 1e11, 1e12].some((t) => Math.abs(v / t - 1) < 1e-6));
  ticks.filter((v, i) => !narrow || i % 2 === 0)
    .forEach((v) => { out += draw("text", { x: X(v), y: 288, "text-anchor": "middle", class: "axis" }, label(v)); });
  out += draw("text", { x: (48 + right) / 2, y: 312, "text-anchor": "middle", class: "axis" }, name);
  columns[0].forEach((_, m) => {
    out += draw("polyline", { points: columns.map((c, i) => `${X(xs[i])},${Y(c[m].speedup)}`).join(" "), ...stroke(m) });
  });
  $(id).innerHTML = out;
}
function legends(best) {
  const item = (mark, text) => `<li><svg viewBox="0 0 30 12">${mark}</svg>${text}</li>`;
  const box = (fill) => draw("rect", { x: 8, y: 0, width: 14, height: 12, fill });
  $("parts").innerHTML = Object.entries(PARTS).map(([part, text]) => item(box(`var(--${part})`), text)).join("");
  $("methods").innerHTML = best.map((r, m) => item(draw("line", { x1: 0, x2: 30, y1: 6, y2: 6, ...stroke(m) }), r.method)).join("");
}
function words(best, take) {
  const candidates = best.filter(kept), fastest = candidates.reduce((a, b) => (b.step < a.step ? b : a));
  const list = (rows) => rows.map((r) => `${r.method} (${times(r.speedup)})`).join(", ");
  const also = [["not kept", "Faster; accuracy not kept"], ["not measured", "Faster; not measured"]].map(([verdict, text]) => {
    const rows = faster(best, take, verdict);
    return rows.length ? ` ${text}: ${list(rows)}.` : "";
  });
  const lost = slower(best);
  let text = `Recommended with ${grid.optimizers[is.optimizer]}: `;
  if (candidates.length === 1) text += "dense; no other method was measured with this optimizer.";
  else if (take.method === "dense") text += `dense; no method that keeps the accuracy is more than ${Math.round(100 * grid.near - 100)} % faster (${list([fastest])}).`;
  else text += `${take.method} by ${take.collective}: ${times(take.speedup)} as fast as dense.`
    + (fastest === take ? "" : ` The fastest, ${fastest.method}, has ${times(fastest.speedup)}.`);
  return text + also.join("") + (lost.length ? ` Dense is faster than ${lost.join(", ")}.` : "");
}
function update() {
  const rows = table(grid, is), best = bests(rows), take = recommended(best, grid.near);
  const now = 8 / is.network.seconds_per_byte;
  const shown = { ranks: is.ranks, rate: rate(now), latency: time(is.network.latency), ratio: `${+(100 * is.ratio).toPrecision(3)} %`,
    compute: time(is.compute), overlap: `${Math.round(100 * is.overlap)} %` };
  for (const [id, text] of Object.entries(shown)) $(`${id}-is`).value = text;
  $("verdict").textContent = words(best, take);
  $("line").textContent = take.line;
  legends(best);
  bars(best);
  lines("by-ranks", grid.ranks, String, "ranks", (ranks) => ({ ...is, ranks }), is.ranks);
  lines("by-rate", RATES, rate, "bandwidth", (r) => ({ ...is, network: { ...is.network, seconds_per_byte: 8 / r } }), now);
  $("optimizer-title").textContent = grid.measured[is.optimizer];
  $("measured").innerHTML = best.map((r) => `<tr class="${r === take ? "best" : kept(r) ? "" : "slow"}"><td>${r.method}`
    + `<td>${r.accuracy.verdict}<td>${r.accuracy.measurement}</tr>`).join("");
  const kind = (r) => r === take ? "best" : r.speedup < 1 ? "slow" : "";
  $("rows").innerHTML = rows.map((r) => `<tr class="${kind(r)}"><td>${r.method}<td>${r.collective}<td>${(r.step * 1e3).toFixed(2)}`
    + `<td>${times(r.speedup)}<td>${r.accuracy.verdict}<td>${(r.communication * 1e3).toFixed(2)}<td>${(r.nbytes / 1e6).toFixed(2)}</tr>`).join("");
}
// Where each control stands, and what it sets.
const CONTROLS = {
  ranks: [() => grid.ranks.indexOf(is.ranks), (v) => { is.ranks = grid.ranks[v]; }],
  rate: [() => Math.log10(8 / is.network.seconds_per_byte), (v) => { is.network.seconds_per_byte = 8 / 10 ** v; }],
  latency: [() => Math.log10(Math.max(is.network.latency, 5e-7)), (v) => { is.network.latency = 10 ** v; is.network.overhead = 10 ** v / 5; }],
  ratio: [() => grid.ratios.indexOf(is.ratio), (v) => { is.ratio = grid.ratios[v]; }],
  compute: [() => Math.log10(is.compute), (v) => { is.compute = 10 ** v; }],
  overlap: [() => is.overlap, (v) => { is.overlap = v; }],
  optimizer: [() => is.optimizer, (v) => { is.optimizer = v; }],
};
function stand() {
  for (const [id, [get]] of Object.entries(CONTROLS)) $(id).value = get();
}
$("optimizer").innerHTML = Object.entries(grid.optimizers).map(([id, title]) => draw("option", { value: id }, title)).join("");
$("ranks").max = grid.ranks.length - 1;
$("ratio").max = grid.ratios.length - 1;
for (const [id, [, set]] of Object.entries(CONTROLS)) $(id).addEventListener("input", () => { set(id === "optimizer" ? $(id).value : +$(id).value); update(); });
$("reset").addEventListener("click", () => { is = planned(); stand(); update(); });
$("about").textContent = `${plan.model.name}: ${plan.model.parameters.toLocaleString("en")} parameters (${plan.model.source}); planned for ${plan.ranks} ranks on ${plan.network.name}.`;
stand();
update();
// It is as wide as the charts, and their height does not change its own.
new ResizeObserver(update).observe($("about"));
