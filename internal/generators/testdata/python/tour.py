"""Goes through the README's five minutes with the client that
openapi-python-client makes of /openapi.json. It reads the file of credentials that
its argument names and prints a line for each step; tour.txt in the folder above has
the lines that are right."""

import datetime
import importlib
import json
import pkgutil
import re
import sys
import time

import client.api
from client import AuthenticatedClient, Client, models as m

with open(sys.argv[1]) as f:
    credentials = json.load(f)
origin = credentials["base_url"].removesuffix("/api/v1")

# The functions by operation id, whatever chapter of the document they are in.
operations = {x.name.rsplit(".", 1)[1]: x.name for x in pkgutil.walk_packages(client.api.__path__, "client.api.") if not x.ispkg}


def call(operation, using, *path, **arguments):
    """The answer of an operation, read into its model."""
    answer = importlib.import_module(operations[operation]).sync_detailed(*path, client=using, **arguments)
    assert answer.parsed is not None, (operation, answer.status_code, answer.content)
    return answer.parsed


def success(operation, using, *path, **arguments):
    """The data of a call of the key, which answers failures with 200, too."""
    answer = call(operation, using, *path, **arguments)
    assert not isinstance(answer, (m.Failure, m.TooManyRequests)), answer
    return answer.data


def show(step, *values):
    """Prints values as the tours in other languages do."""
    words = {True: "true", False: "false"}
    print(f"{step}:", *(words[v] if isinstance(v, bool) else v for v in values))


