//! The default plugins as components: what their own tests, which run natively, cannot show.

use crate::support::engine;

/// Reading nests as deep as the text, and a plugin's stack is small.
#[test]
fn text_that_nests_deep_is_a_problem_and_no_trap() {
    let (engine, _folder) = engine();
    for component in [
        nudge_plugins::DEFAULT_TRIGGER,
        nudge_plugins::DEFAULT_VALIDATION,
        nudge_plugins::DEFAULT_PERSONALIZATION,
    ] {
        let plugin = engine.load(component).unwrap();
        let name = &plugin.description().name;
        for depth in [20, 120, 500, 100_000] {
            for [open, close] in [["[", "]"], [r#"{"all":["#, "]}"], [r#"{"trigger":"#, "}"]] {
                let config = [&open.repeat(depth), "1", &close.repeat(depth)].concat();
                let checked = plugin.check_config(&config);
                assert!(
                    matches!(checked, Ok(Err(_))),
                    "{name}, {depth} {open}: {checked:?}"
                );
            }
        }
        let checked = plugin.check_config(
            &[
                r#"{"trigger":{"kind":"event","eventName":"a","filters":"#,
                &r#"{"all":["#.repeat(100),
            ]
            .concat(),
        );
        assert!(matches!(checked, Ok(Err(_))), "{name}: {checked:?}");
    }
}
