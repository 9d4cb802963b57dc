// Goes through the README's five minutes with the types that openapi-typescript
// makes of /openapi.json, and openapi-fetch. It reads the file of credentials that
// its argument names and prints a line for each step; tour.txt in the folder above
// has the lines that are right.
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

const credentials = JSON.parse(readFileSync(process.argv[2]!, "utf8"));
const baseUrl = credentials.base_url.replace(/\/api\/v1$/, "");
const client = (headers: Record<string, string>) => createClient<paths>({ baseUrl, headers });
const events = client({ "X-App-Id": credentials.app_id, "X-App-Secret": credentials.app_secret });
const keyed = client({ Authorization: `Bearer ${credentials.api_key}` });

// print writes values as the other languages' tours do.
const print = (step: string, ...values: unknown[]) => console.log(`${step}:`, values.map(String).join(" "));

// ok is the answer of a call that answers errors with their own statuses.
async function ok<T>(call: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const { data, error } = await call;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

// success is the data of a call of the key, which answers failures with 200, too.
type Success<A> = Extract<A, { status: "success"; data: unknown }>;
async function success<A extends { status: string; message: string }>(call: Promise<{ data?: A; error?: unknown }>): Promise<Success<A>["data"]> {
  const answer = await ok(call);
  if (answer.status !== "success") throw new Error(answer.message);
  return (answer as Success<A>).data;
}

// eventually asks until there is a value.
async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((r) => setTimeout(r, 50))) {
    const value = await ask();
    if (value !== undefined) return value;
  }
  throw new Error("it did not come about within a minute");
}

const session = await ok(client({}).POST("/console/api/v1/session", { body: { email: credentials.console_email, password: credentials.console_password } }));
const consoleAPI = client({ Authorization: `Bearer ${session.data.token}` });
print("signed in", session.data.email === credentials.console_email);

// Events.
const signup: Schemas["Event"] = { event_type: "signed_up", idempotency_key: "signup-42", user: { external_id: "42", first_name: "Ada" } };
const record = (body: Schemas["Event"]) => ok(events.POST("/api/v1/events", { body }));
const first = await record(signup);
print("event", first.success, first.error === null);
const batch = await ok(events.POST("/api/v1/events/batch", { body: { events: [
  { event_type: "item_purchased", user: { external_id: "42", email: "Ada@Example.com", geo: { country: "DE" } }, properties: { value: 79.9 } },
  { event_type: "item_purchased", user: { email: "ada@example.com", attributes: { plan: "pro" } }, properties: { value: 30.1 } },
  { event_type: "Page Viewed", user: { email: "bob@example.com" } },
  { event_type: "page_viewed", user: { email: "bob@example.com" } },
] } }));
print("batch", batch.success, batch.accepted, "of", batch.total);
print("same person", batch.results.slice(0, 2).every((r) => r.profile_id === first.profile_id));
print("bad event", batch.results[2]!.success, batch.results[2]!.error!.startsWith("event_type must be"));
const again = await record(signup);
print("retry", again.success, again.profile_id === first.profile_id);

// Segments.
const spent100: Schemas["ActivityCondition"] = { kind: "activity", event: "item_purchased", aggregate: { fn: "sum", property: "value", op: ">=", value: 100 } };
const preview = (definition: Schemas["SegmentDefinition"]) => consoleAPI.POST("/console/api/v1/segments/preview", { body: { definition } });
const both = (await ok(preview({ match: "all", conditions: [
  { ...spent100, window: { last_days: 30 } },
  { kind: "attribute", field: "geo.country", op: "=", value: "DE" },
] }))).data;
const who = both.sample[0]!.identities;
print("preview", both.count, who.email[0], who.external_id[0], who.phone.length);
const save = async (name: string, definition: Schemas["SegmentDefinition"]) =>
  (await ok(consoleAPI.POST("/console/api/v1/segments", { body: { name, definition } }))).data._id;
const never = await save("Never bought", { kind: "activity", event: "item_purchased", did: false });
const show = async () => {
  const s = (await ok(consoleAPI.GET("/console/api/v1/segments/{id}", { params: { path: { id: never } } }))).data;
  const back = s.definition as Schemas["ActivityCondition"];
  print("segment", s.name, s.count, back.event, back.did);
};
await show();
// Transitions begin when the segment is live.
await eventually(async () => (await ok(consoleAPI.GET("/console/api/v1/segments/{id}", { params: { path: { id: never } } }))).data.status === "live" || undefined);
await record({ event_type: "item_purchased", user: { email: "bob@example.com" }, properties: { value: 5 } });
await show();

// The stream of transitions, up to the second one.
const stop = new AbortController();
const stream = await ok(consoleAPI.GET("/console/api/v1/segments/{id}/transitions", {
  params: { path: { id: never }, query: { after: "0-0" } }, parseAs: "stream", signal: stop.signal,
}));
const reader = stream!.pipeThrough(new TextDecoderStream()).getReader();
let text = "";
let seen: string[] = [];
while (seen.length < 2) {
  const { value, done } = await reader.read();
  if (done) break;
  text += value;
  seen = [...text.matchAll(/^event: (\w+)\n/gm)].map((m) => m[1]!);
}
await reader.cancel();
stop.abort();
print("transitions", seen.join(", "));

const wrong = await preview({ kind: "activity", event: "page_viewed", window: { last_days: 0 } });
print("refused", wrong.response.status, wrong.error!.message);