def eventually(ask):
    """Asks until there is a value."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if (value := ask()) is not None:
            return value
        time.sleep(0.05)
    raise SystemExit("it did not come about within a minute")


anybody = Client(base_url=origin)
events = Client(base_url=origin, headers={"X-App-Id": credentials["app_id"], "X-App-Secret": credentials["app_secret"]})
keyed = AuthenticatedClient(base_url=origin, token=credentials["api_key"])
session = call("sign_in", anybody, body=m.SignInBody(email=credentials["console_email"], password=credentials["console_password"])).data
console = AuthenticatedClient(base_url=origin, token=session.token)
show("signed in", session.email == credentials["console_email"])

# Events.
signup = m.Event(event_type="signed_up", idempotency_key="signup-42", user=m.EventUser(external_id="42", first_name="Ada"))
first = call("record_event", events, body=signup)
show("event", first.success, first.error is None)


def bought(value, **user):
    return m.Event.from_dict({"event_type": "item_purchased", "user": user, "properties": {"value": value}})


batch = call("record_events", events, body=m.RecordEventsBody(events=[
    bought(79.90, external_id="42", email="Ada@Example.com", geo={"country": "DE"}),
    bought(30.10, email="ada@example.com", attributes={"plan": "pro"}),
    m.Event(event_type="Page Viewed", user=m.EventUser(email="bob@example.com")),
    m.Event(event_type="page_viewed", user=m.EventUser(email="bob@example.com")),
]))
show("batch", batch.success, batch.accepted, "of", batch.total)
show("same person", all(r.profile_id == first.profile_id for r in batch.results[:2]))
show("bad event", batch.results[2].success, batch.results[2].error.startswith("event_type must be"))
again = call("record_event", events, body=signup)
show("retry", again.success, again.profile_id == first.profile_id)

# Segments.
ACTIVITY = m.ActivityConditionKind("activity")


def spent_100(**more):
    return m.ActivityCondition(kind=ACTIVITY, event="item_purchased", aggregate=m.EventAggregate(
        fn=m.EventAggregateFn("sum"), property_="value", op=m.EventAggregateOp(">="), value=100), **more)


both = call("preview_segment", console, body=m.PreviewSegmentRequest(m.SegmentGroup(match=m.SegmentGroupMatch("all"), conditions=[
    spent_100(window=m.LastDays(30)),
    m.AttributeCondition(kind=m.AttributeConditionKind("attribute"), field="geo.country", op=m.AttributeConditionOp("="), value="DE"),
]))).data
who = both.sample[0].identities
show("preview", both.count, who.email[0], who.external_id[0], len(who.phone))
never = call("create_segment", console, body=m.CreateSegmentBody("Never bought", m.ActivityCondition(kind=ACTIVITY, event="item_purchased", did=False))).data.field_id


def show_segment():
    s = call("get_segment", console, never).data
    assert isinstance(s.definition, m.ActivityCondition), s.definition
    show("segment", s.name, s.count, s.definition.event, s.definition.did)


show_segment()
# Transitions begin when the segment is live.
eventually(lambda: True if call("get_segment", console, never).data.status == "live" else None)
call("record_event", events, body=bought(5, email="bob@example.com"))
show_segment()

# The stream of transitions, up to the second one: the call's function would read it to its end.
request = importlib.import_module(operations["segment_transitions"])._get_kwargs(never, after="0-0")
seen = []
with console.get_httpx_client().stream(**request) as stream:
    for line in stream.iter_lines():
        if line.startswith("event: "):
            seen.append(line.removeprefix("event: "))
        if len(seen) == 2:
            break
show("transitions", ", ".join(seen))

wrong = importlib.import_module(operations["preview_segment"]).sync_detailed(client=console, body=m.PreviewSegmentRequest(
    m.ActivityCondition(kind=ACTIVITY, event="page_viewed", window=m.LastDays(0))))
show("refused", int(wrong.status_code), wrong.parsed.message)

# A profile and its timeline.
ada = call("find_profile", console, email="ada@example.com").data
show("profile", ada.first_name, ada.geo["country"], ada.attributes["plan"])
for e in call("profile_events", console, ada.profile_id, limit=2).data.events:
    show("timeline", e.event_type, e.properties["value"], e.idempotency_key is None)

# A campaign.
news = success("create_list", keyed, body=m.CreateListBody(name="News", description="Once a month")).field_id
grace = success("add_to_list", keyed, news, body=m.AddToListBody(email="grace@example.com", first_name="Grace"))
show("on the list", grace.email, grace.status, grace.subscribed)
campaign = success("create_campaign", keyed, body=m.CreateCampaignBody(
    name="Hello", channel=m.CreateCampaignBodyChannel(2), type_=m.CreateCampaignBodyType(1), date="2026-12-01T09:00:00Z", sender="news@muster.local",
    subject="Hello {{first_name}}", body='<p>Hi {{first_name|friend}}, <a href="https://example.com/sale">have a look</a>.</p>')).field_id
sent = success("send_campaign", keyed, campaign, body=m.SendCampaignBody(list_id=[news]))
show("sent", sent.success, sent.total_members, sent.emails_sent)
message = call("list_outbox", console).data[0]
token = re.search(r'/t/([^"]+)', message.html).group(1)
click = importlib.import_module(operations["follow_link"]).sync_detailed(token, client=anybody)
show("click", int(click.status_code), click.headers["Location"])


def clicked():
    s = success("campaign_stats", keyed, campaign)
    return s if s.unique_clicks == 1 else None


stats = eventually(clicked)
show("campaign", stats.status, stats.emails_sent, stats.unique_opens, stats.unique_clicks)
missing = call("get_campaign", keyed, "cmp_0")
assert isinstance(missing, m.Failure), missing
show("no campaign", missing.status, missing.message)

# A flow.
spent = call("create_segment", console, body=m.CreateSegmentBody("Spent 100", spent_100())).data.field_id
flow = call("create_flow", console, body=m.CreateFlowBody(
    name="Thank you",
    trigger=m.FlowTriggerSegmentEntered(type_=m.FlowTriggerSegmentEnteredType("segment_entered"), segment_id=spent),
    steps=[
        m.FlowStepTag(id="mark", type_=m.FlowStepTagType("tag"), add=["vip"], next_="thanks"),
        m.FlowStepEmail(id="thanks", type_=m.FlowStepEmailType("email"), subject="Thank you, {{first_name|friend}}", body="<p>Come back soon.</p>", next_="later"),
        m.FlowStepWait(id="later", type_=m.FlowStepWaitType("wait"), seconds=86400),
    ])).data
for s in flow.steps:
    match s:
        case m.FlowStepTag():
            show("step", s.id, s.type_, s.add[0])
        case m.FlowStepEmail():
            show("step", s.id, s.type_, s.subject)
        case m.FlowStepWait():
            show("step", s.id, s.type_, s.seconds)
flow = flow.field_id
call("publish_flow", console, flow)
eventually(lambda: True if call("console_get_flow", console, flow).data.status == "live" else None)
profile = call("record_event", events, body=bought(120, email="grace@example.com")).profile_id


def waiting():
    for e in call("get_enrolments", console, flow, profile).data.enrolments:
        if e.step == "later":
            return e


enrolment = eventually(waiting)
show("enrolment", enrolment.status, enrolment.step, enrolment.due > datetime.datetime.now(datetime.timezone.utc))
for p in enrolment.path:
    show("path", p.id, p.result)
show("tags", f"[{' '.join(call('get_profile', console, profile).data.tags)}]")
paused = success("pause_flow", keyed, flow)
show("paused", paused.status, paused.counts.in_progress)


class Renaming(m.SetFlowStatusBody):
    """A body with a field that the model does not have."""

    def to_dict(self):
        return super().to_dict() | {"name": "Thanks"}


refused = call("set_flow_status", keyed, flow, body=Renaming(m.SetFlowStatusBodyStatus("live")))
show("refused", refused.status, refused.message.split(":")[0])
show("resumed", success("resume_flow", keyed, flow).status)


def thanked():
    subject = call("list_outbox", console, to="grace@example.com").data[0].subject
    return subject if subject == "Thank you, Grace" else None


show("outbox", eventually(thanked))

# An import, sent twice.
rows = m.ImportEventsBody.from_dict({"file": "0a" * 32, "first_row": 0, "events": [
    {"event_type": "item_returned", "timestamp": "2025-05-31T12:30:00Z", "user": {"external_id": "42"}},
    {"event_type": "item_returned", "timestamp": 1748694600000, "user": {"external_id": "42"}},
]})
for _ in range(2):
    r = call("import_events", events, body=rows)
    show("import", r.success, r.total, r.next_row)


def counted():
    for t in call("list_catalog", console).data:
        if t.key == "item_returned" and t.count == 2:
            return t


returned = eventually(counted)
show("catalog", returned.key, returned.count)
