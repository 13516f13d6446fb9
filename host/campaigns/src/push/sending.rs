//! The form in which a campaign's messages are made: its texts parsed, its plugins asked.

use nudge_platform::secrets;
use nudge_plugin_runtime::{Accepted, Configuration, Deciders, PluginRef, Plugins, Refused};
use nudge_wasm::Kind;
use serde_json::Value;
use uuid::Uuid;

use super::action::PreparedAction;
use super::content::{Content, Variant};
use super::link::NotAllowed;
use crate::push::options::Options;
use crate::push::personalization::{self, Spec};
use crate::push::rendered::Rendered;
use crate::push::template::{Text, UnknownForm};
use crate::push::verdict::Values;

/// A campaign at a version, ready to make messages.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The campaign.
    pub campaign_id: Uuid,
    /// Its version.
    pub version: i64,
    /// How its messages are delivered and shown.
    pub options: Options,
    /// What it says.
    pub variants: Vec<Prepared>,
}

/// A variant, ready to make messages.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The variant.
    pub id: Uuid,
    /// Its share of the people.
    weight: f64,
    title: Text,
    body: Text,
    action: PreparedAction,
    /// What its tokens stand for.
    pub spec: Spec,
    /// Who resolves that; none where there is nothing to resolve.
    pub accepted: Option<Accepted>,
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

impl Sending {
    /// Prepares a campaign. What `before` knows is not asked of plugins again.
    pub async fn prepare(
        plugins: &Plugins,
        deciders: &Deciders,
        campaign_id: Uuid,
        version: i64,
        content: &Content,
        before: Option<&Self>,
    ) -> Result<Self, NotPrepared> {
        let mut variants = Vec::with_capacity(content.variants.len());
        for variant in &content.variants {
            let before = before.and_then(|before| before.variant(variant.id.unwrap_or_default()));
            let before = before.and_then(|before| before.accepted.as_ref());
            variants.push(Prepared::new(plugins, deciders, variant, before).await?);
        }
        Ok(Self {
            campaign_id,
            version,
            options: content.options.clone().unwrap_or_default(),
            variants,
        })
    }

    /// A variant by its id.
    pub fn variant(&self, id: Uuid) -> Option<&Prepared> {
        self.variants.iter().find(|variant| variant.id == id)
    }

    /// The variant that a person gets, always the same one while weights stay: a stable hash of campaign and
    /// person, by weight.
    pub fn variant_for(&self, subject_id: Uuid) -> Option<&Prepared> {
        let weights: Vec<f64> = self.variants.iter().map(|variant| variant.weight).collect();
        self.variants
            .get(choose(self.campaign_id, subject_id, &weights)?)
    }
}

/// The variant that a person gets, as [`Sending::variant_for`] has it, of a campaign that is not prepared.
pub fn variant_of(campaign_id: Uuid, subject_id: Uuid, variants: &[Variant]) -> Option<Uuid> {
    let weights: Vec<f64> = variants.iter().map(|variant| variant.weight).collect();
    variants.get(choose(campaign_id, subject_id, &weights)?)?.id
}

/// The place of the variant that a person gets.
pub(crate) fn choose(campaign_id: Uuid, subject_id: Uuid, weights: &[f64]) -> Option<usize> {
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

impl Prepared {
    /// Prepares a variant.
    pub async fn new(
        plugins: &Plugins,
        deciders: &Deciders,
        variant: &Variant,
        before: Option<&Accepted>,
    ) -> Result<Self, NotPrepared> {
        let personalization = variant.personalization.as_ref();
        let (spec, accepted) = resolving(plugins, deciders, personalization, before).await?;
        let action = variant.open_action.clone().unwrap_or_default();
        Ok(Self {
            id: variant.id.unwrap_or_default(),
            weight: variant.weight,
            title: Text::parse(&variant.title)?,
            body: Text::parse(&variant.body)?,
            action: PreparedAction::new(&action)?,
            spec,
            accepted,
        })
    }

    /// The message with the values of one recipient, unless they make an address of it that nobody may be led to.
    pub fn render(&self, values: &Values, options: &Options) -> Result<Rendered, NotAllowed> {
        Ok(Rendered {
            title: self.title.fill(values),
            body: self.body.fill(values),
            open_action: self.action.fill(values)?,
            options: options.clone(),
        })
    }
}

/// What the tokens of a variant stand for, and who resolves that; nobody where there is nothing to resolve.
pub(crate) async fn resolving(
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
