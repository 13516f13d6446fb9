//! The contract grows, and nothing that compiled plugins count on ever changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wit_parser::{Function, Handle, Resolve, Type, TypeDefKind, TypeId, WorldItem, WorldKey};

use crate::kept::versions;

/// What a package promises: everything by name, and how it is spelled out.
#[derive(Debug, Default, PartialEq)]
struct Contract {
    /// What plugins may use. More can be added.
    offered: BTreeMap<String, String>,
    /// What plugins must have. Plugins that are compiled already will never have more.
    asked: BTreeMap<String, String>,
}

impl Contract {
    fn read(folder: &Path) -> Self {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(folder).unwrap();
        let package = &resolve.packages[package];
        let mut contract = Self::default();
        let mut exported = Vec::new();
        for (name, world) in &package.worlds {
            let world = &resolve.worlds[*world];
            for (key, item) in &world.imports {
                let place = format!("world {name} imports {}", spell_key(&resolve, key));
                contract.offered.insert(place, String::new());
                assert!(matches!(item, WorldItem::Interface { .. }), "{key:?}");
            }
            for (key, item) in &world.exports {
                let place = format!("world {name} exports {}", spell_key(&resolve, key));
                contract.asked.insert(place, String::new());
                let WorldItem::Interface { id, .. } = item else {
                    panic!("{key:?}")
                };
                exported.push(*id);
            }
        }
        for (name, id) in &package.interfaces {
            let interface = &resolve.interfaces[*id];
            let list = if exported.contains(id) {
                &mut contract.asked
            } else {
                &mut contract.offered
            };
            for (ty, id) in &interface.types {
                let kind = &resolve.types[*id].kind;
                list.insert(format!("{name}.{ty}"), spell_kind(&resolve, kind));
            }
            for (function, signature) in &interface.functions {
                list.insert(
                    format!("{name}.{function}"),
                    spell_function(&resolve, signature),
                );
            }
        }
        contract
    }

    /// What a plugin that was compiled for `self` would miss in `later`, or be asked for.
    fn broken_by(&self, later: &Self) -> Vec<String> {
        let mut broken = Vec::new();
        for (place, promise) in self.offered.iter().chain(&self.asked) {
            let kept = later.offered.get(place).or_else(|| later.asked.get(place));
            if kept != Some(promise) {
                broken.push(format!("{place}: {promise} became {kept:?}"));
            }
        }
        let more = later
            .asked
            .keys()
            .filter(|place| !self.asked.contains_key(*place));
        broken.extend(more.map(|place| format!("{place} is asked for")));
        broken
    }
}

fn spell_key(resolve: &Resolve, key: &WorldKey) -> String {
    match key {
        WorldKey::Name(name) => name.clone(),
        WorldKey::Interface(id) => resolve.interfaces[*id].name.clone().unwrap(),
    }
}

fn spell_function(resolve: &Resolve, function: &Function) -> String {
    let parameters: Vec<String> = function
        .params
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, spell(resolve, &parameter.ty)))
        .collect();
    let result = function
        .result
        .as_ref()
        .map_or("nothing".to_owned(), |ty| spell(resolve, ty));
    format!(
        "{:?} ({}) -> {result}",
        function.kind.resource().map(|id| spell_id(resolve, id)),
        parameters.join(", ")
    )
}

fn spell(resolve: &Resolve, ty: &Type) -> String {
    match ty {
        Type::Id(id) => spell_id(resolve, *id),
        primitive => format!("{primitive:?}"),
    }
}

fn spell_id(resolve: &Resolve, id: TypeId) -> String {
    let ty = &resolve.types[id];
    match &ty.name {
        Some(name) => name.clone(),
        None => spell_kind(resolve, &ty.kind),
    }
}

