"""Fires when what a subject bought within some days reaches a sum: the history of the subject, with a property."""

from datetime import timedelta

from nudge import ConfigError, Trigger, reads


def total(value):
    return value if isinstance(value, float) else 0


class TriggerPlugin(Trigger):
    name = "high-spender-python"
    version = "0.1.0"
    summary = "Fires when what a subject bought within some days reaches a sum"

    def check(self, config):
        if not isinstance(config.get("sum"), (int, float)) or config["sum"] <= 0:
            raise ConfigError("out_of_range", "/sum", "must be more than 0")
        if not 1 <= config.get("days", 30) <= 90:
            raise ConfigError("out_of_range", "/days", "must be from 1 to 90")
        return reads(events=["purchase_completed"], properties=["total"])

    def on_event(self, config, event, subject):
        days = timedelta(days=config.get("days", 30))
        bought = subject.recent_events(event.name, within=days, properties=["total"])
        earlier = sum(total(purchase.properties["total"]) for purchase in bought)
        spent = earlier + total(event.get("total"))
        subject.explain("spent", spent >= config["sum"], f"{spent:g} of {config['sum']}")
        # Once: at the purchase that reaches the sum, not at those above it.
        return earlier < config["sum"] <= spent
