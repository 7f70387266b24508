// Adds to pages: live parts, updating relative times, sortable and searchable tables, instant filters.
"use strict";

const page = document.documentElement;

// ------------------------------------------------ relative times, by the browser's clock corrected to the server's
const skew = Date.now() - Number(page.dataset.now) * 1000;

function lengthOf(seconds) { // the same as domain/formatting.py
  const whole = Math.floor(seconds + 0.5);
  if (whole < 120) return `${whole >= 10 ? whole : Number(seconds.toPrecision(2))} s`;
  const both = (value, of, unit, smaller) =>
    `${Math.floor(value / of)} ${unit}${value % of ? ` ${value % of} ${smaller}` : ""}`;
  if (whole < 3600) return both(whole, 60, "min", "s");
  const minutes = Math.floor((seconds + 30) / 60);
  if (minutes < 1440) return both(minutes, 60, "h", "min");
  return both(Math.floor((seconds + 1800) / 3600), 24, "d", "h");
}

function refreshTimes(root) {
  const now = (Date.now() - skew) / 1000;
  for (const one of root.querySelectorAll("time[datetime]")) {
    const away = Math.round(Date.parse(one.dateTime) / 1000 - now);
    const length = lengthOf(Math.abs(away)).replaceAll(" ", "\u00a0"); // does not break
    const text = away === 0 ? "now" : away > 0 ? `in ${length}` : `${length} ago`;
    if (one.className === "clock") one.title = text;
    else if (one.textContent !== text) one.textContent = text;
  }
}

// ------------------------------------------------ sorting tables by a column
function sortable(root) {
  for (const table of root.querySelectorAll("table[data-sortable]")) {
    for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
      if (head.dataset.sort === undefined || head.querySelector("button")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortBy(table, column, head));
      button.addEventListener("focus", () => head.scrollIntoView({ block: "nearest", inline: "nearest" }));
    }
  }
}

function cellAt(row, column) {
  let at = 0;
  return [...row.cells].find((cell) => (at += cell.colSpan) > column);
}

function keyOf(row, column) {
  const cell = cellAt(row, column);
  const given = cell?.dataset.value ?? cell?.querySelector("time")?.dateTime ?? cell?.textContent.trim() ?? "";
  const number = Number(given.replaceAll("\u202f", ""));
  return given !== "" && !Number.isNaN(number) ? number : given.toLowerCase();
}

function sortBy(table, column, head) {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
  rows.sort(([a], [b]) => {
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return down ? -order : order;
  });
  body.append(...rows.map(([, row]) => row));
}

function sortAgain(table) {
  const heads = [...table.tHead.rows[0].cells];
  const place = heads.findIndex((head) => head.hasAttribute("aria-sort"));
  if (place < 0) return;
  const was = heads[place].getAttribute("aria-sort");
  heads[place].setAttribute("aria-sort", was === "ascending" ? "descending" : "ascending");
  sortBy(table, place, heads[place]);
}

// ------------------------------------------------ filtering long tables
const MANY = 20;

// A page with a search has no second filter: its list may be longer than the rows shown. Nor have tables that are only
// sorted (data-sortable="rows"): their CSV file would have all rows.
function isSearched() {
  return document.querySelector("form[role=search]") !== null;
}

function filterable(root) {
  if (isSearched()) return;
  for (const table of root.querySelectorAll("table[data-sortable]")) {
    if (table.tBodies[0].rows.length <= MANY || table.filter || table.dataset.sortable === "rows") continue;
    addFilter(table);
  }
}

function addFilter(table) {
  const label = document.createElement("label");
  const name = document.createElement("span");
  const field = document.createElement("input");
  const found = document.createElement("span");
  label.className = "field";
  name.textContent = "Filter rows";
  field.type = "search";
  field.maxLength = 200;
  found.className = "small soft";
  found.setAttribute("role", "status");
  label.append(name, field);
  const bar = document.createElement("div");
  bar.className = "row-filter";
  bar.append(label, found);
  (table.closest(".scroll") ?? table).before(bar);
  table.filter = { field, found };
  field.addEventListener("input", () => filterRows(table));
}

function plainText(text) {
  return text.replaceAll("\u202f", "").replaceAll("\u00a0", " ").toLowerCase();
}

function filterRows(table) {
  const { field, found } = table.filter;
  const words = plainText(field.value).split(/\s+/).filter(Boolean);
  const rows = [...table.tBodies[0].rows];
  for (const row of rows) row.hidden = !words.every((word) => plainText(row.textContent).includes(word));
  const shown = rows.filter((row) => !row.hidden).length;
  found.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
}

// ------------------------------------------------ selecting all rows of a page
function picking(root) {
  for (const all of root.querySelectorAll("input[data-pick-all]")) {
    const boxes = [...all.closest("table").querySelectorAll("td.pick input")];
    all.hidden = boxes.length === 0;
    const show = () => (all.checked = boxes.length > 0 && boxes.every((box) => box.checked));
    all.addEventListener("change", () => boxes.forEach((box) => (box.checked = all.checked)));
    for (const box of boxes) box.addEventListener("change", show);
    show();
  }
}

// ------------------------------------------------ live parts: fetched with the page, replaced if different
let fetching = null;

