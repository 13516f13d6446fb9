#!/usr/bin/env python3
"""Writes events.ndjson.gz, the shop events that the demo replays. The same bytes on every run."""

import gzip
import json
import math
import random
import uuid
from collections import Counter
from datetime import datetime, timedelta, timezone
from itertools import accumulate
from pathlib import Path
from zoneinfo import ZoneInfo

SEED = 20261120
END = datetime(2026, 11, 20, tzinfo=timezone.utc)  # the instant of offset 0
DAYS = 14
PEOPLE = 1000
SESSIONS = 2680
BATCH_LIMIT = 60
BATCH_GAP_SECONDS = 180
SESSION_GAP_SECONDS = 1800

# Shares of what goes wrong on purpose.
BROKEN_PURCHASE = 0.02
BROKEN_EVENT = 0.003
REPEATED_EVENT = 0.005

PLATFORMS = {"ios": 40, "android": 38, "web": 22}
VERSIONS = ["4.10.3", "4.11.0", "4.11.2", "4.12.0"]
NEWEST_VERSION, RELEASED_AT = "4.12.1", -6 * 86400
# locale: (weight, time zone, currency, units of it for one euro)
LOCALES = {
    "de-DE": (30, "Europe/Berlin", "EUR", 1.0),
    "en-US": (24, "America/New_York", "USD", 1.1),
    "fr-FR": (12, "Europe/Paris", "EUR", 1.0),
    "en-GB": (10, "Europe/London", "GBP", 0.85),
    "ja-JP": (8, "Asia/Tokyo", "JPY", 165.0),
    "es-ES": (6, "Europe/Madrid", "EUR", 1.0),
    "nl-NL": (5, "Europe/Amsterdam", "EUR", 1.0),
    "pt-BR": (5, "America/Sao_Paulo", "BRL", 6.0),
}
# Share of sessions that begin in each local hour.
HOURS = [3, 2, 1, 1, 1, 2, 5, 9, 11, 10, 10, 11, 14, 13, 10, 10, 11, 14, 18, 22, 26, 24, 16, 8]
WEEKDAYS = [10, 10, 10, 11, 12, 15, 16]
# category: (median price in euros, adjectives, nouns)
CATALOGUE = {
    "shoes": (85, ["Trail", "Court", "Suede", "Winter"], ["Runner", "Sneaker", "Boot", "Loafer"]),
    "clothing": (39, ["Merino", "Linen", "Oversized", "Quilted"], ["Shirt", "Sweater", "Jacket", "Dress"]),
    "home": (28, ["Oak", "Stoneware", "Woven", "Brass"], ["Lamp", "Bowl", "Throw", "Shelf"]),
    "kitchen": (34, ["Cast Iron", "Ceramic", "Copper", "Bamboo"], ["Pan", "Kettle", "Knife", "Board"]),
    "electronics": (129, ["Wireless", "Compact", "Portable", "Smart"], ["Headphones", "Speaker", "Charger", "Watch"]),
    "sports": (45, ["Folding", "Carbon", "Training", "Thermal"], ["Mat", "Racket", "Bottle", "Gloves"]),
    "beauty": (19, ["Hydrating", "Gentle", "Daily", "Mineral"], ["Cream", "Serum", "Soap", "Oil"]),
    "toys": (24, ["Wooden", "Magnetic", "Plush", "Mini"], ["Train", "Blocks", "Bear", "Puzzle"]),
}
PAYMENTS = {"card": 46, "paypal": 24, "apple_pay": 12, "google_pay": 9, "invoice": 9}
SHIPPING = {"standard": 70, "express": 18, "pickup": 12}
TOPICS = {"delivery": 40, "return": 25, "payment": 15, "product": 12, "account": 8}
RATINGS = {5: 43, 4: 29, 3: 13, 2: 8, 1: 7}

rng = random.Random(SEED)


def pick(weights):
    return rng.choices(list(weights), list(weights.values()))[0]


def chance(probability):
    return rng.random() < probability


def zipf(count, shift):
    return list(accumulate(1 / (rank + shift) for rank in range(1, count + 1)))


def new_uuid():
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def code(prefix, length=10):
    return prefix + "".join(rng.choices("0123456789abcdefghjkmnpqrstvwxyz", k=length))


def make_products():
    products = []
    for category, (median, adjectives, nouns) in CATALOGUE.items():
        for adjective in adjectives:
            for noun in nouns:
                products.append({
                    "sku": f"{category[:3].upper()}-{rng.randrange(10000, 99999)}",
                    "name": f"{adjective} {noun}",
                    "category": category,
                    "euros": max(4.0, rng.lognormvariate(math.log(median), 0.45)),
                    "stock": rng.randrange(0, 240),
                })
    rng.shuffle(products)
    return products


PRODUCTS = make_products()
POPULARITY = zipf(len(PRODUCTS), 4)


