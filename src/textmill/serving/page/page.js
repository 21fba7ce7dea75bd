"use strict";
// Whatever is shown came from a person, a file or a model: all of it is set as text, never as HTML.

const MOST_BARS = 8;
const SHOWN_EXAMPLE = 120;
const MOST_NEAR = 50;
const ROWS_ASKED = 64;
const KINDS = 12;
const SHOWN_ROWS = 20;
const MOST_LABELS = 20;
const find = (id) => document.getElementById(id);
let columns = [];
let limits = {};
let searches = false;
let files = [];
let options = [];
let ownNames = {};
let asked = null;
let saved = null;

function made(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function nest(tag, className, children) {
  const node = made(tag, undefined, className);
  node.append(...children);
  return node;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// -- kinds of answers

function bars(pairs, written = percent) {
  const lines = [...pairs].sort((a, b) => b[1] - a[1]).map(([name, share], rank) => {
    const bar = made("span", undefined, "bar");
    bar.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
    const line = nest("li", rank ? "" : "best", [bar, made("span", name), made("span", written(share), "score")]);
    return line;
  });
  const shown = nest("ul", "bars", lines.slice(0, MOST_BARS));
  if (lines.length <= MOST_BARS) return [shown];
  const rest = nest("details", "", [made("summary", `${lines.length - MOST_BARS} more`), nest("ul", "bars", lines.slice(MOST_BARS))]);
  return [shown, rest];
}

const kinds = new Map();
function colour(kind) {
  if (!kinds.has(kind)) kinds.set(kind, kinds.size % KINDS);
  return `kind-${kinds.get(kind)}`;
}

// Places are counted in characters of Unicode, which a string of JavaScript is not made of.
function marked(text, spans) {
  const signs = Array.from(text);
  const parts = [];
  let at = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    parts.push(document.createTextNode(signs.slice(at, span.start).join("")));
    const mark = made("mark", signs.slice(span.start, span.end).join(""), span.kind ? colour(span.kind) : "");
    const told = [span.kind, span.page && `p. ${span.page}`].filter((part) => part).join(" · ");
    if (told) mark.append(made("small", told));
    if (span.score !== undefined) mark.title = percent(span.score);
    parts.push(mark);
    at = span.end;
  }
  parts.push(document.createTextNode(signs.slice(at).join("")));
  return nest("p", "text", parts);
}

const linesOf = (text) => text.split("\n").filter((line) => line.trim());

// Of a list of texts, which are lines here, each has a tag, or the last one has the slots.
function words(text, tags, scores, divided) {
  const found = divided ?? (linesOf(text).length === tags.length ? linesOf(text) : text.trim().split(/\s+/));
  return nest("ul", "words", tags.map((tag, n) => {
    const word = nest("li", "", [made("span", found[n] ?? ""), made("small", tag)]);
    word.title = percent(scores[n]);
    return word;
  }));
}

function holder(text, slots) {
  const signs = Array.from(text);
  const fits = slots.every((slot) => signs.slice(slot.start, slot.end).join("") === slot.text);
  return fits ? text : linesOf(text).at(-1);
}

// [IN:WAKE wake me [SL:TIME at seven ] ] as lists in lists; null for what is no such tree.
function tree(text) {
  const parts = text.trim().split(/\s+/);
  let at = 0;
  function node() {
    const name = parts[at++].slice(1);
    const children = [];
    let words = [];
    const flush = () => {
      if (words.length) children.push(made("li", words.join(" ")));
      words = [];
    };
    while (at < parts.length && parts[at] !== "]") {
      if (parts[at].length > 1 && parts[at].startsWith("[")) {
        flush();
        const child = node();
        if (child === null) return null;
        children.push(child);
      } else words.push(parts[at++]);
    }
    if (parts[at++] !== "]") return null;
    flush();
    return nest("li", "", [made("b", name), nest("ul", "", children)]);
  }
  if (!/^\[\S/.test(parts[0])) return null;
  const root = node();
  return root !== null && at === parts.length ? nest("ul", "tree", [root]) : null;
}

const TEXTS = [
  // A label, or several, of all that there are.
  (answer) => isObject(answer.scores) && [made("p", answer.prediction || "none of the labels", "first"), ...bars(Object.entries(answer.scores))],
  // An intent with its slots.
  (answer, row) => answer.predicted_slots && [
    made("p", answer.predicted_intent, "first"),
    made("p", percent(answer.score), "score"),
    marked(holder(row[columns[0]], answer.predicted_slots), answer.predicted_slots.map((slot) => ({ ...slot, kind: slot.label }))),
  ],
  // Words with a tag each, and what these mark.
  (answer, row) => Array.isArray(answer.scores) && [
    ...(answer.spans ? [marked(row[columns[0]], answer.spans)] : []),
    ...(answer.spans && !answer.spans.length ? [made("p", "Nothing is marked in it.", "hint")] : []),
    answer.spans
      ? nest("details", "", [made("summary", "Each word"), words(row[columns[0]], answer.prediction.split(" "), answer.scores, answer.tokens)])
      : words(row[columns[0]], answer.prediction.split(" "), answer.scores, answer.tokens),
  ],
  // A part of a text.
  (answer, row) => "start" in answer && answered(answer, row),
  // A text with its masks filled.
  (answer) => Array.isArray(answer.masks) && [
    made("p", answer.prediction, "first"),
    ...answer.masks.flatMap((fills, n) => [made("h3", `Mask ${n + 1}`), ...bars(fills.map((fill) => [fill.text, fill.score]))]),
  ],
  // A vector, with the texts whose own are nearest.
  (answer, row, near) => typeof answer.prediction?.[0] === "number" && [
    made("p", `${answer.prediction.length} numbers`, "first"),
    ...(near.length ? [made("h3", "Nearest texts, by the cosine"), ...bars(near, (cosine) => cosine.toFixed(3))] : []),
    ...(near.length ? [] : [made("p", "Give texts to search, and see which are nearest.", "hint")]),
  ],
  (answer) => typeof answer.prediction === "number" && [made("p", String(answer.prediction), "first")],
  // A text that was generated, such as a translation or a tree.
  (answer) => typeof answer.prediction === "string" && generated(answer),
];

// -- results of a pipeline

const joined = (parts) => parts.filter((part) => part).join(", ");

// Of several kinds each span has its name; its page, where it is not that of the whole result.
function result(found) {
  const whole = found.summary !== undefined || found.names !== undefined;
  const place = joined([found.label, !whole && found.page && `page ${found.page}`, found.line && `line ${found.line}`]);
  const parts = place ? [made("h3", place)] : [];
  if (found.error) return [...parts, made("p", found.error, "problem"), made("p", found.text, "text")];
  const spans = (found.spans ?? []).map((span) => ({
    ...span,
    kind: whole ? undefined : span.kind,
    page: whole || span.page !== found.page ? span.page : undefined,
  }));
  const text = marked(found.text, spans);
  if (found.language) parts.push(made("p", found.language, "first"), made("p", `${percent(found.score)} sure`, "score"));
  if (!whole) return [...parts, text, ...(found.fields ? [fields(found.fields)] : [])];
  if (found.summary !== undefined) parts.push(made("p", found.summary || "(an empty text)", "first"));
  if (found.names !== undefined) parts.push(names(found.names, found.spans));
  const inside = nest("details", "", [made("summary", "In the text"), text]);
  inside.open = spans.length > 0;
  return [...parts, ...(found.text ? [inside] : [])];
}

function names(counted, spans) {
  const lines = Object.entries(counted).map(([name, count]) => {
    const same = spans.filter((span) => span.text.trim().split(/\s+/).join(" ") === name);
    const pages = [...new Set(same.map((span) => span.page).filter((page) => page))];
    const place = pages.length ? `p. ${pages.join(", ")}` : "";
    return nest("li", "", [made("span", name), made("span", joined([count > 1 && `${count} times`, place]), "score")]);
  });
  return lines.length ? nest("ul", "bars", lines) : made("p", "Nothing is marked in it.", "hint");
}

function fields(named) {
  const lines = Object.entries(named).map(([name, value]) => nest("div", "", [made("dt", name, colour(name)), made("dd", value)]));
  return nest("details", "", [made("summary", "Fields"), nest("dl", "fields", lines)]);
}

function results(answer, name) {
  const found = answer.results;
  const count = found.length === 1 ? "1 result" : `${found.length} results`;
  const save = made("a", "Save as JSON", "save");
  const lines = found.map((one) => `${JSON.stringify(one)}\n`);
  if (saved) URL.revokeObjectURL(saved);
  save.href = saved = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
  save.download = `${name.replace(/\.[^.]*$/, "")}.jsonl`;
  const head = nest("p", "head", [made("span", found.length ? count : "Nothing was found in it."), ...(found.length ? [save] : [])]);
  return [head, nest("ol", "results", found.map((one) => nest("li", "", result(one))))];
}

function answered(answer, row) {
  if (answer.start === null) {
    return [made("p", "It has no answer.", "first"), made("p", `${percent(answer.score)} sure`, "score")];
  }
  const part = (text) => Array.from(text).slice(answer.start, answer.end).join("");
  const column = [...columns].reverse().find((name) => part(row[name]) === answer.prediction);
  const found = [made("p", answer.prediction, "first"), made("p", `${percent(answer.score)} sure`, "score")];
  return column === undefined ? found : [...found, marked(row[column], [{ start: answer.start, end: answer.end }])];
}

function generated(answer) {
  const drawn = tree(answer.prediction);
  const first = drawn ?? made("p", answer.prediction || "(an empty text)", "first");
  const others = answer.alternatives ?? answer.others ?? [];
  const score = answer.score === undefined ? [] : [made("p", `score ${answer.score.toFixed(3)}`, "score")];
  if (!others.length) return [first, ...score];
  const lines = others.map((other) => nest("li", "", [made("span", `${other.prediction} `), made("span", other.score.toFixed(3), "score")]));
  return [first, ...score, made("h3", "Alternatives"), nest("ol", "plain", lines)];
}

// -- why

// The words of a row by what they do to the answer, and those of most weight with what is left.
function reasons(answer, row) {
  const found = answer.reasons;
  const most = Math.max(...found.map((one) => Math.abs(one.weight)), 1e-9);
  const parts = [made("p", "Words that speak for the answer are blue, those against it orange.", "hint")];
  for (const name of columns.filter((column) => found.some((one) => one.column === column))) {
    const text = marked(row[name], found.filter((one) => one.column === name));
    [...text.querySelectorAll("mark")].forEach((mark, n) => {
      const one = found.filter((each) => each.column === name)[n];
      mark.className = one.weight >= 0 ? "for" : "against";
      mark.style.setProperty("--share", Math.round((100 * Math.abs(one.weight)) / most));
      mark.title = `${signed(one.weight)}; without it ${measure(answer, one.without)}`;
    });
    parts.push(text);
  }
  const lines = [...found].sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight)).slice(0, MOST_BARS);
  const items = lines.map((one) => {
    const bar = made("span", undefined, one.weight >= 0 ? "bar" : "bar against");
    bar.style.width = `${(100 * Math.abs(one.weight)) / most}%`;
    return nest("li", "", [bar, made("span", one.text), made("span", `${signed(one.weight)} · without it ${measure(answer, one.without)}`, "score")]);
  });
  return nest("div", "why", [...parts, nest("ul", "bars", items)]);
}

