//! `QuickJS`: bytecode made when this program was compiled. The limits are the runtime's own: memory, and a handler that the
//! interpreter asks every so often whether to stop.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use rquickjs::loader::Bundle;
use rquickjs::{Context, Ctx, Function, Module, Object, Persistent, Runtime, embed};

use super::events::{Events, joined};
use super::{DEADLINE, MEMORY, Round, timed};

/// The compiled module.
static MODULES: Bundle = embed! {
    "trigger": "src/triggers/trigger.js",
};

/// A runtime and its context.
struct Engine {
    context: Context,
    deadline: Rc<Cell<Instant>>,
}

/// A context with the loaded function, which has to go before its runtime.
struct Loaded {
    evaluate: Persistent<Function<'static>>,
    engine: Engine,
}

/// One context for all calls.
pub(super) fn reused(events: &Events) -> anyhow::Result<Round<'_>> {
    let loaded = Loaded::new()?;
    Ok(Box::new(move |calls| {
        timed(events, calls, |texts| Ok(loaded.call(texts)?))
    }))
}

/// A runtime, a context and the loaded module for each call.
pub(super) fn fresh(events: &Events) -> Round<'_> {
    Box::new(|calls| {
        timed(events, calls, |texts| {
            let engine = Engine::new()?;
            let fired = engine
                .context
                .with(|context| load(&context)?.call((joined(texts),)));
            Ok(fired?)
        })
    })
}

impl Loaded {
    fn new() -> rquickjs::Result<Self> {
        let engine = Engine::new()?;
        let evaluate = engine.context.with(|context| {
            let function = load(&context)?;
            Ok::<_, rquickjs::Error>(Persistent::save(&context, function))
        })?;
        Ok(Self { evaluate, engine })
    }

    fn call(&self, texts: &[String]) -> rquickjs::Result<Vec<u32>> {
        self.engine.deadline.set(Instant::now() + DEADLINE);
        self.engine.context.with(|context| {
            let evaluate = self.evaluate.clone().restore(&context)?;
            evaluate.call((joined(texts),))
        })
    }
}

impl Engine {
    fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(MEMORY);
        let deadline = Rc::new(Cell::new(Instant::now() + DEADLINE));
        let until = Rc::clone(&deadline);
        runtime.set_interrupt_handler(Some(Box::new(move || Instant::now() > until.get())));
        runtime.set_loader(MODULES, MODULES);
        let context = Context::full(&runtime)?;
        Ok(Self { context, deadline })
    }
}

fn load<'js>(context: &Ctx<'js>) -> rquickjs::Result<Function<'js>> {
    let module: Object<'js> = Module::import(context, "trigger")?.finish()?;
    module.get("evaluate")
}