class Person:
    """One customer on one device, and what the shop knows of them."""

    def __init__(self):
        self.anonymous_id = f"anon-{new_uuid()}"
        self.device_id = code("dev_", 12)
        self.platform = pick(PLATFORMS)
        self.locale = pick({locale: row[0] for locale, row in LOCALES.items()})
        _, self.zone, self.currency, self.rate = LOCALES[self.locale]
        self.version = pick(dict(zip(VERSIONS, (4, 10, 26, 60))))
        self.installs = self.platform != "web" and chance(0.4)
        self.buyer = rng.betavariate(2, 3)  # how readily they buy
        self.busy_until = -math.inf
        self.cart = []
        self.unreviewed = []  # (sku, from when on)
        self.orders = []

    def price(self, euros):
        amount = euros * self.rate
        return round(amount / 10) * 10 if self.currency == "JPY" else math.floor(amount) + 0.95

    def cart_facts(self):
        return {"total": round(sum(price for _, price in self.cart), 2), "items": len(self.cart)}


class Session:
    """Plays one visit and collects its events."""

    def __init__(self, person, start):
        self.person, self.now, self.events = person, float(start), []

    def record(self, name, properties):
        self.events.append({
            "eventId": new_uuid(),
            "name": name,
            "offsetSeconds": round(self.now),
            "properties": properties,
        })
        self.now += 1 + rng.lognormvariate(2.9, 0.9)

    def play(self):
        self.open()
        if self.person.orders and chance(0.12):
            self.contact_support()
        self.review()
        for _ in range(1 + min(14, int(rng.expovariate(0.32)))):
            self.browse()
        if self.person.cart and chance(0.2 + 0.5 * self.person.buyer):
            self.check_out()
        return self.events

    def open(self):
        person = self.person
        if person.installs:
            person.installs = False
            self.record("app_installed", {"source": pick({"store": 70, "campaign": 20, "referral": 10})})
        if person.platform != "web":
            self.record("app_opened", {"source": pick({"icon": 74, "push": 16, "deep_link": 10})})
        self.record("session_started", {"referrer": pick({"direct": 55, "search": 22, "social": 13, "email": 10})})

    def browse(self):
        person = self.person
        product = rng.choices(PRODUCTS, cum_weights=POPULARITY)[0]
        if chance(0.22):
            query = rng.choice([product["category"], product["name"].lower(), product["name"].split()[-1].lower()])
            self.record("search_performed", {"query": query, "results": rng.randrange(0, 60)})
        price = person.price(product["euros"])
        self.record("product_viewed", {
            **{key: product[key] for key in ("sku", "name", "category")},
            "price": price,
            "currency": person.currency,
            "stock": max(0, product["stock"] + rng.randrange(-12, 4)),
        })
        if chance(0.1 + 0.3 * person.buyer):
            person.cart.append((product["sku"], price))
            self.record("product_added_to_cart", {
                "sku": product["sku"], "price": price, "currency": person.currency, "cart": person.cart_facts(),
            })
        elif person.cart and chance(0.06):
            sku, _ = person.cart.pop(rng.randrange(len(person.cart)))
            self.record("cart_updated", {"removed": sku, "currency": person.currency, "cart": person.cart_facts()})

    def check_out(self):
        person = self.person
        self.record("checkout_started", {"currency": person.currency, "cart": person.cart_facts()})
        if not chance(0.45 + 0.45 * person.buyer):
            return
        order, facts, shipping = code("ord_"), person.cart_facts(), pick(SHIPPING)
        shipping_cost = person.price(4.5) if shipping == "standard" and chance(0.5) else 0
        properties = {
            "order_id": order,
            "total": round(facts["total"] + shipping_cost, 2),
            "currency": person.currency,
            "items": facts["items"],
            "payment_method": pick(PAYMENTS),
            "shipping_method": shipping,
            "shipping_cost": shipping_cost,
            "first_purchase": not person.orders,
            "gift": chance(0.07),
            "skus": [sku for sku, _ in person.cart],
        }
        if chance(0.18):
            properties["coupon_code"] = rng.choice(["WELCOME10", "AUTUMN15", "FREESHIP"])
        self.record("purchase_completed", properties)
        person.orders.append(order)
        person.unreviewed += [(sku, self.now + 2 * 86400) for sku, _ in person.cart if chance(0.4)]
        person.cart = []

    def review(self):
        due = [entry for entry in self.person.unreviewed if entry[1] < self.now]
        for entry in due[:2]:
            self.person.unreviewed.remove(entry)
            self.record("review_submitted", {"sku": entry[0], "rating": pick(RATINGS), "with_photo": chance(0.2)})

    def contact_support(self):
        self.record("support_contacted", {
            "channel": pick({"chat": 60, "email": 28, "phone": 12}),
            "topic": pick(TOPICS),
            "order_id": self.person.orders[-1],
        })


