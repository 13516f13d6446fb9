//! The bindings are what wit-bindgen makes of the contract, and below them the trait of a host, with the same functions.
//! They stand in the repository so that plugins compile without wit-bindgen, which takes longer than all else that they
//! need.

#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

use std::path::Path;

use quote::{format_ident, quote};
use syn::{FnArg, ImplItem, ImplItemFn, Item, Pat, Type, Visibility};
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

/// The items of the module at a path.
fn items_at<'f>(items: &'f [Item], path: &[&str]) -> &'f [Item] {
    let Some((first, rest)) = path.split_first() else {
        return items;
    };
    let module = items.iter().find_map(|item| match item {
        Item::Mod(module) if module.ident == first => module.content.as_ref(),
        _ => None,
    });
    items_at(&module.unwrap().1, rest)
}

/// The functions of the contract's resource `batch`. Only these have comments, which are the contract's.
fn functions(items: &[Item]) -> Vec<&ImplItemFn> {
    let of_batch = items.iter().filter_map(|item| match item {
        Item::Impl(of) if of.trait_.is_none() && is_batch(&of.self_ty) => Some(&of.items),
        _ => None,
    });
    let functions = of_batch.flatten().filter_map(|item| match item {
        ImplItem::Fn(function) if matches!(function.vis, Visibility::Public(_)) => Some(function),
        _ => None,
    });
    let described = |function: &&ImplItemFn| {
        let mut about = function.attrs.iter();
        about.any(|attribute| {
            attribute.path().is_ident("doc") && attribute.meta.require_name_value().is_ok()
        })
    };
    functions.filter(described).collect()
}

fn is_batch(of: &Type) -> bool {
    matches!(of, Type::Path(path) if path.path.is_ident("Batch"))
}

/// The trait of a world's host. In a component the server's batch has it, in a unit test one in memory.
fn host(world: &str, bindings: &str) -> String {
    let file = syn::parse_file(bindings).unwrap();
    let interface = format!("{world}_host");
    let functions = functions(items_at(&file.items, &["nudge", "plugin", &interface]));
    let asked = functions.iter().map(|function| {
        let signature = &function.sig;
        let about = function
            .attrs
            .iter()
            .filter(|about| about.path().is_ident("doc"));
        quote!(#(#about)* #signature;)
    });
    let answered = functions.iter().map(|function| {
        let signature = &function.sig;
        let name = &signature.ident;
        let arguments = signature
            .inputs
            .iter()
            .filter_map(|argument| match argument {
                FnArg::Typed(argument) => match &*argument.pat {
                    Pat::Ident(name) => Some(&name.ident),
                    _ => None,
                },
                FnArg::Receiver(_) => None,
            });
        quote!(#signature { Batch::#name(self, #(#arguments),*) })
    });
    let (first, rest) = world.split_at(1);
    let name = format_ident!("{}{rest}Host", first.to_uppercase());
    let interface = format_ident!("{interface}");
    let about = format!(
        " The functions of `{world}-host.batch`. A component has the server's batch, a unit test one in memory."
    );
    let module = syn::parse2(quote! {
        #[allow(clippy::all)]
        pub mod host {
            use super::_rt;
            use super::nudge::plugin::#interface::*;

            #[doc = #about]
            pub trait #name { #(#asked)* }

            impl #name for Batch { #(#answered)* }
        }
    });
    prettyplease::unparse(&module.unwrap())
}

#[test]
fn bindings_are_of_the_contract() {
    for world in ["trigger", "validation", "personalization"] {
        let file = Path::new("src/bindings").join(world).with_extension("rs");
        let made = bindings(world);
        let made = format!("{made}\n{}", host(world, &made));
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
