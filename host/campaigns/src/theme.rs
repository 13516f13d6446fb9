//! How surveys and in-app messages look and behave: the members of `theme` and `settings` that are known (contract 20). Others are kept and handed on.

use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use serde_json::{Map, Value};

use crate::lifecycle::Error;
use crate::surveys::check_shown_object;

/// The least contrast of text on its ground (WCAG 2.2, 1.4.3).
const LEAST_CONTRAST: f64 = 4.5;
/// The largest radius of a corner, and the longest delay in seconds.
const MOST_RADIUS: f64 = 24.0;
const MOST_DELAY: f64 = 600.0;
/// What may stand on what.
const PAIRS: [(&str, &str); 2] = [("text", "background"), ("onPrimary", "primary")];
const COLOURS: [&str; 4] = ["background", "text", "primary", "onPrimary"];
const MODES: [&str; 3] = ["auto", "light", "dark"];
const FONTS: [&str; 4] = ["system", "serif", "mono", "inherit"];
const PRESENTATIONS: [&str; 4] = ["popover", "modal", "inline", "feedback_button"];
const POSITIONS: [&str; 5] = [
    "top_left",
    "top_right",
    "bottom_left",
    "bottom_right",
    "center",
];

/// Checks a theme. What is wrong is added to the errors; colours that can't be read on one another are an error of their own.
pub fn check(theme: &Value, errors: &mut Vec<FieldError>) -> Result<(), Error> {
    check_shown_object("theme", theme, errors);
    let Some(members) = theme.as_object() else {
        return Ok(());
    };
    let before = errors.len();
    one_of(members, "/theme", "mode", &MODES, errors);
    one_of(members, "/theme", "font", &FONTS, errors);
    number(members, "/theme", "radius", MOST_RADIUS, errors);
    boolean(members, "/theme", "allowLowContrast", errors);
    colours(members, "/theme", errors);
    let dark = members.get("dark").filter(|dark| !dark.is_null());
    match dark {
        None => {}
        Some(Value::Object(dark)) => colours(dark, "/theme/dark", errors),
        Some(_) => {
            let detail = "an object with colours belongs here";
            errors.push(FieldError::new("/theme/dark", "invalid", detail));
        }
    }
    if errors.len() > before || members.get("allowLowContrast") == Some(&Value::Bool(true)) {
        return Ok(());
    }
    let mut low = Vec::new();
    contrasts(members, "/theme", &mut low);
    if let Some(dark) = dark.and_then(Value::as_object) {
        contrasts(dark, "/theme/dark", &mut low);
    }
    if low.is_empty() {
        Ok(())
    } else {
        Err(Error::LowContrast(low))
    }
}

/// Checks the settings of a survey.
pub fn check_settings(settings: &Value, errors: &mut Vec<FieldError>) {
    check_shown_object("settings", settings, errors);
    let Some(members) = settings.as_object() else {
        return;
    };
    one_of(members, "/settings", "presentation", &PRESENTATIONS, errors);
    one_of(members, "/settings", "position", &POSITIONS, errors);
    number(members, "/settings", "delaySeconds", MOST_DELAY, errors);
    for name in ["closeable", "once", "coordinated"] {
        boolean(members, "/settings", name, errors);
    }
}

fn one_of(
    members: &Map<String, Value>,
    place: &str,
    name: &str,
    known: &[&str],
    errors: &mut Vec<FieldError>,
) {
    let fits = |value: &Value| value.as_str().is_some_and(|text| known.contains(&text));
    if members.get(name).is_some_and(|value| !fits(value)) {
        let detail = format!("one of {}", known.join(", "));
        errors.push(FieldError::new(
            format!("{place}/{name}"),
            "invalid",
            detail,
        ));
    }
}

fn number(
    members: &Map<String, Value>,
    place: &str,
    name: &str,
    most: f64,
    errors: &mut Vec<FieldError>,
) {
    let fits = |value: &Value| value.as_f64().is_some_and(|it| (0.0..=most).contains(&it));
    if members.get(name).is_some_and(|value| !fits(value)) {
        let detail = format!("a number from 0 to {most}");
        errors.push(FieldError::new(
            format!("{place}/{name}"),
            "out_of_range",
            detail,
        ));
    }
}

fn boolean(members: &Map<String, Value>, place: &str, name: &str, errors: &mut Vec<FieldError>) {
    if members.get(name).is_some_and(|value| !value.is_boolean()) {
        let pointer = format!("{place}/{name}");
        errors.push(FieldError::new(pointer, "invalid", "true or false"));
    }
}

fn colours(members: &Map<String, Value>, place: &str, errors: &mut Vec<FieldError>) {
    for name in COLOURS {
        if members
            .get(name)
            .is_some_and(|value| colour(value).is_none())
        {
            let pointer = format!("{place}/{}", escaped(name));
            let detail = "a colour as #rrggbb";
            errors.push(FieldError::new(pointer, "invalid", detail));
        }
    }
}

