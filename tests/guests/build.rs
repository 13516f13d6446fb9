//! Compiles the plugins of the tests.

fn main() {
    plugin_build::build(&[
        ("greeter", "GREETER"),
        ("hoarder", "HOARDER"),
        ("misbehaving", "MISBEHAVING"),
        ("misbehaving-personalization", "MISBEHAVING_PERSONALIZATION"),
        ("misbehaving-validation", "MISBEHAVING_VALIDATION"),
        ("strict", "STRICT"),
        ("versioned", "VERSIONED"),
    ]);
    plugin_build::build_wasip2(&[
        ("curious", "CURIOUS"),
        ("default-trigger", "DEFAULT_TRIGGER_WASIP2"),
    ]);
}