fn spell_kind(resolve: &Resolve, kind: &TypeDefKind) -> String {
    let optional = |ty: &Option<Type>| {
        ty.as_ref()
            .map_or("nothing".to_owned(), |ty| spell(resolve, ty))
    };
    match kind {
        TypeDefKind::Record(record) => {
            let fields = record
                .fields
                .iter()
                .map(|it| format!("{}: {}", it.name, spell(resolve, &it.ty)));
            format!("record {:?}", fields.collect::<Vec<_>>())
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant
                .cases
                .iter()
                .map(|it| format!("{}: {}", it.name, optional(&it.ty)));
            format!("variant {:?}", cases.collect::<Vec<_>>())
        }
        TypeDefKind::Enum(cases) => {
            format!(
                "enum {:?}",
                cases.cases.iter().map(|it| &it.name).collect::<Vec<_>>()
            )
        }
        TypeDefKind::Tuple(tuple) => {
            format!(
                "tuple {:?}",
                tuple
                    .types
                    .iter()
                    .map(|ty| spell(resolve, ty))
                    .collect::<Vec<_>>()
            )
        }
        TypeDefKind::Option(ty) => format!("option<{}>", spell(resolve, ty)),
        TypeDefKind::List(ty) => format!("list<{}>", spell(resolve, ty)),
        TypeDefKind::Type(ty) => format!("alias of {}", spell(resolve, ty)),
        TypeDefKind::Result(result) => {
            format!(
                "result<{}, {}>",
                optional(&result.ok),
                optional(&result.err)
            )
        }
        TypeDefKind::Handle(Handle::Own(id)) => format!("own<{}>", spell_id(resolve, *id)),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", spell_id(resolve, *id)),
        TypeDefKind::Resource => "resource".to_owned(),
        other => panic!("teach this test to spell a {}", other.as_str()),
    }
}

#[test]
fn nothing_that_was_released_has_changed() {
    let now = Contract::read(Path::new("../../wit"));
    for version in versions() {
        let released = Contract::read(&version.join("wit"));
        assert!(released.offered.len() > 50, "{released:?}");
        assert!(released.asked.len() >= 12, "{released:?}");
        assert_eq!(
            released.broken_by(&now),
            Vec::<String>::new(),
            "{}",
            version.display()
        );
    }
}

/// The contract with one text in place of another.
fn changed(from: &str, to: &str) -> Contract {
    let folder = tempfile::tempdir().unwrap();
    let mut found = 0;
    for entry in fs::read_dir("../../wit").unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        found += text.matches(from).count();
        let file = folder.path().join(path.file_name().unwrap());
        fs::write(file, text.replacen(from, to, 1)).unwrap();
    }
    assert!(found > 0, "{from}");
    Contract::read(folder.path())
}

#[test]
fn additions_are_told_from_changes() {
    let now = Contract::read(Path::new("../../wit"));
    let additions = [
        (
            "names: func() -> list<string>;",
            "names: func() -> list<string>; more-names: func() -> list<string>;",
        ),
        (
            "interface log {",
            "interface more { ask: func() -> bool; } interface log {",
        ),
        ("interface log {", "interface log { flush: func();"),
        (
            "record history {",
            "record later { one: u32 } record history {",
        ),
    ];
    for (from, to) in additions {
        assert_eq!(
            now.broken_by(&changed(from, to)),
            Vec::<String>::new(),
            "{to}"
        );
    }
    let changes = [
        ("names: func() -> list<string>;", ""),
        (
            "names: func() -> list<string>;",
            "names: func() -> list<u32>;",
        ),
        (
            "campaign-id: func(campaign: u32)",
            "campaign-id: func(campaign: u64)",
        ),
        (
            "campaign-id: func(campaign: u32)",
            "campaign-id: func(number: u32)",
        ),
        (
            "campaign-id: func(campaign: u32)",
            "campaign-id: func(campaign: u32, more: bool)",
        ),
        (
            "event-names: list<string>,",
            "event-names: list<string>, another: bool,",
        ),
        ("        summary: string,\n", ""),
        ("        number(f64),", "        number(f64), whole(s64),"),
        ("        error,\n", "        error,\n        fatal,\n"),
        ("type instant = s64;", "type instant = u64;"),
        (
            "describe: func() -> description;",
            "describe: func() -> description; test: func();",
        ),
        ("evaluate: func", "decide: func"),
        ("world trigger {", "world trigger { export log;"),
        ("    import log;\n", ""),
    ];
    for (from, to) in changes {
        assert_ne!(
            now.broken_by(&changed(from, to)),
            Vec::<String>::new(),
            "{from} -> {to}"
        );
    }
}
