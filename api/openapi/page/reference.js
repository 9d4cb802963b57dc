"use strict";
// The reference page: it reads /openapi.json and shows it. Texts of the document
// go in as text nodes only.

const $ = (id) => document.getElementById(id);

// el makes an element. Attributes with null are left out; children may be texts.
function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) if (v !== null && v !== undefined) e.setAttribute(k, v);
  e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== ""));
  return e;
}

// prose is a text in which `code` stands in backticks.
function prose(text) {
  return String(text || "").split("`").map((part, i) => (i % 2 ? el("code", null, part) : part));
}

let doc;

function resolve(s) {
  const seen = [];
  while (s && s.$ref) {
    const name = s.$ref.split("/").pop();
    seen.push(name);
    s = doc.components.schemas[name];
  }
  return { schema: s || {}, name: seen[0] || "" };
}

// unwrap takes null off a schema that may be null.
function unwrap(s) {
  if (s.oneOf && s.oneOf.length === 2 && s.oneOf[1].type === "null") {
    return { schema: s.oneOf[0], nullable: true };
  }
  return { schema: s, nullable: Array.isArray(s.type) && s.type.includes("null") };
}

function typeName(raw) {
  const u = unwrap(raw);
  const { schema: s, name } = resolve(u.schema);
  let t;
  if (s.oneOf) t = name || s.oneOf.map(typeName).join(" or ");
  else if (s.type === "array" || (Array.isArray(s.type) && s.type.includes("array"))) t = "array of " + (s.items ? typeName(s.items) : "anything");
  else if (s.enum && s.enum.length === 1) t = JSON.stringify(s.enum[0]);
  else if (name) t = name;
  else if (Array.isArray(s.type)) t = s.type.filter((x) => x !== "null").join(" or ");
  else t = s.type || "anything";
  if (s.format === "date-time") t = "time";
  return t + (u.nullable ? " or null" : "");
}

function bounds(s) {
  const out = [];
  if (s.enum && s.enum.length > 1) out.push("one of " + s.enum.map((v) => (typeof v === "string" ? v : JSON.stringify(v))).join(", "));
  if (s.minimum !== undefined && s.maximum !== undefined) out.push(`from ${s.minimum} to ${s.maximum}`);
  else if (s.minimum !== undefined && s.minimum !== 0) out.push(`at least ${s.minimum}`);
  else if (s.maximum !== undefined) out.push(`${s.exclusiveMinimum !== undefined ? "above " + s.exclusiveMinimum + ", " : ""}at most ${s.maximum}`);
  if (s.minItems !== undefined && s.maxItems !== undefined) out.push(`${s.minItems} to ${s.maxItems} entries`);
  else if (s.maxItems !== undefined) out.push(`at most ${s.maxItems} entries`);
  if (s.pattern) out.push(`pattern ${s.pattern}`);
  if (s.default !== undefined) out.push("default " + JSON.stringify(s.default));
  return out.join("; ");
}

// inner shows the fields within a schema, if there are any. What stands inside
// itself is named and not opened again.
function inner(raw, open) {
  const u = unwrap(raw);
  const { schema: s, name } = resolve(u.schema);
  if (name && open.includes(name)) return null;
  const within = name ? open.concat(name) : open;
  if (s.oneOf && s.oneOf.some((c) => inner(c, within))) {
    return el("ul", { class: "fields" }, s.oneOf.map((c) => {
      const r = resolve(c);
      const deeper = inner(c, within);
      return el("li", null, el("span", { class: "name" }, r.name || typeName(c)),
        r.schema.description ? el("span", { class: "about" }, prose(r.schema.description)) : null,
        deeper ? fold("Fields", deeper) : null);
    }));
  }
  if (s.items) return inner(s.items, within);
  if (s.properties) return fieldList(s, within);
  if (s.additionalProperties && typeof s.additionalProperties === "object") return inner(s.additionalProperties, within);
  return null;
}

// fold is closed until it is asked for.
function fold(title, content) {
  return el("details", null, el("summary", null, title), content);
}

function fieldList(s, open) {
  const required = s.required || [];
  return el("ul", { class: "fields" }, Object.entries(s.properties).map(([name, p]) => fieldItem(name, p, required.includes(name), open)));
}

function fieldItem(name, p, required, open) {
  const u = unwrap(p);
  const { schema: s } = resolve(u.schema);
  const about = p.description || u.schema.description || s.description || "";
  const limits = bounds(s);
  const item = el("li", null, el("span", { class: "name" }, name), el("span", { class: "type" }, typeName(p)),
    required ? el("span", { class: "required" }, "required") : null,
    about ? el("span", { class: "about" }, prose(about)) : null,
    limits ? el("span", { class: "bounds" }, limits) : null);
  const deeper = inner(p, open);
  if (deeper) item.append(fold("Fields of " + name, deeper));
  return item;
}

