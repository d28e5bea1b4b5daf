// Draws the speed of a crawl while it runs, from the events of the API. The counters beside it are
// loaded by htmx; without scripts the page shows what was true when it was loaded.
"use strict";

(() => {
  /** Ten minutes at one event a second. */
  const POINTS_MAX = 600;
  const SPAN_MIN_S = 60;
  /** How long to wait before asking again after the server refused. */
  const PAUSE_MS = 3000;

  const place = document.getElementById("chart");
  if (!place || !window.uPlot) {
    return;
  }
  /** A colour of the sheet as it is now; asked for at every drawing, for the evening may come in between. */
  const colour = (name) => () => {
    place.style.color = `var(${name})`;
    return getComputedStyle(place).color;
  };
  const axis = () => ({
    stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
  });
  const times = [];
  const speeds = [];
  const height = 180;
  const chart = new uPlot(
    {
      width: Math.max(place.clientWidth, 200),
      height,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        // At least a minute, so that the first seconds are not spread over the whole width.
        x: { range: (_, first, last) => [Math.min(first ?? 0, (last ?? 0) - SPAN_MIN_S), last ?? 0] },
        y: { range: (_, __, highest) => [0, Math.max(1, (highest || 0) * 1.1)] },
      },
      axes: [axis(), axis()],
      series: [
        {},
        { stroke: colour("--accent"), fill: colour("--accent-soft"), width: 2, points: { show: false } },
      ],
    },
    [times, speeds],
    place,
  );
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", place.dataset.label);
  new ResizeObserver(() => chart.setSize({ width: Math.max(place.clientWidth, 200), height })).observe(place);

  const add = (stats) => {
    times.push(Date.now() / 1000);
    speeds.push(stats.pages_per_s);
    if (times.length > POINTS_MAX) {
      times.shift();
      speeds.shift();
    }
    chart.setData([times, speeds]);
  };

  const open = () => {
    const source = new EventSource(place.dataset.events);
    source.addEventListener("snapshot", (event) => add(JSON.parse(event.data).stats));
    source.addEventListener("stats", (event) => add(JSON.parse(event.data)));
    source.addEventListener("done", () => source.close());
    source.addEventListener("error", () => {
      // A lost connection is opened again by the browser itself; a refusal is not.
      if (source.readyState === EventSource.CLOSED) {
        setTimeout(open, PAUSE_MS);
      }
    });
    addEventListener("pagehide", () => source.close());
  };
  open();
})();
