// Shows a chart's values beside the pointer, and reloads the page for the part of a time axis that is selected.
"use strict";

document.documentElement.classList.add("scripts");
const SELECTED = 8; // pixels; shorter movements are clicks

function part(plot, kind) {
  const made = plot.querySelector(`.${kind.split(" ").join(".")}`) ?? document.createElement("div");
  made.className = kind;
  plot.append(made);
  return made;
}

function clear(plot) {
  for (const one of plot.querySelectorAll(".tip, .cursor")) one.remove();
}

function placed(plot, event) {
  const area = plot.querySelector(".area").getBoundingClientRect();
  const x = Math.min(area.width, Math.max(0, event.clientX - area.left));
  return { x, area, fraction: x / area.width, left: area.left - plot.getBoundingClientRect().left };
}

function line(name, hue, value) {
  const row = document.createElement("div");
  row.append(Object.assign(document.createElement("span"), { className: `key ${hue}`, textContent: `${name} ` }));
  row.append(Object.assign(document.createElement("strong"), { textContent: value }));
  return row;
}

function show(plot, event) {
  const { at, labels, lines } = JSON.parse(plot.dataset.points);
  const { area, fraction, left } = placed(plot, event);
  if (!at.length) return;
  const nearest = at.reduce((best, one, place) => (Math.abs(one - fraction) < Math.abs(at[best] - fraction) ? place : best), 0);
  const x = left + at[nearest] * area.width;
  Object.assign(part(plot, "cursor").style, { left: `${x}px`, top: `${area.top - plot.getBoundingClientRect().top}px`, height: `${area.height - 22}px` });
  const tip = part(plot, "tip");
  tip.replaceChildren(labels[nearest], ...lines.filter((one) => one[2][nearest]).map(([name, hue, values]) => line(name, hue, values[nearest])));
  const room = plot.clientWidth - tip.offsetWidth;
  tip.style.left = `${Math.max(0, Math.min(room, x > room / 2 ? x - tip.offsetWidth - 10 : x + 10))}px`;
}

function select(plot, began, event) {
  const { x, area, left } = placed(plot, event);
  const width = Math.abs(x - began);
  Object.assign(part(plot, "cursor wide").style, { left: `${left + Math.min(x, began)}px`, width: `${width}px`, top: `${area.top - plot.getBoundingClientRect().top}px`, height: `${area.height - 22}px` });
  return width;
}

// The address keeps the page's filters; the server draws the part from its finest samples.
function zoom(plot, ends) {
  const { from_at: from, to_at: to } = JSON.parse(plot.dataset.points);
  const [first, last] = ends.sort((a, b) => a - b).map((fraction) => Math.round(from + fraction * (to - from)));
  const query = new URLSearchParams(location.search);
  for (const name of ["range", "said", "retried"]) query.delete(name);
  query.set("from_at", first);
  query.set("to_at", Math.max(last, first + 1));
  location.assign(`?${query}#${plot.closest("figure").id}`);
}

let began = null; // where the pointer was pressed

document.addEventListener("pointermove", (event) => {
  const plot = event.target.closest?.(".plot[data-points]");
  for (const other of document.querySelectorAll(".plot:has(.tip)")) if (other !== plot && !began) clear(other);
  if (began) select(began.plot, began.x, event);
  else if (plot) show(plot, event);
});

document.addEventListener("pointerdown", (event) => {
  const plot = event.target.closest?.(".plot[data-points]");
  if (!plot || event.button || !("from_at" in JSON.parse(plot.dataset.points))) return;
  began = { plot, ...placed(plot, event) };
  event.preventDefault();
});

document.addEventListener("pointerup", (event) => {
  if (!began) return;
  const { plot, x, fraction } = began;
  const end = placed(plot, event);
  began = null;
  clear(plot);
  if (Math.abs(end.x - x) >= SELECTED) zoom(plot, [fraction, end.fraction]);
});

document.addEventListener("pointercancel", () => {
  if (began) clear(began.plot);
  began = null;
});
