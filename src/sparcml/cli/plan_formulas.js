// What `sparcml plan` computes, from the factors of every method in the grid: seconds are
// linear in what a network charges. `is` has what is chosen: ranks, network, ratio, compute,
// overlap.
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
// The mildest method that is nearly as fast as the fastest: they come in that order.
function recommended(best, near) {
  const fastest = Math.min(...best.map((r) => r.step));
  return best.find((r) => r.step <= near * fastest);
}
function slower(best) {
  return best.filter((r) => r.method !== "dense" && r.speedup <= 1).map((r) => r.method);
}
