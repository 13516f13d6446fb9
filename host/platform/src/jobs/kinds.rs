//! The kinds of jobs that a server knows. The features that run them are above this package and hand them in.

use std::collections::HashMap;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{Error, RunningJob};

/// A job on its way to its result.
pub type Run<'a> = BoxFuture<'a, Result<Value, Error>>;

/// How jobs of one kind are run.
type Runs = Box<dyn for<'a> Fn(&'a mut RunningJob) -> Run<'a> + Send + Sync>;

/// Every kind of job, by name.
#[derive(Default)]
pub struct Kinds(HashMap<&'static str, Runs>);

impl Kinds {
    /// Adds a kind: its name, the state that it takes, and the function that runs it.
    pub fn add<S: Clone + Send + Sync + 'static>(
        &mut self,
        name: &'static str,
        state: &S,
        run: for<'a> fn(&'a S, &'a mut RunningJob) -> Run<'a>,
    ) {
        let state = state.clone();
        let runs: Runs = Box::new(move |job| {
            let state = state.clone();
            Box::pin(async move { run(&state, job).await })
        });
        self.0.insert(name, runs);
    }

    /// The names of all.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.keys().copied().collect()
    }

    /// Runs a job to its end; answers its result.
    pub(super) async fn run(&self, job: &mut RunningJob) -> Result<Value, Error> {
        let Some(run) = self.0.get(job.kind.as_str()) else {
            let unknown = &job.kind;
            return Err(Error::Failed(format!("no such kind of job: {unknown}")));
        };
        run(job).await
    }
}
