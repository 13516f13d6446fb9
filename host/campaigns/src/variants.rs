//! Variants of campaigns that say something: what they must keep, which one a person gets, and the form in which messages are made of them.
//!
//! A kind of campaign gives its variants what is particular to it: [`Variant`], and [`Content`] for the campaign.

use std::collections::HashSet;

use nudge_platform::field_error::FieldError;
use nudge_platform::secrets;
use nudge_plugin_runtime::{Accepted, Configuration, Deciders, PluginRef, Plugins, Refused};
use nudge_wasm::Kind;
use serde_json::Value;
use uuid::Uuid;

use crate::campaign::Status;
use crate::lifecycle::{self, Error};
use crate::push::personalization::{self, Spec};
use crate::push::template::UnknownForm;
use crate::push::tokens::Tokens;
use crate::segments::Audiences;

/// Variants of a campaign (contract 9).
pub const MOST: usize = 10;

/// One way to say it.
pub trait Variant: PartialEq + Send + Sync {
    /// What a variant of a campaign that runs has at least one of.
    const SAYS: &'static str;

    /// What it says, ready to be filled in.
    type Form: Send + Sync;

    /// Its id; none: it has none yet.
    fn id(&self) -> Option<Uuid>;

    /// Gives it an id.
    fn set_id(&mut self, id: Uuid);

    /// Its share of the people, in proportion to the others'.
    fn weight(&self) -> f64;

    /// What its tokens stand for, as the personalization plugin reads it.
    fn personalization(&self) -> Option<&Value>;

    /// Whether it has nothing to say.
    fn says_nothing(&self) -> bool;

    /// Checks what it says, and notes the tokens in it. Pointers begin at `place`.
    fn check_form(&self, place: &str, tokens: &mut Tokens, errors: &mut Vec<FieldError>);

    /// Makes ready what it says.
    fn form(&self) -> Result<Self::Form, UnknownForm>;
}

/// A campaign that has variants.
pub trait Content: lifecycle::Content {
    /// Its variants.
    type Variant: Variant;

    /// What it says.
    fn variants(&self) -> &[Self::Variant];

    /// What it says, to be changed.
    fn variants_mut(&mut self) -> &mut [Self::Variant];

    /// Whether an event triggers it.
    fn is_triggered(&self) -> bool;

    /// What is wrong with it, whatever its status. What its plugins have to say is not asked here. `before` is what it said until now.
    fn check(&self, before: Option<&Self>) -> Result<Vec<FieldError>, Error>;

    /// Gives variants without an id one: that of the variant which stood in the same place before, or a new one.
    fn identify(&mut self, before: Option<&Self>, new_id: impl Fn() -> Uuid) {
        let before = before.map(Self::variants).unwrap_or_default();
        let mut taken: HashSet<Uuid> = self.variants().iter().filter_map(Variant::id).collect();
        for (place, variant) in self.variants_mut().iter_mut().enumerate() {
            if variant.id().is_none() {
                let kept = before.get(place).and_then(Variant::id);
                let kept = kept.filter(|id| !taken.contains(id));
                let id = kept.unwrap_or_else(&new_id);
                taken.insert(id);
                variant.set_id(id);
            }
        }
    }

    /// What keeps it from running.
    fn not_activatable(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let variants = self.variants();
        if variants.is_empty() {
            let detail = "an active campaign has at least one variant";
            errors.push(FieldError::new("/variants", "required", detail));
        } else if variants.iter().all(|variant| variant.weight() == 0.0) {
            let detail = "at least one variant has a weight over 0";
            errors.push(FieldError::new("/variants", "out_of_range", detail));
        }
        for (index, variant) in variants.iter().enumerate() {
            if variant.says_nothing() {
                let detail = format!(
                    "a variant of an active campaign has {}",
                    Self::Variant::SAYS
                );
                let pointer = format!("/variants/{index}/title");
                errors.push(FieldError::new(pointer, "required", detail));
            }
        }
        if self.is_triggered() && self.common().trigger.is_none() {
            let detail = "an active triggered campaign has a trigger";
            errors.push(FieldError::new("/trigger", "required", detail));
        }
        errors
    }
}