async function fetchPage(address) {
  fetching?.abort();
  fetching = new AbortController();
  const answer = await fetch(address, { headers: { "X-Console": "live" }, signal: fetching.signal });
  if (!answer.ok || answer.redirected) throw new Error(`status ${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function take(fresh) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (!other || part.contains(document.activeElement) && document.activeElement.matches("input:not([type=checkbox]), select, textarea")) continue;
    const open = new Set([...part.querySelectorAll("details[open]")].map(nameOf));
    const kept = [...part.querySelectorAll("table[id]")].map((t) => [t.id, [...t.tHead.rows[0].cells].map((c) => c.getAttribute("aria-sort")), t.filter?.field.value]);
    const edited = new Map(fieldsOf(part).filter(isEdited).map((field) => [fieldKey(field), [field.value, field.checked]]));
    const focus = document.activeElement && part.contains(document.activeElement) ? pathTo(part, document.activeElement) : null;
    const saved = other.matches("select") ? other.value : null; // moving options changes which one is selected
    part.replaceChildren(...other.childNodes);
    if (saved !== null) part.value = saved;
    for (const field of fieldsOf(part)) if (edited.has(fieldKey(field))) edit(field, ...edited.get(fieldKey(field)));
    for (const one of part.querySelectorAll("details")) if (open.has(nameOf(one))) one.open = true;
    picking(part);
    sortable(part);
    filterable(part);
    for (const [id, states, words] of kept) {
      const table = document.getElementById(id);
      if (!table) continue;
      if (table.dataset.sortable !== undefined) {  // others are sorted by the server
        states.forEach((state, place) => state && table.tHead.rows[0].cells[place]?.setAttribute("aria-sort", state));
        sortAgain(table);
      }
      if (!words) continue;
      if (!table.filter) addFilter(table);
      table.filter.field.value = words;
      filterRows(table);
    }
    if (focus) follow(part, focus)?.focus();
  }
  refreshTimes(document);
}

// A refresh keeps what a person has entered. Filters of rows have no name.
function fieldsOf(part) {
  return [part, ...part.querySelectorAll("*")].filter((one) => one.matches("input[name]:not([type=hidden], [type=file]), select[name], textarea[name]"));
}

function isEdited(field) {
  if (field.matches("select")) return !field.selectedOptions[0]?.defaultSelected;
  return isBox(field) ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}

function isBox(field) {
  return field.matches("[type=checkbox], [type=radio]");
}

function fieldKey(field) {
  return JSON.stringify([field.form?.getAttribute("action"), field.name, field.getAttribute("aria-label"), isBox(field) && field.value]);
}

function edit(field, value, checked) {
  if (isBox(field)) field.checked = checked;
  else if (!field.options || [...field.options].some((one) => one.value === value)) field.value = value;
}

function nameOf(details) {
  return details.id || details.querySelector("summary")?.textContent || "";
}

function pathTo(root, node) {
  const path = [];
  for (; node !== root; node = node.parentElement) path.unshift([...node.parentElement.children].indexOf(node));
  return path;
}

function follow(root, path) {
  return path.reduce((node, place) => node?.children[place], root);
}

function live() {
  const every = Number(page.dataset.every);
  if (!every || !document.querySelector("[data-live]")) return;
  const mark = document.getElementById("live-mark");
  if (mark) mark.className = "tag good"; // the page was fetched just now
  let failures = 0;
  const again = async () => {
    if (!document.hidden && !document.querySelector(".plot .wide")) { // not while a part of a chart is selected
      try {
        take(await fetchPage(location.href));
        failures = 0;
      } catch (error) {
        if (error.name !== "AbortError") failures += 1;
      }
      if (mark) mark.textContent = failures > 1 ? "not live: the server does not answer" : "live";
      if (mark) mark.className = failures > 1 ? "tag bad" : "tag good";
    }
    setTimeout(again, 1000 * every * Math.min(8, 1 + failures));
  };
  setTimeout(again, 1000 * every);
}

// ------------------------------------------------ filters that apply while typing
function filters() {
  for (const form of document.querySelectorAll("form[data-instant]")) {
    form.querySelector("button")?.classList.add("visually-hidden");
    let waiting = null;
    const send = async () => {
      const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
      const address = `${form.action.split("?")[0]}?${query}`;
      history.replaceState(null, "", address);
      try {
        take(await fetchPage(address));
      } catch (error) {
        if (error.name !== "AbortError") form.submit();
      }
    };
    form.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(send, 200);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
  }
}

// ------------------------------------------------ theme switch without a reload
function themes() {
  const form = document.getElementById("theme");
  form?.addEventListener("submit", async (event) => {
    const chosen = event.submitter?.value;
    if (!chosen) return;
    event.preventDefault();
    page.dataset.theme = chosen;
    for (const one of form.querySelectorAll("button")) one.setAttribute("aria-pressed", String(one.value === chosen));
    const body = new URLSearchParams(new FormData(form));
    body.set("theme", chosen);
    await fetch(form.action, { method: "POST", body });
  });
}

refreshTimes(document);
setInterval(() => refreshTimes(document), 5000);
picking(document);
sortable(document);
filterable(document);
filters();
themes();
document.querySelector(".side nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); // on a phone
live();
