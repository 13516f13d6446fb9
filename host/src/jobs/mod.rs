//! Every kind of job that the server knows: the only place where they are registered.

pub mod http;

use nudge_apps::campaigns::survey_removal;
use nudge_apps::deletion;
use nudge_campaigns::segments::looking;
use nudge_campaigns::surveys::removal;
use nudge_people::privacy;
use nudge_pipeline::segments::job as segments;
use nudge_pipeline::{backtest, runs};
use nudge_platform::jobs::Kinds;
use nudge_push::webhooks;

use crate::dead_letters::bulk;
use crate::services::Shared;

/// Adds a kind: its name, the state that it takes, and the function that runs it.
macro_rules! add {
    ($kinds:ident, $name:expr, $state:expr, $run:path) => {
        let state = $state.clone();
        $kinds.add($name, move |job| {
            let state = state.clone();
            Box::pin(async move { $run(&state, job).await })
        });
    };
}

/// Every kind of job.
pub fn kinds(services: &Shared) -> Kinds {
    let mut kinds = Kinds::default();
    add!(kinds, bulk::REPLAY, services, bulk::run_replay);
    add!(kinds, bulk::ACKNOWLEDGE, services, bulk::run_acknowledge);
    add!(kinds, backtest::KIND, services.pipeline(), backtest::run);
    add!(kinds, deletion::KIND, services.apps(), deletion::run);
    add!(kinds, runs::job::KIND, services.pipeline(), runs::job::run);
    add!(
        kinds,
        privacy::exports::KIND,
        services.records(),
        privacy::exports::run
    );
    add!(
        kinds,
        privacy::deletion::KIND,
        services.records(),
        privacy::deletion::run
    );
    add!(
        kinds,
        webhooks::clear::KIND,
        services.push,
        webhooks::clear::run
    );
    add!(
        kinds,
        webhooks::recover::KIND,
        services.push,
        webhooks::recover::run
    );
    add!(kinds, looking::KIND, services.pipeline(), segments::run);
    add!(
        kinds,
        segments::FORGET,
        services.pipeline(),
        segments::run_forgetting
    );
    for kind in [removal::KIND, removal::CAMPAIGN_KIND] {
        add!(kinds, kind, services.apps(), survey_removal::run);
    }
    kinds
}