/// Everything that must hold before a campaign with variants is saved. `before` is what it said until now: what plugins were
/// asked about then and has not changed is not asked again unless the campaign runs, so that one whose plugin
/// has become another can always be stopped.
pub(crate) async fn check<C: Content>(
    plugins: &Plugins,
    deciders: &Deciders,
    segments: &Audiences,
    content: &C,
    before: Option<&C>,
) -> Result<(), Error> {
    let mut errors = content.check(before)?;
    let asked = lifecycle::check_terms(plugins, deciders, segments, content, before);
    gather(asked.await, "", &mut errors)?;
    let runs = content.status() == Status::Active;
    for (index, variant) in content.variants().iter().enumerate().take(MOST) {
        if runs || before.is_none_or(|before| !before.variants().contains(variant)) {
            let place = format!("/variants/{index}");
            check_personalization(plugins, deciders, variant, &place, &mut errors).await?;
        }
    }
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    let errors = content.not_activatable();
    if runs && !errors.is_empty() {
        return Err(Error::NotActivatable(errors));
    }
    Ok(())
}

/// Checks the variants of a campaign, each for itself and against the others.
pub(crate) fn check_all<V: Variant>(variants: &[V], errors: &mut Vec<FieldError>) {
    if variants.len() > MOST {
        let detail = format!("at most {MOST} variants");
        errors.push(FieldError::new("/variants", "out_of_range", detail));
    }
    let mut ids = HashSet::new();
    for (index, variant) in variants.iter().enumerate().take(MOST) {
        let place = format!("/variants/{index}");
        if variant.id().is_some_and(|id| !ids.insert(id)) {
            let detail = "another variant has this id";
            let pointer = format!("{place}/id");
            errors.push(FieldError::new(pointer, "duplicate_id", detail));
        }
        errors.extend(check_one(variant, &place));
    }
}

/// What is wrong with a variant; pointers begin at `place`.
pub fn check_one<V: Variant>(variant: &V, place: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = spec_of(variant, place, &mut errors);
    if !(0.0..=1e6).contains(&variant.weight()) {
        let pointer = format!("{place}/weight");
        let detail = "must be 0 to 1000000";
        errors.push(FieldError::new(pointer, "out_of_range", detail));
    }
    let mut tokens = Tokens::default();
    variant.check_form(place, &mut tokens, &mut errors);
    if let Some(spec) = spec {
        tokens.check(&spec, &mut errors);
    }
    errors
}

/// What the tokens of a variant can stand for; none where that is wrong itself.
fn spec_of<V: Variant>(variant: &V, place: &str, errors: &mut Vec<FieldError>) -> Option<Spec> {
    match variant.personalization().map(Spec::read) {
        None => Some(Spec::default()),
        Some(Ok(spec)) => Some(spec),
        Some(Err(wrong)) => {
            errors.extend(wrong.into_iter().map(|error| FieldError {
                pointer: format!("{place}/personalization{}", error.pointer),
                ..error
            }));
            None
        }
    }
}

/// Checks the names of events in a variant, and asks the personalization plugin what it has against it. What the host found
/// already is not said twice.
pub async fn check_personalization<V: Variant>(
    plugins: &Plugins,
    deciders: &Deciders,
    variant: &V,
    place: &str,
    errors: &mut Vec<FieldError>,
) -> Result<(), Error> {
    let Some(personalization) = variant.personalization() else {
        return Ok(());
    };
    let named = personalization::check_event_names(personalization);
    gather(Err::<(), _>(Refused::Invalid(named)), place, errors)?;
    let checked = configuration(personalization).check(plugins, deciders);
    gather(checked.await, place, errors)
}

/// Adds what a plugin found to what is known, unless the same place is wrong already.
fn gather<T>(
    outcome: Result<T, Refused>,
    place: &str,
    errors: &mut Vec<FieldError>,
) -> Result<(), Error> {
    match outcome {
        Ok(_) => Ok(()),
        Err(Refused::Invalid(found)) => {
            for error in found {
                let pointer = format!("{place}{}", error.pointer);
                if errors.iter().all(|known| known.pointer != pointer) {
                    errors.push(FieldError { pointer, ..error });
                }
            }
            Ok(())
        }
        Err(Refused::Check(cause)) => Err(cause.into()),
    }
}

