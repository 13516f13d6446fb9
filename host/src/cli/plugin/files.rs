//! The files that projects are made of.

include!(concat!(env!("OUT_DIR"), "/authoring.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'f>(files: &'f [(&str, &str)], path: &str) -> &'f str {
        let found = files.iter().find(|(known, _)| *known == path);
        found.unwrap_or_else(|| panic!("{path} is not embedded")).1
    }

    /// The SDK's manifest in the workspace inherits its versions; the one in projects can't.
    #[test]
    fn the_sdk_of_projects_has_the_dependencies_of_the_workspace() {
        let workspace: toml::Table = include_str!("../../../../Cargo.toml").parse().unwrap();
        let inherited: toml::Table = text(SDK, "Cargo.toml").parse().unwrap();
        let given: toml::Table = text(TEMPLATES, "sdk/Cargo.toml.in").parse().unwrap();
        let of_workspace = workspace["workspace"]["dependencies"].as_table().unwrap();
        let given = given["dependencies"].as_table().unwrap();
        let names: Vec<&String> = inherited["dependencies"]
            .as_table()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(given.keys().collect::<Vec<_>>(), names);
        for (name, dependency) in given {
            let normal = |value: &toml::Value| match value {
                toml::Value::String(version) => {
                    toml::Table::from_iter([("version".to_owned(), version.clone().into())]).into()
                }
                value => value.clone(),
            };
            assert_eq!(normal(dependency), normal(&of_workspace[name]), "{name}");
        }
    }

    #[test]
    fn the_contract_and_the_helpers_are_embedded() {
        assert!(text(WIT, "types.wit").contains("package nudge:plugin@"));
        for (files, path) in [
            (SDK, "src/lib.rs"),
            (SDK, "javascript/nudge.js"),
            (SDK, "python/nudge.py"),
            (SDK, "c/nudge.h"),
            (SDK, "cases.schema.json"),
        ] {
            assert!(!text(files, path).is_empty());
        }
    }
}
