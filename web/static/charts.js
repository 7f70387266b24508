// Draws a page's charts in its colours; a table beside each chart has its numbers.
"use strict";

// Only colour attributes: a batch may be named "--c1".
function inColours(value, colours, key = "") {
  if (typeof value === "string" && value.startsWith("--") && key.toLowerCase().endsWith("color")) {
    const [name, opacity] = value.split("/");
    const colour = colours.getPropertyValue(name).trim();
    return opacity ? `${colour}${Math.round(Number(opacity) * 255).toString(16).padStart(2, "0")}` : colour;
  }
  if (Array.isArray(value)) return value.map((one) => inColours(one, colours, key));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inColours(one, colours, name)]));
  }
  return value;
}

function axis(given, size) {
  const title = given?.title && { standoff: 8, font: { size }, ...given.title };
  return { gridcolor: "--grid", zerolinecolor: "--grid", linecolor: "--line", automargin: true, fixedrange: true, ...given, ...(title && { title }) };
}

function draw(figure) {
  const { traces, layout, height } = JSON.parse(figure.dataset.chart);
  const colours = getComputedStyle(document.documentElement);
  const plot = figure.querySelector(".plot");
  const size = figure.clientWidth < 480 ? 11 : 13;
  const full = {
    margin: { l: 8, r: 8, t: 8, b: 8 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size, color: "--soft" },
    hoverlabel: { bgcolor: "--panel", bordercolor: "--line", font: { color: "--text" } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    hovermode: "x unified",
    dragmode: false,
    autosize: true,
    ...layout,
    height,
    xaxis: axis(layout.xaxis, size),
    yaxis: axis(layout.yaxis, size),
  };
  const config = { displayModeBar: false, responsive: true };
  plot.style.height = `${height}px`;
  Plotly.react(plot, inColours(traces, colours), inColours(full, colours), config);
}

function drawAll({ fresh = false } = {}) {
  for (const figure of document.querySelectorAll("figure.chart[data-chart]")) {
    const first = !figure.dataset.drawn;
    if (fresh && !first) continue;
    figure.dataset.drawn = "yes";
    draw(figure);
    if (first) figure.querySelector("details")?.removeAttribute("open");
  }
}

if (window.Plotly) {
  drawAll();
  document.addEventListener("chart", (event) => setTimeout(() => draw(event.target)));
  document.addEventListener("chart-new", () => drawAll({ fresh: true }));
  document.addEventListener("theme", () => drawAll());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
}