// json shows a value in colours.
function json(value) {
  const code = el("code");
  const text = JSON.stringify(value, null, 2);
  const token = /("(?:\\.|[^"\\])*")(\s*:)?|\b(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)\b/g;
  let at = 0;
  for (const m of text.matchAll(token)) {
    code.append(text.slice(at, m.index));
    if (m[1]) {
      code.append(el("span", { class: m[2] ? "key" : "str" }, m[1]), m[2] || "");
    } else code.append(el("span", { class: "num" }, m[3]));
    at = m.index + m[0].length;
  }
  code.append(text.slice(at));
  return el("pre", { tabindex: "0" }, code);
}

function pathText(path) {
  return path.split(/(\{[^}]+\})/).map((p) => (p.startsWith("{") ? el("i", null, p) : p));
}

// curl is the request as a command line.
function curl(o) {
  const lines = [`curl${o.method === "GET" ? "" : " -X " + o.method} ${location.origin}${o.path}`];
  const schemes = o.op.security.flatMap((x) => Object.keys(x));
  for (const s of schemes) {
    if (s === "apiKey") lines.push("-H 'Authorization: Bearer svc_live_…'");
    if (s === "session") lines.push("-H 'Authorization: Bearer ses_…'");
    if (s === "appID") lines.push("-H 'X-App-Id: app_…'");
    if (s === "appSecret") lines.push("-H 'X-App-Secret: sk_live_…'");
  }
  const media = o.op.requestBody && o.op.requestBody.content["application/json"];
  if (media) lines.push("-H 'Content-Type: application/json'", "-d '" + JSON.stringify(media.example).replaceAll("'", "'\\''") + "'");
  return el("pre", { tabindex: "0" }, el("code", null, lines.join(" \\\n  ")));
}

const permissions = { none: "open to all", "signed-in": "signed in", "system-admin": "system administrator", "app-secret": "App Secret", "any-key": "any API key" };

// details makes the inside of an operation.
function details(o) {
  const left = el("div");
  const right = el("div");
  if (o.op.description) left.append(el("p", null, prose(o.op.description)));
  left.append(el("p", { class: "meta" }, "Permission: ", el("code", null, permissions[o.op["x-permission"]] || o.op["x-permission"])));
  for (const [where, title] of [["path", "In the path"], ["query", "Query"], ["header", "Headers"]]) {
    const list = (o.op.parameters || []).filter((p) => p.in === where);
    if (list.length) {
      left.append(el("h5", null, title), el("ul", { class: "fields" }, list.map((p) =>
        fieldItem(p.name, p.description ? { ...p.schema, description: p.description } : p.schema, p.required, []))));
    }
  }
  if (o.op.requestBody) {
    for (const [media, c] of Object.entries(o.op.requestBody.content)) {
      left.append(el("h5", null, "Request" + (o.op.requestBody.required ? "" : " (may be left out)") + (media === "application/json" ? "" : ", " + media)));
      const r = resolve(c.schema);
      if (r.schema.description) left.append(el("p", null, prose(r.schema.description)));
      left.append(inner(c.schema, []) || el("p", { class: "meta" }, typeName(c.schema)));
      if (c.example !== undefined) right.append(el("h5", null, "Request"), json(c.example));
    }
  }
  left.append(el("h5", null, "Answers"));
  for (const [status, maybe] of Object.entries(o.op.responses)) {
    const r = maybe.$ref ? doc.components.responses[maybe.$ref.split("/").pop()] : maybe;
    const inside = el("div");
    for (const h of Object.entries(r.headers || {})) inside.append(el("p", { class: "meta" }, "Header ", el("code", null, h[0]), ": ", prose(h[1].description)));
    for (const [media, c] of Object.entries(r.content || {})) {
      if (media !== "application/json") inside.append(el("p", { class: "meta" }, media));
      if (typeof c.example === "string") inside.append(el("pre", { tabindex: "0" }, el("code", null, c.example)));
      const fields = c.schema && inner(c.schema, []);
      if (fields) inside.append(fields);
      const examples = Object.entries(c.examples || {});
      if (Number(status) < 300) {
        for (const [name, x] of examples) right.append(el("h5", null, "Answer " + status + (examples.length > 1 ? ", " + name.replace(/\d$/, "") : "")), json(x.value));
      } else for (const [, x] of examples) inside.append(json(x.value));
    }
    left.append(el("details", { class: "answer" }, el("summary", null, el("b", { class: Number(status) < 400 ? "ok" : "bad" }, status), prose(r.description)), inside));
  }
  right.append(el("h5", null, "Command line"), curl(o));
  return el("div", { class: "body" }, left, right);
}

const operations = [];