/// Finds the pairs that have too little contrast.
fn contrasts(members: &Map<String, Value>, place: &str, low: &mut Vec<FieldError>) {
    for (front, ground) in PAIRS {
        let named = |name: &str| members.get(name).and_then(colour);
        let (Some(front_colour), Some(ground_colour)) = (named(front), named(ground)) else {
            continue;
        };
        let ratio = contrast(front_colour, ground_colour);
        if ratio < LEAST_CONTRAST {
            // Rounded down: what is too low never reads as enough.
            let shown = (ratio * 100.0).floor() / 100.0;
            let detail = format!(
                "`{front}` on `{ground}` has a contrast of {shown:.2}:1, below {LEAST_CONTRAST}:1; change one, or set `allowLowContrast`"
            );
            let pointer = format!("{place}/{front}");
            low.push(FieldError::new(pointer, "low_contrast", detail));
        }
    }
}

/// A colour, `#rrggbb`.
fn colour(value: &Value) -> Option<[u8; 3]> {
    let digits = value.as_str()?.strip_prefix('#')?;
    if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let part = |from: usize| u8::from_str_radix(digits.get(from..from + 2)?, 16).ok();
    Some([part(0)?, part(2)?, part(4)?])
}

/// The contrast of two colours, 1 to 21 (WCAG 2.2, contrast ratio).
fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// The relative luminance of an sRGB colour (WCAG 2.2).
fn luminance(colour: [u8; 3]) -> f64 {
    let [red, green, blue] = colour.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(theme: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        let low = match check(theme, &mut errors) {
            Err(Error::LowContrast(low)) => low,
            _ => Vec::new(),
        };
        let errors = errors.into_iter().chain(low);
        errors
            .map(|error| format!("{} {}", error.pointer, error.code))
            .collect()
    }

    #[test]
    fn contrast_is_as_the_guidelines_have_it() {
        let of = |one: &str, other: &str| {
            let colour = |text: &str| colour(&json!(text)).unwrap();
            let ratio = contrast(colour(one), colour(other));
            format!("{:.2}", (ratio * 100.0).floor() / 100.0)
        };
        assert_eq!(of("#000000", "#ffffff"), "21.00");
        assert_eq!(of("#777777", "#FFFFFF"), "4.47");
        assert_eq!(of("#767676", "#ffffff"), "4.54");
        assert_eq!(of("#ffffff", "#ffffff"), "1.00");
        // The order does not matter.
        assert_eq!(of("#ffffff", "#0000ff"), of("#0000ff", "#ffffff"));
    }

    #[test]
    fn known_members_are_checked_and_others_kept() {
        let good = json!({"mode": "auto", "background": "#ffffff", "text": "#000000", "radius": 24, "font": "mono",
            "dark": {"background": "#000000", "text": "#FFFFFF"}, "mascot": {"any": ["thing"]}});
        assert!(wrong(&good).is_empty());
        for (theme, expected) in [
            (json!({"mode": "dim"}), "/theme/mode invalid"),
            (json!({"text": "red"}), "/theme/text invalid"),
            (json!({"primary": "#12345"}), "/theme/primary invalid"),
            (json!({"radius": 25}), "/theme/radius out_of_range"),
            (json!({"font": "comic"}), "/theme/font invalid"),
            (json!({"dark": 1}), "/theme/dark invalid"),
            (
                json!({"dark": {"text": "#ggg000"}}),
                "/theme/dark/text invalid",
            ),
            (
                json!({"allowLowContrast": 1}),
                "/theme/allowLowContrast invalid",
            ),
            (json!([]), "/theme invalid"),
        ] {
            assert_eq!(wrong(&theme), [expected], "{theme}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_unless_it_is_allowed() {
        let theme = json!({"background": "#ffffff", "text": "#777777",
            "dark": {"primary": "#000000", "onPrimary": "#222222"}});
        assert_eq!(
            wrong(&theme),
            [
                "/theme/text low_contrast",
                "/theme/dark/onPrimary low_contrast"
            ]
        );
        let mut allowed = theme;
        allowed["allowLowContrast"] = json!(true);
        assert!(wrong(&allowed).is_empty());
        // Of a colour alone nothing is known.
        assert!(wrong(&json!({"text": "#777777"})).is_empty());
    }

    #[test]
    fn settings_are_checked() {
        let wrong = |settings: &Value| {
            let mut errors = Vec::new();
            check_settings(settings, &mut errors);
            let errors = errors.into_iter().map(|error| error.pointer);
            errors.collect::<Vec<_>>()
        };
        let good = json!({"presentation": "feedback_button", "position": "center", "closeable": false,
            "delaySeconds": 600, "once": true, "coordinated": false, "other": 1});
        assert!(wrong(&good).is_empty());
        let bad = json!({"presentation": "tooltip", "position": "left", "closeable": 1, "delaySeconds": 601,
            "once": "no", "coordinated": null});
        assert_eq!(wrong(&bad).len(), 6);
    }
}
