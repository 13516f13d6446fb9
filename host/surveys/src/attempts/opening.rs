//! Which version of a survey an attempt is of that no instruction causes.

use nudge_campaigns::campaign::Status;
use nudge_campaigns::store as campaigns;
use nudge_campaigns::surveys::{Content, Mode};
use nudge_db::Tx;
use uuid::Uuid;

use super::Error;

/// The version that the person sees, if it is one that ran, or the current one. A survey that is open may have been changed
/// to need an instruction: the one that the person sees decides, too.
pub(super) async fn without_instruction(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    current: (i64, Content),
    seen: Option<i64>,
) -> Result<(i64, Content), Error> {
    let mut needed = needs_instruction(&current.1);
    let mut opened = current;
    if let Some(seen) = seen
        && let Some(known) = campaigns::version::<Content>(tx, app_id, survey_id, seen).await?
        && known.status == Status::Active
    {
        needed &= needs_instruction(&known);
        opened = (seen, known);
    }
    if needed {
        return Err(Error::InstructionRequired);
    }
    Ok(opened)
}

/// Whether a survey is offered by instructions alone: nobody can ask for it, or presses its button.
fn needs_instruction(content: &Content) -> bool {
    !matches!(content.mode, Mode::OnDemand | Mode::LinkOnly) && !content.is_feedback()
}
