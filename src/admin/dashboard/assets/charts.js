// Draws charts to point at in place of the server's lines. Colors come from the stylesheet; the table below each has the numbers.
(() => {
  "use strict";
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  if (!window.uPlot || figures.length === 0) return;
  // Steps are longer than this; a shorter pause would fetch the same again.
  const PAUSE = 15000;
  const plots = new Map();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let last = 0;
  let data = null;

  const clock = (time, seconds) => new Date(time * 1000).toISOString().slice(11, seconds ? 19 : 16);

  function options(plot, chart, unit) {
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    const number = (value) => value == null ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 3 }) + " " + unit;
    return {
      width: plot.clientWidth, height: 180,
      legend: { live: true }, cursor: { drag: { x: true, y: false } },
      scales: { y: { range: (self, low, high) => [0, Math.max(high, 1e-9) * 1.1] } },
      axes: [{ ...axis, size: 30, values: (self, times) => times.map((time) => clock(time, times.length > 1 && times[1] - times[0] < 60)) }, { ...axis, size: 52 }],
      series: [{ label: "UTC", value: (self, time) => time == null ? "–" : clock(time, true) }, ...chart.map((line, at) => ({
        label: line.name, stroke: color("--s" + (at + 1)), width: 1.5, points: { show: false }, value: (self, value) => number(value),
      }))],
    };
  }

  function draw(figure) {
    const chart = data.charts[figure.dataset.chart] || [];
    const plot = figure.querySelector(".plot");
    const length = chart.reduce((most, line) => Math.max(most, line.values.length), 0);
    if (length === 0) return;
    // Five minutes at least: a chart of one moment shows nothing.
    const shown = Math.max(length, Math.ceil(300 / data.step));
    const times = Array.from({ length: shown }, (_, at) => data.end - (shown - 1 - at) * data.step);
    const columns = [times, ...chart.map((line) => [...Array(shown - line.values.length).fill(null), ...line.values])];
    const names = chart.map((line) => line.name).join("\n");
    const old = plots.get(plot);
    if (old && old.names === names) {
      old.uplot.setData(columns);
      return;
    }
    if (old) old.uplot.destroy();
    plot.replaceChildren();
    plot.dataset.drawn = "yes";
    plots.set(plot, { names, uplot: new uPlot(options(plot, chart, figure.dataset.unit), columns, plot) });
  }

  function redraw() {
    for (const [plot, { uplot }] of plots) {
      uplot.destroy();
      plots.delete(plot);
    }
    if (data) figures.forEach(draw);
  }

  async function refresh() {
    if (Date.now() - last < PAUSE || document.hidden) return;
    last = Date.now();
    const cluster = figures[0].dataset.cluster;
    const answer = await fetch("/traffic.json" + (cluster ? "?cluster=" + encodeURIComponent(cluster) : ""));
    if (!answer.ok) return;
    data = await answer.json();
    figures.forEach(draw);
  }

  document.addEventListener("meridian:fresh", refresh);
  dark.addEventListener("change", redraw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const [plot, { uplot }] of plots) uplot.setSize({ width: plot.clientWidth, height: 180 });
  });
  refresh();
})();
