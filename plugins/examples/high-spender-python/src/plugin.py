"""Fires when what a subject bought within some days reaches a sum: the history of the subject, with properties."""

from datetime import timedelta

from nudge import ConfigError, Trigger, reads

PROPERTIES = ["total", "currency"]
# The most that the host gives.
PURCHASES = 1_000


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def thousandths(total, currency, counted):
    """What a purchase adds: fractions would not add up. A total that is no number adds nothing."""
    counts = is_number(total) and counted in (None, currency)
    # With digits the answer is a float, which has an infinity.
    return round(total * 1_000, 0) if counts else 0


class TriggerPlugin(Trigger):
    name = "high-spender-python"
    version = "0.1.0"
    summary = "Fires when what a subject bought within some days reaches a sum"

    def check(self, config):
        days = config.get("days", 30)
        if not is_number(config.get("sum")) or config["sum"] <= 0:
            raise ConfigError("out_of_range", "/sum", "must be more than 0")
        if not is_number(days) or not 1 <= days <= 90:
            raise ConfigError("out_of_range", "/days", "must be from 1 to 90")
        if not isinstance(config.get("currency", ""), str):
            raise ConfigError("type_mismatch", "/currency", "must be a text, such as EUR")
        return reads(events=["purchase_completed"], properties=PROPERTIES)

    def on_event(self, config, event, subject):
        currency = config.get("currency")
        bought = subject.recent_events(
            event.name,
            within=timedelta(days=config.get("days", 30)),
            limit=PURCHASES,
            properties=PROPERTIES,
        )
        earlier = sum(
            thousandths(purchase.properties["total"], purchase.properties["currency"], currency)
            for purchase in bought
        )
        latest = thousandths(event.get("total"), event.get("currency"), currency)
        spent = (earlier + latest) / 1_000
        subject.explain("spent", spent >= config["sum"], f"{spent:.12g} of {config['sum']}")
        # Once: at the purchase that reaches the sum, not at those above it.
        return earlier / 1_000 < config["sum"] <= spent