const signed = (weight) => `${weight >= 0 ? "+" : "−"}${Math.abs(weight).toFixed(2)}`;
const measure = (answer, value) => (typeof answer.prediction === "number" ? value.toPrecision(4) : percent(value));

function why(row) {
  const button = made("button", "Why?", "plain-button");
  button.type = "button";
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      button.replaceWith(reasons(await predict(row, asked?.signal, "?explain=true"), row));
      tell("");
    } catch (error) {
      if (!asked?.signal.aborted) tell(error.message);
      button.disabled = false;
    }
  });
  return button;
}

// -- a table

// The first rows of CSV as lists of cells; the last one may be cut.
function cellsOf(text, most) {
  const rows = [[""]];
  let quoted = false;
  for (let at = 0; at < text.length && rows.length <= most; at++) {
    const sign = text[at];
    const row = rows[rows.length - 1];
    if (quoted && sign === '"' && text[at + 1] === '"') row[row.length - 1] += text[++at];
    else if (sign === '"') quoted = !quoted;
    else if (sign === "," && !quoted) row.push("");
    else if (sign === "\n" && !quoted) rows.push([""]);
    else row[row.length - 1] += sign;
  }
  return rows.slice(0, -1);
}

function preview(head) {
  const [names, ...rows] = cellsOf(head, SHOWN_ROWS + 1);
  const own = names.lastIndexOf("prediction");
  const cell = (tag) => (text, n) => made(tag, text.length > SHOWN_EXAMPLE ? `${text.slice(0, SHOWN_EXAMPLE)}…` : text, n === own ? "own" : "");
  const lines = rows.map((row) => nest("tr", "", row.map(cell("td"))));
  const table = nest("table", "", [nest("thead", "", [nest("tr", "", names.map(cell("th")))]), nest("tbody", "", lines)]);
  const box = nest("div", "scroll", [table]);
  box.tabIndex = 0;
  return box;
}