// A profile and its timeline.
const ada = (await ok(consoleAPI.GET("/console/api/v1/profiles", { params: { query: { email: "ada@example.com" } } }))).data;
print("profile", ada.first_name, ada.geo["country"], ada.attributes["plan"]);
const timeline = await ok(consoleAPI.GET("/console/api/v1/profiles/{id}/events", { params: { path: { id: ada.profile_id }, query: { limit: 2 } } }));
for (const e of timeline.data.events) print("timeline", e.event_type, e.properties["value"], e.idempotency_key === null);

// A campaign.
const list = (await success(keyed.POST("/api/v1/lists", { body: { name: "News", description: "Once a month" } })))._id;
const grace = await success(keyed.POST("/api/v1/lists/{id}/contacts", { params: { path: { id: list } }, body: { email: "grace@example.com", first_name: "Grace" } }));
print("on the list", grace.email, grace.status, grace.subscribed);
const campaign = (await success(keyed.POST("/api/v1/campaign", { body: {
  name: "Hello", channel: 2, type: 1, date: "2026-12-01T09:00:00Z", sender: "news@muster.local", subject: "Hello {{first_name}}",
  body: '<p>Hi {{first_name|friend}}, <a href="https://example.com/sale">have a look</a>.</p>',
} })))._id;
const path = { id: campaign };
const sent = await success(keyed.POST("/api/v1/campaign/{id}/send", { params: { path }, body: { list_id: [list] } }));
print("sent", sent.success, sent.total_members, sent.emails_sent);
const outbox = (await ok(consoleAPI.GET("/console/api/v1/outbox"))).data;
const token = outbox[0]!.html!.match(/\/t\/([^"]+)/)![1]!;
const click = await client({}).GET("/t/{token}", { params: { path: { token } }, parseAs: "text", redirect: "manual" });
print("click", click.response.status, click.response.headers.get("Location"));
const stats = await eventually(async () => {
  const s = await success(keyed.GET("/api/v1/campaign/{id}/stats", { params: { path } }));
  return s.unique_clicks === 1 ? s : undefined;
});
print("campaign", stats.status, stats.emails_sent, stats.unique_opens, stats.unique_clicks);
const missing = await ok(keyed.GET("/api/v1/campaign/{id}", { params: { path: { id: "cmp_0" } } }));
print("no campaign", missing.status, missing.message);

// A flow.
const spent = await save("Spent 100", spent100);
const flow = (await ok(consoleAPI.POST("/console/api/v1/flows", { body: {
  name: "Thank you", trigger: { type: "segment_entered", segment_id: spent }, steps: [
    { id: "mark", type: "tag", add: ["vip"], next: "thanks" },
    { id: "thanks", type: "email", subject: "Thank you, {{first_name|friend}}", body: "<p>Come back soon.</p>", next: "later" },
    { id: "later", type: "wait", seconds: 86400 },
  ],
} }))).data;
for (const s of flow.steps) {
  switch (s.type) {
    case "tag": print("step", s.id, s.type, s.add![0]); break;
    case "email": print("step", s.id, s.type, s.subject); break;
    case "wait": print("step", s.id, s.type, s.seconds); break;
  }
}
const id = flow._id;
await ok(consoleAPI.POST("/console/api/v1/flows/{id}/publish", { params: { path: { id } } }));
await eventually(async () => (await ok(consoleAPI.GET("/console/api/v1/flows/{id}", { params: { path: { id } } }))).data.status === "live" || undefined);
const profile = (await record({ event_type: "item_purchased", user: { email: "grace@example.com" }, properties: { value: 120 } })).profile_id;
const enrolment = await eventually(async () => {
  const e = (await ok(consoleAPI.GET("/console/api/v1/flows/{id}/enrolments/{profile}", { params: { path: { id, profile } } }))).data.enrolments[0];
  return e?.step === "later" ? e : undefined;
});
print("enrolment", enrolment.status, enrolment.step, Date.parse(enrolment.due!) > Date.now());
for (const p of enrolment.path) print("path", p.id, p.result);
print("tags", `[${(await ok(consoleAPI.GET("/console/api/v1/profiles/{id}", { params: { path: { id: profile } } }))).data.tags.join(" ")}]`);
const paused = await success(keyed.POST("/api/v1/custom-flows/{id}/pause", { params: { path: { id } } }));
print("paused", paused.status, paused.counts.in_progress);
const extra = { status: "live" as const, name: "Thanks" };
const refused = await ok(keyed.PATCH("/api/v1/custom-flows/{id}", { params: { path: { id } }, body: extra }));
print("refused", refused.status, refused.message.split(":")[0]);
print("resumed", (await success(keyed.POST("/api/v1/custom-flows/{id}/resume", { params: { path: { id } } }))).status);
print("outbox", await eventually(async () => {
  const subject = (await ok(consoleAPI.GET("/console/api/v1/outbox", { params: { query: { to: "grace@example.com" } } }))).data[0]!.subject;
  return subject === "Thank you, Grace" ? subject : undefined;
}));

// An import, sent twice.
for (let i = 0; i < 2; i++) {
  const r = await ok(events.POST("/api/v1/events/import", { body: { file: "0a".repeat(32), first_row: 0, events: [
    { event_type: "item_returned", timestamp: "2025-05-31T12:30:00Z", user: { external_id: "42" } },
    { event_type: "item_returned", timestamp: 1748694600000, user: { external_id: "42" } },
  ] } }));
  print("import", r.success, r.total, r.next_row);
}
const returned = await eventually(async () =>
  (await ok(consoleAPI.GET("/console/api/v1/catalog"))).data.find((t) => t.key === "item_returned" && t.count === 2));
print("catalog", returned.key, returned.count);
