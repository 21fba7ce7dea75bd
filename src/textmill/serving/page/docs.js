"use strict";
// Shows /openapi.json. Whatever it says is set as text, never as HTML.

const find = (id) => document.getElementById(id);

function nest(tag, className, children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

const details = (title, content) => nest("details", "", [nest("summary", "", [title]), nest("pre", "", [content])]);
const last = (path) => path.split("/").at(-1);

// A schema in a line: string, Row, list of Row, any of these.
function kind(schema) {
  if (schema.$ref) return last(schema.$ref);
  const any = schema.anyOf ?? schema.oneOf;
  if (any) return any.map(kind).join(" or ");
  if (schema.type === "array") return `list of ${kind(schema.items ?? {})}`;
  if (schema.additionalProperties?.type || schema.additionalProperties?.anyOf) return `object of ${kind(schema.additionalProperties)}`;
  const bounds = ["minimum", "maximum"].filter((name) => name in schema).map((name) => `${name} ${schema[name]}`);
  return [schema.title && schema.type === "object" ? schema.title : schema.type ?? "anything", ...bounds].join(", ");
}

function table(names, rows) {
  const line = (tag) => (cells) => nest("tr", "", cells.map((cell) => nest(tag, "", [cell ?? ""])));
  return nest("div", "scroll", [nest("table", "", [nest("thead", "", [line("th")(names)]), nest("tbody", "", rows.map(line("td")))])]);
}

function body(content) {
  return Object.entries(content).flatMap(([type, { schema = {} }]) => [
    nest("p", "", [nest("b", "", [type]), `: ${kind(schema)}`]),
    ...(schema.properties || schema.anyOf ? [details("Schema", JSON.stringify(schema, null, 2))] : []),
  ]);
}

function operation(path, method, told) {
  const parts = [nest("h2", "", [`${method.toUpperCase()} ${path}`])];
  if (told.parameters?.length) {
    const rows = told.parameters.map((each) => [each.name, kind(each.schema), each.description]);
    parts.push(nest("h3", "", ["In the query"]), table(["name", "value", "meaning"], rows));
  }
  if (told.requestBody) parts.push(nest("h3", "", ["Body"]), ...body(told.requestBody.content));
  const answers = Object.entries(told.responses).map(([status, { description, content }]) => {
    const types = Object.values(content ?? {}).map(({ schema }) => (schema ? kind(schema) : ""));
    return [status, types.join(" or "), description];
  });
  parts.push(nest("h3", "", ["Answers"]), table(["status", "type", "when"], answers));
  return nest("section", "answers operation", parts);
}

function type(name, schema) {
  const properties = Object.entries(schema.properties ?? {});
  const rows = properties.map(([field, told]) => [schema.required?.includes(field) ? field : `${field} (optional)`, kind(told), told.description]);
  const parts = [nest("h3", "", [name]), nest("p", "hint", [schema.description ?? ""]), table(["field", "type", "meaning"], rows)];
  return nest("section", "answers operation", parts);
}

async function learn() {
  const token = find("token").value.trim();
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch("openapi.json", { headers }).catch(() => Promise.reject(new Error("The server cannot be reached.")));
  const told = await response.json();
  find("token-field").hidden = response.status !== 401;
  find("problem").hidden = response.ok;
  find("problem").textContent = response.ok ? "" : told.error;
  if (!response.ok) return;
  document.title = find("name").textContent = `${told.info.title} · API`;
  find("about").textContent = told.info.description;
  const order = Object.entries(told.paths);
  find("paths").replaceChildren(...order.flatMap(([path, methods]) => Object.entries(methods).map(([method, each]) => operation(path, method, each))));
  find("types").append(...Object.entries(told.components?.schemas ?? {}).map(([name, schema]) => type(name, schema)));
  find("types").hidden = false;
}

const tell = (error) => {
  find("problem").hidden = false;
  find("problem").textContent = error.message;
};
find("token-field").addEventListener("submit", (event) => {
  event.preventDefault();
  learn().catch(tell);
});
learn().catch(tell);