// The answers come while they are computed; how many there are is told, the first ones are shown.
async function answerTable(file, signal) {
  if (file.size > limits.file) throw new Error(`${file.name} has ${file.size.toLocaleString("en")} bytes; at most ${limits.file.toLocaleString("en")} are read.`);
  const type = /\.(tsv|tab)$/i.test(file.name) ? "text/tab-separated-values" : "text/csv";
  find("answer").replaceChildren(made("p", `Reading ${file.name} …`, "hint"));
  const response = await reach("predict", { method: "POST", headers: { ...headers(), "Content-Type": type }, body: file, signal });
  if (!response.ok) await read(response);
  const parts = [];
  const decoder = new TextDecoder();
  let [head, bytes] = ["", 0];
  try {
    for (const reader = response.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      bytes += value.length;
      if (cellsOf(head, SHOWN_ROWS + 1).length <= SHOWN_ROWS) head += decoder.decode(value, { stream: true });
      find("answer").replaceChildren(made("p", `${bytes.toLocaleString("en")} bytes of answers so far …`, "hint"), preview(head));
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Error(`The answers broke off after ${bytes.toLocaleString("en")} bytes: the log of the server says why.`);
  }
  const save = made("a", "Save the answers as CSV", "save");
  if (saved) URL.revokeObjectURL(saved);
  save.href = saved = URL.createObjectURL(new Blob(parts, { type: "text/csv" }));
  save.download = `${file.name.replace(/\.[^.]*$/, "")}.answers.csv`;
  find("answer").replaceChildren(nest("p", "head", [made("span", `The first rows of ${file.name}, answered`), save]), preview(head));
}

// -- as a command

const quoted = (text) => `'${text.replace(/'/g, "'\\''")}'`;

function showCommand(type, body) {
  const token = find("token").value.trim() ? ` -H 'Authorization: Bearer '"$TOKEN"` : "";
  const how = type === "application/json" ? `--json ${quoted(body)}` : `-H 'Content-Type: ${type}' --data-binary @${quoted(body)}`;
  find("curl").textContent = `curl${token} ${how} ${new URL("predict", location.href)}`;
  find("command").hidden = false;
}

find("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(find("curl").textContent);
    find("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(find("curl"));
    find("copy").textContent = "Selected: press Ctrl + C";
  }
  setTimeout(() => (find("copy").textContent = "Copy"), 2000);
});

