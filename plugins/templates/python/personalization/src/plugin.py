"""Greets by name: a binding becomes "Hello Ada", or its fallback where the name is not known."""

from nudge import ConfigError, Personalization, Resolution, reads


class PersonalizationPlugin(Personalization):
    name = "{{name}}"
    version = "0.1.0"
    summary = "Resolves each binding to a greeting with the recipient's name"

    # What is wrong with a configuration, and what decisions under it read.
    def check(self, config):
        bindings = config.get("bindings")
        if not isinstance(bindings, list) or any(
            not isinstance(binding.get("id"), str) for binding in bindings
        ):
            raise ConfigError("required", "/bindings", "must be a list of bindings, each with an `id`")
        return reads(subject_properties=["name"])

    # What the bindings stand for, for one recipient. One that is not resolved is missing.
    def values(self, config, recipient):
        name = recipient.get_property("name")
        values = {}
        for binding in config["bindings"]:
            if isinstance(name, str):
                found = Resolution(f"Hello {name}")
            elif "fallback" in binding:
                found = Resolution(binding["fallback"], used_fallback=True, issue="missing")
            else:
                found = Resolution(issue="missing", detail="the recipient has no `name`")
            values[binding["id"]] = found
        return values
