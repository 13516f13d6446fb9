//! What plugins can call: one file an imported interface.

mod history;
mod log;
pub(crate) mod personalization;
mod random;
pub(crate) mod trigger;
pub(crate) mod validation;
pub(crate) mod wasi;

use wasmtime::component::Resource;

use crate::failure::Stop;
use crate::limits::PATHS;

/// The host's side of every `batch` resource. It is empty: a store has one batch, and guests only ever
/// borrow it.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Batch;

/// The handle to pass to a guest. A borrow of a number that is in no table: an owned one would leave a
/// handle behind with each call.
pub(crate) fn borrowed_batch() -> Resource<Batch> {
    Resource::new_borrow(0)
}

/// Gets number `index` of what a guest may know, or ends the call.
fn at<'a, T>(list: &'a [T], index: u32, what: &'static str) -> Result<&'a T, Stop> {
    list.get(index as usize)
        .ok_or(Stop::OutOfRange { what, index })
}

/// Checks the number of properties that a guest asks for: it decides on the size of the answer.
fn within_paths(paths: &[String]) -> Result<(), Stop> {
    if paths.len() > PATHS {
        Err(Stop::TooManyPaths)
    } else {
        Ok(())
    }
}

/// Cuts a text after so many characters.
fn cut(text: &mut String, characters: usize) {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
    }
}

fn length<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}
