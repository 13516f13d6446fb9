//! Compiles the default plugins.

fn main() {
    plugin_build::build(&[
        ("default-trigger", "DEFAULT_TRIGGER"),
        ("default-personalization", "DEFAULT_PERSONALIZATION"),
        ("default-validation", "DEFAULT_VALIDATION"),
    ]);
}