function show(answer, row, near, name) {
  let parts = files.length ? results(answer, name) : null;
  for (const text of TEXTS) parts = parts || text(answer, row, near);
  const whole = nest("details", "", [made("summary", "As JSON"), made("pre", JSON.stringify(answer, null, 2))]);
  whole.open = !parts;
  const more = options.includes("explain") && !files.length ? [why(row)] : [];
  find("answer").replaceChildren(...(parts || []), ...more, whole);
}

// -- asking

function headers() {
  const token = find("token").value.trim();
  return { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
}

async function read(response) {
  const content = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (response.status === 401) find("token-field").hidden = false;
  if (!response.ok) throw new Error(content.where ? `${content.error} (${content.where})` : content.error);
  return content;
}

function tell(problem) {
  find("problem").textContent = problem;
  find("problem").hidden = !problem;
}

const reach = (path, how) => fetch(path, how).catch(() => Promise.reject(new Error("The server cannot be reached.")));

async function predict(rows, signal, query = "") {
  const response = await reach(`predict${query}`, { method: "POST", headers: headers(), body: JSON.stringify(rows), signal });
  return read(response);
}

async function readFile(file, signal) {
  if (file.size > limits.file) throw new Error(`${file.name} has ${file.size.toLocaleString("en")} bytes; at most ${limits.file.toLocaleString("en")} are read.`);
  find("answer").replaceChildren(made("p", `Reading ${file.name} …`, "hint"));
  const type = { "Content-Type": "application/octet-stream" };
  return read(await reach("predict", { method: "POST", headers: { ...headers(), ...type }, body: file, signal }));
}

async function ask() {
  asked?.abort();
  const mine = (asked = new AbortController());
  const send = find("send");
  send.setAttribute("aria-busy", "true");
  try {
    if (!columns.length) await learn();
    const row = Object.fromEntries(columns.map((name, n) => [name, find(`column-${n}`).value]));
    const file = find("file")?.files[0];
    const table = find("table").files[0];
    find("command").hidden = true;
    if (table) {
      await answerTable(table, mine.signal);
      showCommand(/\.(tsv|tab)$/i.test(table.name) ? "text/tab-separated-values" : "text/csv", table.name);
      tell("");
      return;
    }
    const answer = await (file ? readFile(file, mine.signal) : predict(row, mine.signal));
    const near = searches ? await nearest(answer.prediction, mine.signal) : [];
    tell("");
    show(answer, row, near, file?.name ?? "answer");
    showCommand(...(file ? ["application/octet-stream", file.name] : ["application/json", JSON.stringify(row)]));
  } catch (error) {
    if (mine.signal.aborted) return;
    find("answer").replaceChildren();
    tell(error.message);
  } finally {
    if (asked === mine) send.removeAttribute("aria-busy");
  }
}

// -- the texts nearest to a vector

const vectors = new Map();
const size = (text) => new TextEncoder().encode(text).length;

function cosine(a, b) {
  let [both, one, two] = [0, 0, 0];
  a.forEach((x, n) => {
    both += x * b[n];
    one += x * x;
    two += b[n] * b[n];
  });
  return both / Math.sqrt(one * two || 1);
}

// Each text is asked for once, some together, as the server's limits allow.
async function learnVectors(texts, signal) {
  const unknown = texts.filter((text) => !vectors.has(text)).map((text) => ({ [columns[0]]: text }));
  let at = 0;
  while (at < unknown.length) {
    const rows = [];
    let bytes = 2;
    while (at + rows.length < unknown.length && rows.length < Math.min(limits.items, ROWS_ASKED)) {
      bytes += size(JSON.stringify(unknown[at + rows.length])) + 1;
      if (rows.length && bytes > limits.body) break;
      rows.push(unknown[at + rows.length]);
    }
    find("answer").replaceChildren(made("p", `Reading the texts to search, ${at} of ${unknown.length} …`, "hint"));
    const answers = await predict(rows, signal);
    rows.forEach((row, n) => vectors.set(row[columns[0]], answers[n].prediction));
    at += rows.length;
  }
}

async function nearest(vector, signal) {
  const lines = find("texts").value.split("\n").map((line) => line.trim());
  const texts = [...new Set(lines.filter((line) => line))];
  await learnVectors(texts, signal);
  const found = texts.map((text) => [text, cosine(vector, vectors.get(text))]);
  return found.sort((a, b) => b[1] - a[1]).slice(0, MOST_NEAR);
}

function search() {
  const label = made("label", "Texts to search, one a line");
  const text = made("textarea");
  label.htmlFor = text.id = "texts";
  text.rows = 5;
  const other = made("label", "or those of a file");
  const file = made("input");
  file.type = "file";
  other.htmlFor = file.id = "texts-file";
  file.addEventListener("change", async () => {
    if (file.files.length) text.value = await file.files[0].text();
  });
  return nest("div", "field", [label, text, other, file]);
}

// -- what the model reads

function field(name, number) {
  const id = `column-${number}`;
  const label = made("label", ownNames[name] ?? name);
  const text = made("textarea");
  label.htmlFor = text.id = id;
  text.rows = columns.length > 1 && number === 0 ? 2 : 5;
  return nest("div", "field", [label, text]);
}

// A file is asked about at once; whoever types again asks about the text.
function fileField() {
  const label = made("label", `or a file: ${files.join(", ")}`);
  const file = made("input");
  file.type = "file";
  file.accept = files.join(",");
  label.htmlFor = file.id = "file";
  file.addEventListener("change", () => file.files.length && ask());
  find("column-0").addEventListener("input", () => (file.value = ""));
  return nest("div", "field", [label, file]);
}

// A table is asked about at once, wherever on the page it is dropped; whoever types asks about the text.
function takeTables() {
  const field = find("table");
  find("table-field").hidden = false;
  field.addEventListener("change", () => field.files.length && ask());
  columns.forEach((_, n) => find(`column-${n}`).addEventListener("input", () => (field.value = "")));
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? document.body.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    field.files = event.dataTransfer.files;
    ask();
  });
}

