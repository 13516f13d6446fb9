//! The three worlds, alike: what each exports, what each may import.

use wasmtime::Store;
use wasmtime::component::{
    self, ComponentExportIndex, HasSelf, InstancePre, Linker, LinkerInstance, Resource, TypedFunc,
};

use crate::bindings::types::{Description, Problem, Reads, Refusal};
use crate::bindings::{log, personalization_host, trigger_host, types, validation_host};
use crate::host;
use crate::imports::{SERVED, interface};
use crate::kind::Kind;
use crate::store::State;

/// A world of the contract.
pub(crate) trait World: 'static {
    /// What the host keeps of a batch.
    type View: Send + 'static;

    const KIND: Kind;

    /// The name of the function that decides.
    const DECIDE: &str;

    /// Adds what only plugins of this world are told, and what only they may ask for.
    fn link(host: &mut LinkerInstance<State<Self::View>>) -> wasmtime::Result<()>;
}

macro_rules! world {
    ($world:ident, $view:path, $decide:literal, $host:ident) => {
        /// The world of that name.
        pub(crate) enum $world {}

        impl World for $world {
            type View = $view;

            const KIND: Kind = Kind::$world;
            const DECIDE: &str = $decide;

            fn link(host: &mut LinkerInstance<State<Self::View>>) -> wasmtime::Result<()> {
                $host::add_to_linker_instance::<_, HasSelf<_>>(host, |state| state)
            }
        }
    };
}

world!(Trigger, host::trigger::View, "evaluate", trigger_host);
world!(
    Validation,
    host::validation::View,
    "validate",
    validation_host
);
world!(
    Personalization,
    host::personalization::View,
    "resolve",
    personalization_host
);

/// A component whose imports are resolved, and where its exports are.
pub(crate) struct Pre<W: World> {
    linked: InstancePre<State<W::View>>,
    describe: ComponentExportIndex,
    check_config: ComponentExportIndex,
    decide: ComponentExportIndex,
}

impl<W: World> Pre<W> {
    /// Finds the functions of the interface that the component exports under `plugin`.
    pub(crate) fn new(linked: InstancePre<State<W::View>>, plugin: &str) -> wasmtime::Result<Self> {
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
            decide: function(W::DECIDE)?,
            linked,
        })
    }

    /// Makes an instance. Its functions are looked up when they are called: a decision needs one of them.
    pub(crate) fn start(
        &self,
        store: &mut Store<State<W::View>>,
    ) -> wasmtime::Result<Instance<'_, W>> {
        let instance = self.linked.instantiate(store)?;
        Ok(Instance {
            pre: self,
            instance,
        })
    }
}

/// What a check of a configuration answers.
type Checked = Result<Reads, Vec<Problem>>;

type Describe = TypedFunc<(), (Description,)>;
type CheckConfig = TypedFunc<(String,), (Checked,)>;
type Decide = TypedFunc<(Resource<host::Batch>,), (Result<(), Refusal>,)>;

/// A plugin that runs.
pub(crate) struct Instance<'a, W: World> {
    pre: &'a Pre<W>,
    instance: component::Instance,
}

impl<W: World> Instance<'_, W> {
    /// Asks the plugin what it is. Fails where any function of it is not of the contract's form, so that this
    /// shows when a component is loaded.
    pub(crate) fn describe(
        &self,
        store: &mut Store<State<W::View>>,
    ) -> wasmtime::Result<Description> {
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
        store: &mut Store<State<W::View>>,
        config: &str,
    ) -> wasmtime::Result<Checked> {
        let check: CheckConfig = self
            .instance
            .get_typed_func(&mut *store, self.pre.check_config)?;
        let checked = check.call(store, (config.to_owned(),));
        checked.map(|(checked,)| checked)
    }

    pub(crate) fn decide(
        &self,
        store: &mut Store<State<W::View>>,
    ) -> wasmtime::Result<Result<(), Refusal>> {
        let decide: Decide = self.instance.get_typed_func(&mut *store, self.pre.decide)?;
        let decided = decide.call(store, (host::borrowed_batch(),));
        decided.map(|(decided,)| decided)
    }
}

/// A world's linkers: most plugins do without WASI, which makes every instance slower.
pub(crate) struct Linkers<W: World> {
    plain: Linker<State<W::View>>,
    with_wasi: Linker<State<W::View>>,
}

impl<W: World> Linkers<W> {
    pub(crate) fn new(engine: &wasmtime::Engine) -> wasmtime::Result<Self> {
        let mut plain = Linker::new(engine);
        for version in SERVED {
            let types = &mut plain.instance(&interface("types", version))?;
            types::add_to_linker_instance::<_, HasSelf<_>>(types, |state| state)?;
            let log = &mut plain.instance(&interface("log", version))?;
            log::add_to_linker_instance::<_, HasSelf<_>>(log, |state| state)?;
            let host = format!("{}-host", W::KIND);
            W::link(&mut plain.instance(&interface(&host, version))?)?;
        }
        let mut with_wasi = plain.clone();
        host::wasi::link(&mut with_wasi)?;
        Ok(Self { plain, with_wasi })
    }

    pub(crate) fn for_imports(&self, wasi: bool) -> &Linker<State<W::View>> {
        if wasi { &self.with_wasi } else { &self.plain }
    }
}
