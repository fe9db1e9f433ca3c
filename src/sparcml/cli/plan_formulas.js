// What `sparcml plan` computes, from the factors of every method in the grid: seconds are
// linear in what a network charges. `is` has what is chosen: ranks, network, ratio, compute,
// overlap, optimizer.
function seconds(terms, network) {
  return network.latency * terms[0] + network.overhead * terms[1] + network.seconds_per_byte * terms[2] + terms[3];
}
function table(grid, is) {
  const at = grid.ranks.indexOf(is.ranks);
  const rows = grid.choices
    .filter((c) => c.ratio === null || c.ratio === is.ratio)
    .map((c) => {
      const communication = seconds(c.terms[at], is.network);
      const exposed = Math.max(0, communication - is.overlap * is.compute);
      return { method: c.method, collective: c.collective, line: c.line, nbytes: c.terms[at][2],
        accuracy: grid.accuracy[c.method][is.optimizer],
        communication, exposed, work: c.work, step: is.compute + c.work + exposed };
    });
  const dense = Math.min(...rows.filter((r) => r.method === "dense").map((r) => r.step));
  for (const row of rows) row.speedup = dense / row.step;
  return rows;
}
// Each method with the collective that serves it best.
function bests(rows) {
  const found = new Map();
  for (const row of rows) {
    if (!found.has(row.method) || row.step < found.get(row.method).step) found.set(row.method, row);
  }
  return [...found.values()];
}
const kept = (row) => ["exact", "kept"].includes(row.accuracy.verdict);
// The least lossy method that is nearly as fast as the fastest that keeps the accuracy: they
// come in that order.
function recommended(best, near) {
  const candidates = best.filter(kept), fastest = Math.min(...candidates.map((r) => r.step));
  return candidates.find((r) => r.step <= near * fastest);
}
// Methods with this accuracy that are faster than the recommended one.
function faster(best, take, verdict) {
  return best.filter((r) => r.accuracy.verdict === verdict && r.step < take.step);
}
function slower(best) {
  return best.filter((r) => r.method !== "dense" && r.speedup <= 1).map((r) => r.method);
}