function showCard(card) {
  const count = (number) => number.toLocaleString("en");
  const rows = Object.entries(card.data?.rows ?? {}).map(([name, number]) => joined([`${name.replace("_data", "")}: ${count(number)} rows`, card.data.files[name]]));
  const { name, value, interval } = card.metric ?? {};
  const share = (part) => (interval ? percent(part) : part.toPrecision(4));
  const some = card.labels?.slice(0, MOST_LABELS).join(", ");
  const more = card.labels?.length > MOST_LABELS ? ` and ${count(card.labels.length - MOST_LABELS)} more` : "";
  const facts = {
    Recipe: card.recipe,
    Labels: card.labels && `${some}${more}`,
    Data: rows.join("; "),
    Quality: typeof value === "number" && `${name} ${share(value)}${interval ? ` (95 % interval ${share(interval[0])} to ${share(interval[1])})` : ""}, on the validation data`,
    Trained: card.trained,
  };
  const lines = Object.entries(facts).filter(([, text]) => text).map(([fact, text]) => nest("div", "", [made("dt", fact), made("dd", text)]));
  find("card-list").replaceChildren(...lines);
  find("card").hidden = !lines.length;
}

function example(row) {
  const text = columns.map((name) => row[name]).map((cell) => (Array.isArray(cell) ? cell.join(cell.some((part) => /\s/.test(part)) ? "\n" : " ") : String(cell)));
  const whole = text.join(" — ");
  const button = made("button", whole.length > SHOWN_EXAMPLE ? `${whole.slice(0, SHOWN_EXAMPLE)}…` : whole);
  button.type = "button";
  button.addEventListener("click", () => {
    columns.forEach((_, n) => (find(`column-${n}`).value = text[n]));
    if (files.length) find("file").value = "";
    find("table").value = "";
    ask();
    find("question").scrollIntoView({ block: "nearest" });
  });
  return nest("li", "", [button]);
}

async function learn() {
  const model = await read(await reach("model", { headers: headers() }));
  [columns, limits, searches, files] = [model.columns, model.limits, model.vectors, model.files];
  options = model.options;
  ownNames = Object.fromEntries(Object.entries(model.own_names).map(([own, name]) => [name, own]));
  document.title = `${model.name} · textmill`;
  find("name").textContent = model.name;
  find("fields").replaceChildren(...columns.map(field), ...(searches ? [search()] : []));
  if (files.length) find("fields").append(fileField());
  if (model.tables) takeTables();
  showCard(model.card);
  find("examples-list").replaceChildren(...model.examples.map(example));
  find("examples").hidden = !model.examples.length;
  tell("");
  find("column-0").focus();
}

find("question").addEventListener("submit", (event) => {
  event.preventDefault();
  // Where a token was missing, what the model reads is learnt first, and asked then.
  if (columns.length) ask();
  else learn().catch((error) => tell(error.message));
});
find("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("question").requestSubmit();
});
learn().catch((error) => tell(error.message));
