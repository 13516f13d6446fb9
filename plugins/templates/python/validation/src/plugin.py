"""Checks what concerns two properties at once: a discount is never more than the total."""

from nudge import ConfigError, Validation, Violation, reads


class ValidationPlugin(Validation):
    name = "{{name}}"
    version = "0.1.0"
    summary = "Checks that one number of an event is not more than another"

    # What a configuration looks like: consoles make a form of it, and servers one to try the plugin with.
    config_schema = {
        "type": "object",
        "required": ["smaller", "larger"],
        "properties": {
            "smaller": {"type": "string", "minLength": 1},
            "larger": {"type": "string", "minLength": 1},
        },
    }

    # What is wrong with a configuration, and what decisions under it read.
    def check(self, config):
        problems = [
            ConfigError("required", f"/{key}", "must be a property, such as cart.total")
            for key in ("smaller", "larger")
            if not isinstance(config.get(key), str) or not config[key]
        ]
        if problems:
            raise ConfigError.several(problems)
        return reads(properties=[config["smaller"], config["larger"]])

    # Every violation of an event; one without any is valid.
    def find(self, config, event):
        smaller, larger = config["smaller"], config["larger"]
        less, more = event.get(smaller), event.get(larger)
        if not isinstance(less, float) or not isinstance(more, float) or less <= more:
            return []
        return [Violation("out_of_range", smaller, f"at most {larger}, {more:g}", f"{less:g}")]
