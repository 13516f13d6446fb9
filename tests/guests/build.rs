//! Compiles the plugins of the tests.

fn main() {
    plugin_build::build(&[("misbehaving", "MISBEHAVING")]);
}
