//! What a component says of itself before it runs: its kind, and what it imports.

use wasmtime::component::Component;

use crate::kind::Kind;

/// The version of the contract that this host speaks. Components of any patch of it link.
const CONTRACT: (u64, u64) = (0, 1);

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
    pub(crate) kinds: Vec<Kind>,
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
        let exported = |kind: &Kind| {
            let interface = format!("nudge:plugin/{kind}-plugin");
            exports.iter().any(|name| is_of_contract(name, &interface))
        };
        let kinds = Kind::ALL.into_iter().filter(exported).collect();
        Self {
            kinds,
            exports,
            imports,
        }
    }

    /// The imports that a world does not have.
    pub(crate) fn foreign(&self, kind: Kind) -> Vec<String> {
        let known = |name: &str| {
            is_wasi(name)
                || is_of_contract(name, "nudge:plugin/types")
                || is_of_contract(name, "nudge:plugin/log")
                || is_of_contract(name, &format!("nudge:plugin/{kind}-host"))
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

fn is_of_contract(name: &str, interface: &str) -> bool {
    let version = name
        .strip_prefix(interface)
        .and_then(|rest| rest.strip_prefix('@'));
    let version = version.and_then(|version| semver::Version::parse(version).ok());
    version.is_some_and(|version| (version.major, version.minor) == CONTRACT)
}

fn is_wasi(name: &str) -> bool {
    name.contains("@0.2.") && WASI.iter().any(|package| name.starts_with(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(imports: &[&str]) -> Vec<String> {
        let imports = imports.iter().map(|name| (*name).to_owned()).collect();
        Outline {
            kinds: Vec::new(),
            exports: Vec::new(),
            imports,
        }
        .foreign(Kind::Trigger)
    }

    #[test]
    fn a_world_has_its_own_imports_and_quiet_wasi() {
        let own = [
            "nudge:plugin/types@0.1.0",
            "nudge:plugin/log@0.1.7",
            "nudge:plugin/trigger-host@0.1.0",
            "wasi:cli/stdout@0.2.3",
        ];
        assert!(foreign(&own).is_empty());
    }

    #[test]
    fn everything_else_is_foreign() {
        let others = [
            "nudge:plugin/validation-host@0.1.0",
            "nudge:plugin/trigger-host@0.2.0",
            "nudge:plugin/trigger-host-extra@0.1.0",
            "nudge:plugin/log",
            "wasi:http/outgoing-handler@0.2.3",
            "wasi:cli/stdout@0.3.0",
            "env",
        ];
        assert_eq!(foreign(&others), others);
    }
}