/// What the personalization plugin is asked about a variant.
pub fn configuration(personalization: &Value) -> Configuration<'_> {
    Configuration {
        kind: Kind::Personalization,
        asked: personalization::named_plugin(personalization)
            .map_or(PluginRef::Slot, PluginRef::Named),
        text: personalization.to_string(),
        place: "/personalization",
        name_place: "/personalization/plugin",
    }
}

/// Why a variant can't make messages.
#[derive(Debug, thiserror::Error)]
pub enum NotPrepared {
    /// Its texts do not parse.
    #[error(transparent)]
    Template(#[from] UnknownForm),
    /// Its plugin refuses it, or is not there.
    #[error("the personalization plugin refuses it")]
    Refused(#[from] Refused),
}

impl From<NotPrepared> for Error {
    fn from(cause: NotPrepared) -> Self {
        match cause {
            NotPrepared::Refused(refused) => refused.into(),
            NotPrepared::Template(cause) => Self::Invalid(vec![FieldError::new(
                "/variants",
                "unknown_token",
                cause.to_string(),
            )]),
        }
    }
}

/// The variants of a campaign, ready to make messages.
#[derive(Clone, Debug)]
pub struct Variants<F> {
    campaign_id: Uuid,
    all: Vec<Prepared<F>>,
}

/// A variant, ready to make messages.
#[derive(Clone, Debug)]
pub struct Prepared<F> {
    /// The variant.
    pub id: Uuid,
    /// Its share of the people.
    weight: f64,
    /// What it says.
    pub(crate) form: F,
    /// What its tokens stand for.
    pub spec: Spec,
    /// Who resolves that; none where there is nothing to resolve.
    pub accepted: Option<Accepted>,
}

impl<F: Send + Sync> Variants<F> {
    /// Prepares the variants of a campaign. What `before` knows is not asked of plugins again.
    pub(crate) async fn prepare<V: Variant<Form = F>>(
        plugins: &Plugins,
        deciders: &Deciders,
        campaign_id: Uuid,
        variants: &[V],
        before: Option<&Self>,
    ) -> Result<Self, NotPrepared> {
        let mut all = Vec::with_capacity(variants.len());
        for variant in variants {
            let before = before.and_then(|before| before.get(variant.id().unwrap_or_default()));
            let before = before.and_then(|before| before.accepted.as_ref());
            all.push(Prepared::new(plugins, deciders, variant, before).await?);
        }
        Ok(Self { campaign_id, all })
    }

    /// A variant by its id.
    pub fn get(&self, id: Uuid) -> Option<&Prepared<F>> {
        self.all.iter().find(|variant| variant.id == id)
    }

    /// What plugins were asked about the variants.
    pub fn accepted(&self) -> impl Iterator<Item = &Accepted> {
        self.all
            .iter()
            .filter_map(|variant| variant.accepted.as_ref())
    }

    /// The variant that a person gets, always the same one while weights stay: a stable hash of campaign and
    /// person, by weight.
    pub fn of(&self, subject_id: Uuid) -> Option<&Prepared<F>> {
        let weights: Vec<f64> = self.all.iter().map(|variant| variant.weight).collect();
        self.all
            .get(choose(self.campaign_id, subject_id, &weights)?)
    }

    /// The variant of an id; without one that of a person, or the first where no variant has any weight.
    pub fn asked(&self, id: Option<Uuid>, subject_id: Uuid) -> Option<&Prepared<F>> {
        match id {
            Some(id) => self.get(id),
            None => self.of(subject_id).or_else(|| self.all.first()),
        }
    }
}

impl<F: Send + Sync> Prepared<F> {
    /// Prepares a variant. What `before` knows is not asked of its plugin again.
    pub async fn new<V: Variant<Form = F>>(
        plugins: &Plugins,
        deciders: &Deciders,
        variant: &V,
        before: Option<&Accepted>,
    ) -> Result<Self, NotPrepared> {
        let personalization = variant.personalization();
        let (spec, accepted) = resolving(plugins, deciders, personalization, before).await?;
        Ok(Self {
            id: variant.id().unwrap_or_default(),
            weight: variant.weight(),
            form: variant.form()?,
            spec,
            accepted,
        })
    }
}

/// What the tokens of a variant stand for, and who resolves that; nobody where there is nothing to resolve.
async fn resolving(
    plugins: &Plugins,
    deciders: &Deciders,
    personalization: Option<&Value>,
    before: Option<&Accepted>,
) -> Result<(Spec, Option<Accepted>), Refused> {
    let Some(personalization) = personalization else {
        return Ok((Spec::default(), None));
    };
    let spec = Spec::read(personalization).map_err(Refused::Invalid)?;
    if spec.bindings.is_empty() {
        return Ok((spec, None));
    }
    let configuration = configuration(personalization);
    let accepted = configuration.accept(plugins, deciders, before).await?;
    Ok((spec, Some(accepted)))
}

/// The variant that a person gets, as [`Variants::of`] has it, of a campaign that is not prepared.
pub fn of<V: Variant>(campaign_id: Uuid, subject_id: Uuid, variants: &[V]) -> Option<Uuid> {
    let weights: Vec<f64> = variants.iter().map(Variant::weight).collect();
    variants
        .get(choose(campaign_id, subject_id, &weights)?)?
        .id()
}

/// The place of the variant that a person gets.
fn choose(campaign_id: Uuid, subject_id: Uuid, weights: &[f64]) -> Option<usize> {
    let hash = secrets::hash(&[b"variant", campaign_id.as_bytes(), subject_id.as_bytes()]);
    let number = hash
        .first_chunk()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let total: f64 = weights.iter().sum();
    let mut left = f64::from(number) / (f64::from(u32::MAX) + 1.0) * total;
    for (place, weight) in weights.iter().enumerate() {
        if left < *weight {
            return Some(place);
        }
        left -= weight;
    }
    // Rounding may leave something at the end.
    weights.iter().rposition(|weight| *weight > 0.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::push;

    #[test]
    fn people_are_divided_by_weight_and_stay() {
        let campaign = Uuid::from_u128(9);
        let mut counts = [0_u32; 3];
        for number in 0..10_000 {
            let subject = Uuid::from_u128(number);
            let place = choose(campaign, subject, &[1.0, 0.0, 3.0]).unwrap();
            assert_eq!(choose(campaign, subject, &[1.0, 0.0, 3.0]), Some(place));
            counts[place] += 1;
        }
        assert_eq!(counts[1], 0);
        // Of 10,000 a quarter, within five standard deviations.
        assert!((2_284..=2_716).contains(&counts[0]), "{counts:?}");
        assert_eq!(choose(campaign, campaign, &[]), None);
        assert_eq!(choose(campaign, campaign, &[0.0]), None);
    }

    #[test]
    fn a_variant_keeps_its_id_by_its_place() {
        let ids = [1, 2, 3].map(Uuid::from_u128);
        let variant = |id: Option<Uuid>| push::Variant {
            id,
            title: String::new(),
            body: String::new(),
            weight: 1.0,
            open_action: None,
            personalization: None,
        };
        let mut content: push::Content = serde_json::from_value(json!({"name": "n"})).unwrap();
        let before = push::Content {
            variants: vec![variant(Some(ids[0])), variant(Some(ids[1]))],
            ..content.clone()
        };
        content.variants = vec![variant(None), variant(Some(ids[0])), variant(None)];
        content.identify(Some(&before), || ids[2]);
        let found: Vec<Option<Uuid>> = content.variants.iter().map(|variant| variant.id).collect();
        // The first would be the second's, which says so.
        assert_eq!(found[1], Some(ids[0]));
        assert_ne!(found[0], found[1]);
        content.variants = vec![variant(None), variant(None)];
        content.identify(Some(&before), || ids[2]);
        assert_eq!(content.variants[1].id, Some(ids[1]));
    }
}
