//! Trigger plugins written by hand, to the last instruction: what no compiler would make of any source.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The parts of a module, as WebAssembly text. What is not changed belongs to a plugin that does nothing, and
/// does it well.
#[derive(Clone)]
pub(crate) struct Parts {
    /// Memory, further globals, tables, data and functions.
    pub(crate) declared: String,
    /// What `cabi_realloc` gives; parameters 0 to 3 are the old address and size, alignment and size.
    pub(crate) realloc: &'static str,
    /// What runs when the module is instantiated.
    pub(crate) start: &'static str,
    /// What `describe` gives: the address of a description.
    pub(crate) describe: &'static str,
    /// What runs after `describe`.
    pub(crate) described: &'static str,
    /// What `check-config` gives: the address of a result.
    pub(crate) check: &'static str,
    /// What `evaluate` does with the batch (parameter 0), and the address of its result.
    pub(crate) decide: &'static str,
    /// What runs after `evaluate`.
    pub(crate) decided: &'static str,
    /// How the module writes its texts.
    pub(crate) encoding: StringEncoding,
}

/// Gives the batch back and the result `ok`, of which zeroes stand at this address.
pub(crate) const DONE: &str = "(call $drop (local.get 0)) (i32.const 512)";

/// Does not end.
pub(crate) const FOREVER: &str = "(loop $again (br $again))";

/// Sixteen pages of memory.
pub(crate) const MEMORY: &str = r#"(memory (export "memory") 16)"#;

/// Takes memory from the end of what was taken before.
const BUMP: &str = "
    (global.set $top (i32.and
        (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
    (global.get $top)
    (global.set $top (i32.add (global.get $top) (local.get 3)))";

impl Default for Parts {
    fn default() -> Self {
        Self {
            declared: MEMORY.to_owned(),
            realloc: BUMP,
            start: "",
            describe: "(i32.const 700)",
            described: "",
            check: "(i32.const 512)",
            decide: DONE,
            decided: "",
            encoding: StringEncoding::UTF8,
        }
    }
}

impl Parts {
    /// The module, as text.
    fn text(&self) -> String {
        let Self {
            declared,
            realloc,
            start,
            describe,
            described,
            check,
            decide,
            decided,
            encoding: _,
        } = self;
        let name = r"\20\03\00\00\08\00\00\00\28\03\00\00\05\00\00\00";
        format!(
            r#"(module
            (import "nudge:plugin/log@1.0.0" "write" (func $write (param i32 i32 i32)))
            (import "nudge:plugin/trigger-host@1.0.0" "[resource-drop]batch" (func $drop (param i32)))
            (import "nudge:plugin/trigger-host@1.0.0" "[method]batch.now"
                (func $now (param i32) (result i64)))
            (import "nudge:plugin/trigger-host@1.0.0" "[method]batch.campaign-config"
                (func $config (param i32 i32 i32)))
            (import "nudge:plugin/trigger-host@1.0.0" "[method]batch.names"
                (func $names (param i32 i32)))
            (import "nudge:plugin/trigger-host@1.0.0" "[method]batch.fire"
                (func $fire (param i32 i32 i32 i32)))
            (import "nudge:plugin/trigger-host@1.0.0" "[method]batch.recent-events"
                (func $recent (param i32 i32 i32 i32 i32 i64 i32 i32 i32 i32)))
            {declared}
            (global $top (mut i32) (i32.const 4096))
            (data (i32.const 700) "{name}")
            (data (i32.const 800) "handmade1.0.0")
            (func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {realloc})
            (func $start {start})
            (start $start)
            (func (export "nudge:plugin/trigger-plugin@1.0.0#describe") (result i32) {describe})
            (func (export "cabi_post_nudge:plugin/trigger-plugin@1.0.0#describe") (param i32) {described})
            (func (export "nudge:plugin/trigger-plugin@1.0.0#check-config") (param i32 i32) (result i32)
                {check})
            (func $evaluate (export "nudge:plugin/trigger-plugin@1.0.0#evaluate") (param i32) (result i32)
                {decide})
            (func (export "cabi_post_nudge:plugin/trigger-plugin@1.0.0#evaluate") (param i32) {decided})
            )"#
        )
    }

    /// The component.
    pub(crate) fn component(&self) -> Vec<u8> {
        let mut module = wat::parse_str(self.text()).unwrap_or_else(|error| panic!("{error}"));
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir("../../wit").unwrap();
        let world = resolve.select_world(&[package], Some("trigger")).unwrap();
        embed_component_metadata(&mut module, &resolve, world, self.encoding).unwrap();
        ComponentEncoder::default()
            .module(&module)
            .unwrap()
            .encode()
            .unwrap()
    }
}
