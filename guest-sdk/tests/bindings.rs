//! The bindings are what wit-bindgen makes of the contract. They stand in the repository so that plugins compile without
//! wit-bindgen, which takes longer than all else that they need.

#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

use std::path::Path;

use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_bindgen_rust::{Opts, WithOption};

/// With this variable the test writes the files that it compares otherwise.
const WRITE: &str = "NUDGE_WRITE_BINDINGS";

/// The bindings of a world. All worlds have the types of `trigger`.
fn bindings(world: &str) -> String {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir("../wit").unwrap();
    let id = resolve.select_world(&[package], Some(world)).unwrap();
    let shared = ["types", "log"].into_iter().filter(|_| world != "trigger");
    let shared = shared.map(|interface| {
        let path = format!("super::trigger::nudge::plugin::{interface}");
        (
            format!("nudge:plugin/{interface}@1.0.0"),
            WithOption::Path(path),
        )
    });
    let options = Opts {
        additional_derive_attributes: vec!["PartialEq".to_owned()],
        export_macro_name: Some(format!("export_{world}")),
        format: true,
        pub_export_macro: true,
        with: shared.collect(),
        ..Opts::default()
    };
    let mut files = Files::default();
    options
        .build()
        .generate(&mut resolve, id, &mut files)
        .unwrap();
    let (_, text) = files.iter().next().unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

#[test]
fn bindings_are_of_the_contract() {
    for world in ["trigger", "validation", "personalization"] {
        let file = Path::new("src/bindings").join(world).with_extension("rs");
        let made = bindings(world);
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&file, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap();
        assert!(
            kept == made,
            "{} is of another contract: write it with `{WRITE}=1 cargo test -p nudge-guest --test bindings`",
            file.display()
        );
    }
}
