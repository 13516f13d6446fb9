//! What a component says of itself before it runs: its kind, and what it imports.

use wasmtime::component::Component;

use semver::Version;

use crate::kind::Kind;

/// A version of each major of the contract that this host serves. Plugins of every minor of a major link, as far as
/// what they import is there.
///
/// 1.0.0 has everything that 0.1.0 had, word for word, so that the same functions serve both.
pub(crate) const SERVED: [&str; 2] = ["1.0.0", "0.1.0"];

/// The full name of an interface of the contract.
pub(crate) fn interface(name: &str, version: &str) -> String {
    format!("nudge:plugin/{name}@{version}")
}

/// The packages of WASI 0.2 that guests get, every one without access to anything.
const WASI: [&str; 6] = [
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
];

/// What a component exports and imports.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<String>,
}

impl Outline {
    pub(crate) fn of(component: &Component) -> Self {
        let engine = component.engine();
        let ty = component.component_type();
        let imports = ty
            .imports(engine)
            .map(|(name, _)| name.to_owned())
            .collect();
        let exports: Vec<String> = ty
            .exports(engine)
            .map(|(name, _)| name.to_owned())
            .collect();
        Self { exports, imports }
    }

    /// The kinds that a component is a plugin of, each with the name of what makes it one. A component may be one by
    /// several versions of the contract: the newest counts.
    pub(crate) fn kinds(&self) -> Vec<(Kind, &str)> {
        let newest = |kind: Kind| {
            let interface = format!("{kind}-plugin");
            let exports = self.exports.iter();
            let versions = exports.filter_map(|name| Some((served(name, &interface)?, name)));
            versions.max().map(|(_, name)| (kind, name.as_str()))
        };
        Kind::ALL.into_iter().filter_map(newest).collect()
    }

    /// The imports that a world does not have.
    pub(crate) fn foreign(&self, kind: Kind) -> Vec<String> {
        let known = |name: &str| {
            is_wasi(name)
                || served(name, "types").is_some()
                || served(name, "log").is_some()
                || served(name, &format!("{kind}-host")).is_some()
        };
        self.imports
            .iter()
            .filter(|name| !known(name))
            .cloned()
            .collect()
    }

    pub(crate) fn needs_wasi(&self) -> bool {
        self.imports.iter().any(|name| is_wasi(name))
    }
}

/// The version of the contract by which `name` is this interface, if this host serves it.
fn served(name: &str, interface: &str) -> Option<Version> {
    let rest = name
        .strip_prefix("nudge:plugin/")?
        .strip_prefix(interface)?;
    let version = Version::parse(rest.strip_prefix('@')?).ok()?;
    // Nothing was promised to what is between two versions, or before the first.
    let released = version.pre.is_empty();
    let known = matches!((version.major, version.minor), (1, _) | (0, 1));
    (released && known).then_some(version)
}

fn is_wasi(name: &str) -> bool {
    name.contains("@0.2.") && WASI.iter().any(|package| name.starts_with(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(imports: &[&str], exports: &[&str]) -> Outline {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Outline {
            imports: owned(imports),
            exports: owned(exports),
        }
    }

    fn foreign(imports: &[&str]) -> Vec<String> {
        outline(imports, &[]).foreign(Kind::Trigger)
    }

    #[test]
    fn a_world_has_its_own_imports_and_quiet_wasi() {
        let own = [
            "nudge:plugin/types@0.1.0",
            "nudge:plugin/log@0.1.7",
            "nudge:plugin/trigger-host@0.1.0",
            "nudge:plugin/trigger-host@1.0.0",
            "nudge:plugin/log@1.7.2",
            "wasi:cli/stdout@0.2.3",
        ];
        assert!(foreign(&own).is_empty());
    }

    #[test]
    fn everything_else_is_foreign() {
        let others = [
            "nudge:plugin/validation-host@1.0.0",
            "nudge:plugin/trigger-host@0.2.0",
            "nudge:plugin/trigger-host@2.0.0",
            "nudge:plugin/trigger-host@1.0.0-rc.1",
            "nudge:plugin/trigger-host-extra@1.0.0",
            "nudge:plugin/log",
            "other:plugin/log@1.0.0",
            "wasi:http/outgoing-handler@0.2.3",
            "wasi:cli/stdout@0.3.0",
            "env",
        ];
        assert_eq!(foreign(&others), others);
    }

    #[test]
    fn the_newest_of_several_versions_counts() {
        let exports = [
            "nudge:plugin/trigger-plugin@0.1.0",
            "nudge:plugin/trigger-plugin@1.10.0",
            "nudge:plugin/trigger-plugin@1.9.0",
            "nudge:plugin/trigger-plugin@2.0.0",
            "nudge:plugin/validation-plugin@0.2.0",
        ];
        let outline = outline(&[], &exports);
        assert_eq!(
            outline.kinds(),
            [(Kind::Trigger, "nudge:plugin/trigger-plugin@1.10.0")]
        );
    }
}
