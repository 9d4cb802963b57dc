"""A visit to a shop, sent by one of the SDKs for Python:

    python visit.py SDK ORIGIN WRITE_KEY NAME CLOCK_MS RETRIES

The arguments, EVENTS in the environment, and what is printed are those of visit.mjs.
"""

import datetime
import os
import sys

sdk, origin, key, name, clock, retries = sys.argv[1:]
user, device = f"u-{name}", f"d-{name}"
traits = {"email": f"{name}@shop.example", "firstName": "Ann", "lastName": "Lee", "plan": "pro", "address": {"city": "Berlin", "country": "DE"}}
order = {"total": 79.9, "currency": "EUR", "products": ["sku-7"]}
product = {"sku": "sku-7"}
off = datetime.timedelta(milliseconds=int(clock))


class Clock(datetime.datetime):
    """The clock of the application."""

    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + off

    @classmethod
    def utcnow(cls):
        return super().now(datetime.timezone.utc).replace(tzinfo=None) + off


def set_clock(*modules):
    for module in modules:
        assert hasattr(module, "datetime"), module
        if module.datetime is datetime:  # the module, not the class
            module.datetime = type("datetime_module", (), {"datetime": Clock, "timezone": datetime.timezone, "date": datetime.date, "timedelta": datetime.timedelta})
        else:
            module.datetime = Clock


def report(error, _items=None):
    print("error:", error)


def send(analytics):
    events = int(os.environ.get("EVENTS", "0"))
    if not events:
        visit(analytics)
    for n in range(events):
        analytics.track(f"u-{name}-{n % 100}", f"Loaded {sdk}", {"n": n})
        if n % 1000 == 999:
            analytics.flush()


def visit(analytics):
    at = {"timestamp": Clock.now(datetime.timezone.utc)}
    analytics.page(anonymous_id=device, name="Home", properties={"url": "https://shop.example/"}, **at)
    analytics.track(anonymous_id=device, event="Product Viewed", properties=product, **at)
    analytics.identify(user_id=user, anonymous_id=device, traits=traits, **at)
    analytics.track(user_id=user, anonymous_id=device, event="Order Completed", properties=order, **at)
    analytics.group(user_id=user, group_id="acme", traits={"industry": "shops"}, **at)
    analytics.screen(user_id=user, name="Receipt", **at)


if sdk == "segment":
    import segment.analytics as analytics
    import segment.analytics.client
    import segment.analytics.request

    set_clock(segment.analytics.client, segment.analytics.request)
    analytics.write_key, analytics.host, analytics.on_error, analytics.max_retries = key, origin, report, int(retries)
    send(analytics)
    analytics.shutdown()
elif sdk == "rudder":
    import rudderstack.analytics as analytics
    import rudderstack.analytics.client
    import rudderstack.analytics.request

    set_clock(rudderstack.analytics.client, rudderstack.analytics.request)
    analytics.write_key, analytics.dataPlaneUrl, analytics.on_error, analytics.max_retries = key, origin, report, int(retries)
    send(analytics)
    analytics.shutdown()
print("done")
