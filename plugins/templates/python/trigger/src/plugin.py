"""Fires for a purchase of some size, and then not again for some time."""

from datetime import timedelta

from nudge import ConfigError, Trigger, reads


class TriggerPlugin(Trigger):
    name = "{{name}}"
    version = "0.1.0"
    summary = "Fires for a purchase of at least `minimum`, at most once in `quietMinutes`"

    # What a configuration looks like: consoles make a form of it, and servers one to try the plugin with.
    config_schema = {
        "type": "object",
        "required": ["minimum"],
        "properties": {
            "minimum": {"type": "number"},
            "quietMinutes": {"type": "number", "minimum": 1, "maximum": 10_080},
        },
    }

    # What is wrong with a configuration, and what decisions under it read.
    def check(self, config):
        problems = []
        if not isinstance(config.get("minimum"), (int, float)):
            problems.append(
                ConfigError("required", "/minimum", "must be a number, the smallest total that counts")
            )
        if not 1 <= config.get("quietMinutes", 60) <= 10_080:
            problems.append(
                ConfigError("out_of_range", "/quietMinutes", "must be from 1 to 10080, a week")
            )
        if problems:
            raise ConfigError.several(problems)
        return reads(events=["purchase_completed"], properties=["total"])

    # Whether an event fires the campaign. Nothing stays in memory: what must last is the subject's state.
    def on_event(self, config, event, subject):
        total = event.get("total")
        if not isinstance(total, (int, float)) or total < config["minimum"]:
            return False
        now = event.received.timestamp()
        quiet = timedelta(minutes=config.get("quietMinutes", 60)).total_seconds()
        state = subject.state
        if state is not None and now < state["firedAt"] + quiet:
            return False
        subject.state = {"firedAt": now}
        return True