// words is all that a search looks through.
function words(o) {
  const fields = [];
  const dig = (s, depth) => {
    const r = resolve(unwrap(s).schema).schema;
    if (depth > 4) return;
    for (const [k, v] of Object.entries(r.properties || {})) { fields.push(k); dig(v, depth + 1); }
    if (r.items) dig(r.items, depth + 1);
    for (const c of r.oneOf || []) dig(c, depth + 1);
  };
  const answer = o.op.responses[200] || o.op.responses[202];
  for (const x of [o.op.requestBody, answer]) {
    for (const media of Object.values((x && x.content) || {})) if (media.schema) dig(media.schema, 0);
  }
  const parameters = (o.op.parameters || []).map((p) => p.name);
  return [o.method, o.path, o.op.summary, o.op.description, o.op.operationId, o.op["x-permission"], o.tag, o.surface, ...fields, ...parameters].join(" ").toLowerCase();
}

function show(o) {
  if (!o.made) {
    o.made = true;
    o.details.append(details(o));
  }
}

function build() {
  const main = $("content");
  const nav = $("nav");
  main.replaceChildren(el("h1", null, doc.info.title + " API"), el("p", { class: "lead" }, doc.info.summary), el("p", { class: "lead" }, prose(doc.info.description)));
  const byTag = {};
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const method of ["get", "post", "put", "patch", "delete"]) {
      if (item[method]) (byTag[item[method].tags[0]] ||= []).push({ path, method: method.toUpperCase(), op: item[method] });
    }
  }
  const tags = Object.fromEntries(doc.tags.map((t) => [t.name, t]));
  for (const s of doc["x-tagGroups"]) {
    const section = el("section", { class: "surface", "aria-label": s.name }, el("h2", null, s.name), el("p", { class: "lead" }, prose(s.description)));
    const heading = el("h2", null, s.name);
    nav.append(heading);
    for (const name of s.tags) {
      const part = el("section", { class: "tag" }, el("h3", null, tags[name]["x-display-name"]), el("p", { class: "lead" }, prose(tags[name].description)));
      const list = el("ul");
      for (const o of byTag[name] || []) {
        o.tag = name;
        o.surface = s.name;
        o.id = o.op.operationId;
        const verb = () => el("span", { class: "verb " + o.method.toLowerCase() }, o.method);
        o.details = el("details", { id: o.id }, el("summary", null, el("h4", null, verb(), el("span", { class: "path" }, pathText(o.path)), el("span", { class: "what" }, o.op.summary)),
          el("span", { class: "permission" }, permissions[o.op["x-permission"]] || o.op["x-permission"])));
        o.details.addEventListener("toggle", () => o.details.open && show(o));
        o.article = el("article", null, o.details);
        o.link = el("a", { href: "#" + o.id }, verb(), el("span", null, o.op.summary));
        o.entry = el("li", null, o.link);
        o.words = words(o);
        o.part = part;
        o.section = section;
        o.heading = heading;
        part.append(o.article);
        list.append(o.entry);
        operations.push(o);
      }
      const group = el("details", { class: "group" }, el("summary", null, tags[name]["x-display-name"]), list);
      for (const o of byTag[name] || []) o.group = group;
      nav.append(group);
      section.append(part);
    }
    main.append(section);
  }
  main.append(el("p", { class: "nothing", hidden: "" }, "Nothing fits the search."));
}

function search() {
  const terms = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  const keep = new Set();
  for (const o of operations) {
    const fits = terms.every((t) => o.words.includes(t));
    o.article.hidden = o.entry.hidden = !fits;
    if (fits) {
      found++;
      keep.add(o.part).add(o.section).add(o.group).add(o.heading);
    }
  }
  for (const o of operations) {
    for (const e of [o.part, o.section, o.group, o.heading]) e.hidden = !keep.has(e);
    o.group.open = terms.length > 0 && keep.has(o.group);
  }
  document.querySelector(".nothing").hidden = found > 0;
  $("found").textContent = terms.length ? `${found} operations` : "";
}

// follow opens the operation that the address names.
function follow() {
  const o = operations.find((x) => "#" + x.id === location.hash);
  for (const x of operations) x.link.removeAttribute("aria-current");
  if (!o) return;
  if (o.article.hidden) {
    $("search").value = "";
    search();
  }
  show(o);
  o.details.open = true;
  o.group.open = true;
  o.link.setAttribute("aria-current", "true");
  menu(false);
  o.details.scrollIntoView();
  o.details.querySelector("summary").focus({ preventScroll: true });
}

function menu(open) {
  $("nav").classList.toggle("open", open);
  $("menu").setAttribute("aria-expanded", String(open));
}

async function start() {
  try {
    const answer = await fetch("/openapi.json");
    if (!answer.ok) throw new Error("HTTP " + answer.status);
    doc = await answer.json();
  } catch (e) {
    $("content").replaceChildren(el("p", null, "The description could not be loaded: " + e.message + ". Load the page again in a moment."));
    return;
  }
  build();
  $("search").addEventListener("input", search);
  $("menu").addEventListener("click", () => menu(!$("nav").classList.contains("open")));
  addEventListener("hashchange", follow);
  addEventListener("keydown", (e) => {
    if (e.key === "/" && document.activeElement.tagName !== "INPUT") {
      e.preventDefault();
      $("search").focus();
    } else if (e.key === "Escape") menu(false);
  });
  follow();
}

start();
