//! The three worlds, alike: what each exports, what each may import.

use wasmtime::Store;
use wasmtime::component::{HasSelf, InstancePre, Linker};

use crate::bindings::types::{Description, Problem, Reads, Refusal};
use crate::bindings::{personalization, trigger, validation};
use crate::host;
use crate::kind::Kind;
use crate::store::State;

/// A world of the contract, as its instances.
pub(crate) trait World: Sized + 'static {
    /// What the host keeps of a batch.
    type View: Send + 'static;
    /// A component whose imports are resolved.
    type Pre: Send + Sync + 'static;

    const KIND: Kind;

    /// Adds the world's own imports.
    fn link(linker: &mut Linker<State<Self::View>>) -> wasmtime::Result<()>;

    /// Checks that a component exports what the world asks for.
    fn prepare(pre: InstancePre<State<Self::View>>) -> wasmtime::Result<Self::Pre>;

    fn start(pre: &Self::Pre, store: &mut Store<State<Self::View>>) -> wasmtime::Result<Self>;

    fn describe(&self, store: &mut Store<State<Self::View>>) -> wasmtime::Result<Description>;

    fn check_config(
        &self,
        store: &mut Store<State<Self::View>>,
        config: &str,
    ) -> wasmtime::Result<Result<Reads, Vec<Problem>>>;

    fn decide(&self, store: &mut Store<State<Self::View>>)
    -> wasmtime::Result<Result<(), Refusal>>;
}

macro_rules! world {
    ($kind:ident, $module:ident, $world:ident, $pre:ident, $plugin:ident, $decide:ident) => {
        impl World for $module::$world {
            type View = host::$module::View;
            type Pre = $module::$pre<State<Self::View>>;

            const KIND: Kind = Kind::$kind;

            fn link(linker: &mut Linker<State<Self::View>>) -> wasmtime::Result<()> {
                Self::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
            }

            fn prepare(pre: InstancePre<State<Self::View>>) -> wasmtime::Result<Self::Pre> {
                $module::$pre::new(pre)
            }

            fn start(
                pre: &Self::Pre,
                store: &mut Store<State<Self::View>>,
            ) -> wasmtime::Result<Self> {
                pre.instantiate(store)
            }

            fn describe(
                &self,
                store: &mut Store<State<Self::View>>,
            ) -> wasmtime::Result<Description> {
                self.$plugin().call_describe(store)
            }

            fn check_config(
                &self,
                store: &mut Store<State<Self::View>>,
                config: &str,
            ) -> wasmtime::Result<Result<Reads, Vec<Problem>>> {
                self.$plugin().call_check_config(store, config)
            }

            fn decide(
                &self,
                store: &mut Store<State<Self::View>>,
            ) -> wasmtime::Result<Result<(), Refusal>> {
                self.$plugin().$decide(store, host::borrowed_batch())
            }
        }
    };
}

world!(
    Trigger,
    trigger,
    Trigger,
    TriggerPre,
    nudge_plugin_trigger_plugin,
    call_evaluate
);
world!(
    Validation,
    validation,
    Validation,
    ValidationPre,
    nudge_plugin_validation_plugin,
    call_validate
);
world!(
    Personalization,
    personalization,
    Personalization,
    PersonalizationPre,
    nudge_plugin_personalization_plugin,
    call_resolve
);

/// A world's linkers: most plugins do without WASI, which makes every instance slower.
pub(crate) struct Linkers<W: World> {
    plain: Linker<State<W::View>>,
    with_wasi: Linker<State<W::View>>,
}

impl<W: World> Linkers<W> {
    pub(crate) fn new(engine: &wasmtime::Engine) -> wasmtime::Result<Self> {
        let mut plain = Linker::new(engine);
        W::link(&mut plain)?;
        let mut with_wasi = plain.clone();
        host::wasi::link(&mut with_wasi)?;
        Ok(Self { plain, with_wasi })
    }

    pub(crate) fn for_imports(&self, wasi: bool) -> &Linker<State<W::View>> {
        if wasi { &self.with_wasi } else { &self.plain }
    }
}
