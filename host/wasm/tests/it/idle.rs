//! Components of any world, every function of which traps.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{
    Function, ManglingAndAbi, Resolve, WasmExport, WasmExportKind, WasmImport, WorldId, WorldItem,
    WorldKey,
};

/// A component that targets the world `w` of this text.
pub(crate) fn component(wit: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("test.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some("w")).unwrap();
    idle(&resolve, world)
}

/// A component that targets this world. It imports all functions that the world offers.
pub(crate) fn idle(resolve: &Resolve, world: WorldId) -> Vec<u8> {
    let names = ManglingAndAbi::Standard32;
    let mut fields = Vec::new();
    for (interface, func) in functions(resolve, &resolve.worlds[world].imports) {
        let (module, name) = resolve.wasm_import_name(names, WasmImport::Func { interface, func });
        let signature = signature(resolve, AbiVariant::GuestImport, func);
        fields.push(format!(
            r#"(import "{module}" "{name}" (func {signature}))"#
        ));
    }
    let realloc = resolve.wasm_export_name(names, WasmExport::Realloc);
    let memory = resolve.wasm_export_name(names, WasmExport::Memory);
    let initialize = resolve.wasm_export_name(names, WasmExport::Initialize);
    fields.push(format!(
        r#"(memory (export "{memory}") 0)
        (func (export "{realloc}") (param i32 i32 i32 i32) (result i32) unreachable)
        (func (export "{initialize}"))"#
    ));
    for (interface, func) in functions(resolve, &resolve.worlds[world].exports) {
        let kind = WasmExportKind::Normal;
        let name = resolve.wasm_export_name(
            names,
            WasmExport::Func {
                interface,
                func,
                kind,
            },
        );
        let signature = signature(resolve, AbiVariant::GuestExport, func);
        fields.push(format!(
            r#"(func (export "{name}") {signature} unreachable)"#
        ));
    }
    let mut module = wat::parse_str(format!("(module {})", fields.concat())).unwrap();
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
}

/// The functions among these, each with the interface that it belongs to.
fn functions<'a>(
    resolve: &'a Resolve,
    items: impl IntoIterator<Item = (&'a WorldKey, &'a WorldItem)>,
) -> Vec<(Option<&'a WorldKey>, &'a Function)> {
    let mut all = Vec::new();
    for (key, item) in items {
        match item {
            WorldItem::Interface { id, .. } => {
                let functions = resolve.interfaces[*id].functions.values();
                all.extend(functions.map(|function| (Some(key), function)));
            }
            WorldItem::Function(function) => all.push((None, function)),
            WorldItem::Type { .. } => {}
        }
    }
    all
}

fn signature(resolve: &Resolve, variant: AbiVariant, function: &Function) -> String {
    let signature = resolve.wasm_signature(variant, function);
    let types = |types: &[WasmType]| {
        let names = types.iter().map(|one| match one {
            WasmType::I64 | WasmType::PointerOrI64 => "i64",
            WasmType::F32 => "f32",
            WasmType::F64 => "f64",
            WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
        });
        names.collect::<Vec<_>>().join(" ")
    };
    format!(
        "(param {}) (result {})",
        types(&signature.params),
        types(&signature.results)
    )
}
