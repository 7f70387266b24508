"use strict";
// Makes a form for each operation in openapi.json, and sends it with the token entered on this page.

const root = new URL(".", document.baseURI);
const named = (id) => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function spoken(text) {
  return text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
}

function resolved(document_, schema) {
  return schema && schema.$ref ? document_.components.schemas[schema.$ref.split("/").pop()] : schema;
}

function example(document_, given, depth = 0) {
  const schema = resolved(document_, given);
  if (!schema || depth > 4) return null;
  if ("default" in schema && schema.default !== null) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return "default" in schema ? schema.default : example(document_, schema.anyOf[0], depth + 1);
  if (schema.type === "object" || schema.properties) {
    return Object.fromEntries(
      Object.entries(schema.properties || {}).map(([key, of]) => [key, example(document_, of, depth + 1)]),
    );
  }
  if (schema.type === "array") return [];
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 1;
  if (schema.type === "boolean") return false;
  return schema.type === "string" ? "" : null;
}

function field(parameter, id) {
  const input = element("input", { id, name: parameter.name, required: Boolean(parameter.required) });
  if ("default" in parameter.schema && parameter.schema.default !== null) input.placeholder = parameter.schema.default;
  const label = element("label", { htmlFor: id }, parameter.name + (parameter.required ? " (needed)" : ""));
  const parts = [label, input];
  if (parameter.description) {
    const help = element("span", { id: `${id}-help`, className: "meaning" }, ...spoken(parameter.description));
    input.setAttribute("aria-describedby", help.id);
    parts.push(help);
  }
  return parts;
}

function bodyField(document_, operation, id) {
  const content = operation.requestBody && operation.requestBody.content;
  if (!content) return [];
  if (content["application/octet-stream"]) {
    return [element("label", { htmlFor: id }, "File"), element("input", { id, name: "body", type: "file" })];
  }
  const text = element("textarea", { id, name: "body", spellcheck: false });
  text.value = JSON.stringify(example(document_, content["application/json"].schema), null, 2);
  return [element("label", { htmlFor: id }, "Body (JSON)"), text];
}

function address(path, operation, form) {
  const query = new URLSearchParams();
  let filled = path;
  for (const parameter of operation.parameters || []) {
    const value = form.elements[parameter.name].value;
    if (parameter.in === "path") filled = filled.replace(`{${parameter.name}}`, encodeURIComponent(value));
    else if (parameter.in === "query" && value !== "") query.set(parameter.name, value);
  }
  const asked = query.toString();
  return new URL(filled.slice(1) + (asked ? `?${asked}` : ""), root);
}

async function show(response, output) {
  const status = element("p", { className: `status ${response.ok ? "good" : "bad"}` });
  status.textContent = `${response.status} ${response.statusText}`;
  const shown = element("pre", { tabIndex: 0 });
  output.replaceChildren(status, shown);
  if ((response.headers.get("Content-Type") || "").startsWith("text/event-stream")) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      shown.textContent = (shown.textContent + part.value).slice(-20000);
    }
    return;
  }
  const text = await response.text();
  try {
    shown.textContent = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    shown.textContent = text;
  }
}

function operationForm(document_, path, method, operation, number) {
  const output = element("div");
  output.setAttribute("role", "status");
  const form = element("form");
  let running = null;
  (operation.parameters || []).forEach((one, index) => form.append(...field(one, `field-${number}-${index}`)));
  form.append(...bodyField(document_, operation, `body-${number}`), element("button", { type: "submit" }, "Send"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) running.abort();
    running = new AbortController();
    const headers = {};
    if (named("token").value) headers.Authorization = `Bearer ${named("token").value.trim()}`;
    for (const one of operation.parameters || []) {
      if (one.in === "header" && form.elements[one.name].value) headers[one.name] = form.elements[one.name].value;
    }
    const body = form.elements.body;
    const options = { method: method.toUpperCase(), headers, signal: running.signal };
    if (body) options.body = body.type === "file" ? body.files[0] : body.value;
    try {
      await show(await fetch(address(path, operation, form), options), output);
    } catch (error) {
      if (error.name !== "AbortError") output.textContent = `Not sent: ${error.message}`;
    }
  });
  const summary = element("summary", {}, element("span", { className: "method" }, method.toUpperCase()));
  summary.append(element("code", {}, path), element("span", { className: "said" }, ...spoken(operation.summary)));
  const box = element("details", {}, summary);
  box.dataset.text = `${method} ${path} ${operation.summary}`.toLowerCase();
  box.append(element("div", { className: "inside" }, element("p", { className: "meaning" }, ...spoken(operation.description))));
  box.lastChild.append(form, output);
  return box;
}

function fill(document_) {
  named("title").textContent = document_.info.title;
  named("about").replaceChildren(...spoken(document_.info.description));
  let number = 0;
  for (const { name } of document_.tags) {
    const section = element("section", {}, element("h2", {}, name));
    for (const [path, methods] of Object.entries(document_.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        if (operation.tags.includes(name)) {
          section.append(operationForm(document_, path, method, operation, (number += 1)));
        }
      }
    }
    named("operations").append(section);
  }
}

named("access").addEventListener("submit", (event) => event.preventDefault());
named("filter").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const box of document.querySelectorAll("details")) box.hidden = !box.dataset.text.includes(wanted);
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.querySelector("details:not([hidden])");
  }
});
fetch(new URL("openapi.json", root))
  .then((response) => response.json())
  .then(fill)
  .catch((error) => { named("about").textContent = `openapi.json could not be read: ${error.message}`; });