def session_start(person):
    """Seconds before END, by the weekday and the hour where the person lives."""
    days = [END + timedelta(days=-back) for back in range(1, DAYS + 1)]
    day = rng.choices(days, [WEEKDAYS[day.weekday()] for day in days])[0]
    hour = rng.choices(range(24), HOURS)[0]
    local = datetime(day.year, day.month, day.day, hour, rng.randrange(60), rng.randrange(60),
                     tzinfo=ZoneInfo(person.zone))
    return (local - END).total_seconds()


def context(person, start):
    if start > RELEASED_AT and person.version != NEWEST_VERSION and chance(0.25):
        person.version = NEWEST_VERSION
    return {
        "anonymousId": person.anonymous_id,
        "sdkVersion": "0.1.0",
        "platform": person.platform,
        "appVersion": person.version,
        "locale": person.locale,
        "timezone": person.zone,
        "deviceId": person.device_id,
        "sessionId": new_uuid(),
    }


def batches_of(events):
    """What an SDK would have sent together."""
    batch = []
    for event in events:
        if batch and (len(batch) == BATCH_LIMIT
                      or event["offsetSeconds"] - batch[-1]["offsetSeconds"] > BATCH_GAP_SECONDS):
            yield batch
            batch = []
        batch.append(event)
    if batch:
        yield batch


def make_batches():
    """(seconds at which it was sent, line) for each batch, in time order."""
    people = [Person() for _ in range(PEOPLE)]
    visitors = people + rng.choices(people, cum_weights=zipf(PEOPLE, 25), k=SESSIONS - PEOPLE)
    visits = sorted(((session_start(person), index) for index, person in enumerate(visitors)))
    sent = []
    for start, index in visits:
        person = visitors[index]
        start = max(start, person.busy_until + SESSION_GAP_SECONDS)
        session = Session(person, start)
        facts = context(person, start)
        events = session.play()
        person.busy_until = session.now
        for batch in batches_of(events):
            line = {"anonymousId": person.anonymous_id, "context": facts, "events": batch}
            sent.append((batch[-1]["offsetSeconds"], line))
    sent.sort(key=lambda entry: entry[0])
    return [entry for entry in sent if -DAYS * 86400 <= entry[1]["events"][0]["offsetSeconds"] and entry[0] < 0]


def some(events, share):
    return rng.sample(events, round(len(events) * share))


def break_purchases(events, faults):
    purchases = [event for event in events if event["name"] == "purchase_completed"]
    for index, event in enumerate(some(purchases, BROKEN_PURCHASE)):
        event["broken"] = True
        if index % 2:
            del event["properties"]["order_id"]
            faults["purchase without an order_id"] += 1
        else:
            event["properties"]["total"] = str(event["properties"]["total"])
            faults["purchase with its total as text"] += 1


def break_events(events, faults):
    breaks = {
        "empty name": lambda event: event.update(name=""),
        "name of 220 characters": lambda event: event.update(name="x" * 220),
        "eventId that is no UUID": lambda event: event.update(eventId=f"evt-{rng.randrange(10**6)}"),
        "timestamp 45 days old": lambda event: event.update(offsetSeconds=event["offsetSeconds"] - 45 * 86400),
        "timestamp 3 days ahead": lambda event: event.update(offsetSeconds=3 * 86400),
    }
    others = [event for event in events if event["name"] != "purchase_completed"]
    for index, event in enumerate(some(others, BROKEN_EVENT)):
        fault = list(breaks)[index % len(breaks)]
        breaks[fault](event)
        faults[fault] += 1
        event["broken"] = True


def repeat_events(lines, faults):
    """Clients that missed an answer send again: most in their next batch, some within the same one."""
    open_repeats = {}
    for line in lines:
        waiting = open_repeats.pop(line["anonymousId"], [])
        own = [event for event in line["events"] if "broken" not in event and chance(REPEATED_EVENT)]
        within = [event for event in own if chance(0.2)]
        open_repeats[line["anonymousId"]] = [event for event in own if event not in within]
        line["events"] = waiting + line["events"] + within
        faults["event sent again later"] += len(waiting)
        faults["eventId twice in one batch"] += len(within)


def main():
    lines = [line for _, line in make_batches()]
    faults = Counter()
    everything = [event for line in lines for event in line["events"]]
    break_purchases(everything, faults)
    break_events(everything, faults)
    repeat_events(lines, faults)
    for event in everything:
        event.pop("broken", None)

    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    path = Path(__file__).with_name("events.ndjson.gz")
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode())

    names = Counter(event["name"] for line in lines for event in line["events"])
    print(f"{sum(names.values())} events, {len(lines)} batches, "
          f"{len({line['anonymousId'] for line in lines})} people, {path.stat().st_size} bytes")
    for title, counts in (("events", names), ("on purpose", faults)):
        print(title, *(f"  {count:6} {name[:40] or '(empty name)'}" for name, count in counts.most_common()), sep="\n")


if __name__ == "__main__":
    main()
