//! The three worlds, alike: what each exports, what all may import.

use wasmtime::Store;
use wasmtime::component::{
    self, ComponentExportIndex, HasSelf, InstancePre, Linker, Resource, TypedFunc,
};

use crate::bindings::types::{Description, Problem, Reads, Refusal};
use crate::bindings::{log, personalization_host, trigger_host, types, validation_host};
use crate::host;
use crate::imports::{SERVED, interface};
use crate::kind::Kind;
use crate::store::State;

/// The name of the function that decides.
fn decide(kind: Kind) -> &'static str {
    match kind {
        Kind::Trigger => "evaluate",
        Kind::Validation => "validate",
        Kind::Personalization => "resolve",
    }
}

/// A component whose imports are resolved, and where its exports are.
pub(crate) struct Pre {
    linked: InstancePre<State>,
    describe: ComponentExportIndex,
    check_config: ComponentExportIndex,
    decide: ComponentExportIndex,
}

impl Pre {
    /// Finds the functions of the interface that the component exports under `plugin`.
    pub(crate) fn new(
        linked: InstancePre<State>,
        kind: Kind,
        plugin: &str,
    ) -> wasmtime::Result<Self> {
        let component = linked.component();
        let Some(interface) = component.get_export_index(None, plugin) else {
            wasmtime::bail!("it does not export {plugin}");
        };
        let function = |name: &str| {
            let found = component.get_export_index(Some(&interface), name);
            found.ok_or_else(|| wasmtime::format_err!("its {plugin} does not export {name}"))
        };
        Ok(Self {
            describe: function("describe")?,
            check_config: function("check-config")?,
            decide: function(decide(kind))?,
            linked,
        })
    }

    /// Makes an instance. Its functions are looked up when they are called: a decision needs one of them.
    pub(crate) fn start(&self, store: &mut Store<State>) -> wasmtime::Result<Instance<'_>> {
        let instance = self.linked.instantiate(store)?;
        Ok(self.around(instance))
    }

    /// An instance that was made before.
    pub(crate) fn around(&self, instance: component::Instance) -> Instance<'_> {
        Instance {
            pre: self,
            instance,
        }
    }
}

/// What a check of a configuration answers.
type Checked = Result<Reads, Vec<Problem>>;

type Describe = TypedFunc<(), (Description,)>;
type CheckConfig = TypedFunc<(String,), (Checked,)>;
type Decide = TypedFunc<(Resource<host::Batch>,), (Result<(), Refusal>,)>;

/// A plugin that runs.
pub(crate) struct Instance<'a> {
    pre: &'a Pre,
    instance: component::Instance,
}

impl Instance<'_> {
    pub(crate) fn into_inner(self) -> component::Instance {
        self.instance
    }

    /// Asks the plugin what it is. Fails where any function of it is not of the contract's form, so that this
    /// shows when a component is loaded.
    pub(crate) fn describe(&self, store: &mut Store<State>) -> wasmtime::Result<Description> {
        let describe: Describe = self
            .instance
            .get_typed_func(&mut *store, self.pre.describe)?;
        let _: CheckConfig = self
            .instance
            .get_typed_func(&mut *store, self.pre.check_config)?;
        let _: Decide = self.instance.get_typed_func(&mut *store, self.pre.decide)?;
        describe.call(store, ()).map(|(said,)| said)
    }

    pub(crate) fn check_config(
        &self,
        store: &mut Store<State>,
        config: &str,
    ) -> wasmtime::Result<Checked> {
        let check: CheckConfig = self
            .instance
            .get_typed_func(&mut *store, self.pre.check_config)?;
        let checked = check.call(store, (config.to_owned(),));
        checked.map(|(checked,)| checked)
    }

    pub(crate) fn decide(&self, store: &mut Store<State>) -> wasmtime::Result<Result<(), Refusal>> {
        let decide: Decide = self.instance.get_typed_func(&mut *store, self.pre.decide)?;
        let decided = decide.call(store, (host::borrowed_batch(),));
        decided.map(|(decided,)| decided)
    }
}

/// What components are linked with. Most plugins do without WASI, which makes every instance slower.
///
/// All worlds have the same linkers: what a world does not have is refused before
/// ([`Outline::foreign`](crate::imports::Outline::foreign)).
pub(crate) struct Linkers {
    plain: Linker<State>,
    with_wasi: Linker<State>,
}

impl Linkers {
    pub(crate) fn new(engine: &wasmtime::Engine) -> wasmtime::Result<Self> {
        let mut plain = Linker::new(engine);
        for version in SERVED {
            macro_rules! add {
                ($interface:ident, $name:literal) => {
                    $interface::add_to_linker_instance::<State, HasSelf<State>>(
                        &mut plain.instance(&interface($name, version))?,
                        |state| state,
                    )?;
                };
            }
            add!(types, "types");
            add!(log, "log");
            add!(trigger_host, "trigger-host");
            add!(validation_host, "validation-host");
            add!(personalization_host, "personalization-host");
        }
        let mut with_wasi = plain.clone();
        host::wasi::link(&mut with_wasi)?;
        Ok(Self { plain, with_wasi })
    }

    pub(crate) fn for_imports(&self, wasi: bool) -> &Linker<State> {
        if wasi { &self.with_wasi } else { &self.plain }
    }
}
