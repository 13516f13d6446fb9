//! Where opening a message may lead: by the rule of links ([`crate::links`]), when a variant is saved, as far as that
//! can be told before its tokens are filled in, and of each message once they are.

use super::content::Action;
use crate::links::Kind;
use crate::push::template::Text;

/// Why a message is not made, as deliveries and previews have it.
pub const URL_NOT_ALLOWED: &str = "url_not_allowed";
/// What stands for a token while nobody knows better: part of a name, part of a number.
const STAND_INS: [&str; 2] = ["x", "1"];

/// The filled-in address of a message leads where none may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("with its values the `url` of the open action is no address that may be opened")]
pub struct NotAllowed;

/// Which addresses an action takes; none: it has no address.
fn kind(action: Action) -> Option<Kind> {
    match action {
        Action::Url => Some(Kind::Web),
        Action::DeepLink => Some(Kind::Any),
        Action::None | Action::OpenApp | Action::Json => None,
    }
}

/// What is wrong with an address as it is written. Where a token decides about its scheme, nothing is known yet.
pub(super) fn check(action: Action, url: &Text) -> Result<(), &'static str> {
    let Some(kind) = kind(action) else {
        return Ok(());
    };
    let good = match url.beginning() {
        None => kind.has(&url.with("")),
        Some(beginning) if beginning.contains(':') => {
            STAND_INS.iter().any(|text| kind.has(&url.with(text)))
        }
        Some(beginning) => {
            let mut letters = beginning.chars();
            letters
                .next()
                .is_none_or(|first| first.is_ascii_alphabetic())
                && letters.all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
        }
    };
    if good {
        return Ok(());
    }
    Err(match kind {
        Kind::Web => "`url` is an http or https address of at most 2,048 characters",
        Kind::Any => {
            "`url` is an address with a scheme that runs nothing, of at most 2,048 characters"
        }
    })
}

/// Whether a message may lead to an address whose tokens are filled in.
pub(super) fn check_filled(action: Action, url: &str) -> Result<(), NotAllowed> {
    match kind(action) {
        Some(kind) if !kind.has_filled(url) => Err(NotAllowed),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_that_is_written_is_checked_at_once() {
        for (action, url, good) in [
            (Action::Url, "https://shop.example/{{p.a}}", true),
            (Action::Url, "https://{{p.a}}.shop.example:{{p.b}}/", true),
            (Action::Url, "https://10.0.0.{{p.a}}/", true),
            (Action::Url, "https://[{{p.a}}]/", false),
            (Action::Url, "shop://orders/{{p.a}}", false),
            (Action::Url, "javascript:{{p.a}}", false),
            (Action::Url, "data:text/html,{{p.a}}", false),
            (Action::Url, "file:///{{p.a}}", false),
            (Action::Url, "/orders/{{p.a}}", false),
            (Action::Url, " {{p.a}}", false),
            (Action::Url, "{{p.a}}", true),
            (Action::Url, "http{{p.a}}", true),
            (Action::DeepLink, "shop://orders/{{p.a}}", true),
            (Action::DeepLink, "{{p.a}}://orders", true),
            (Action::DeepLink, "JavaScript:{{p.a}}", false),
            (Action::DeepLink, "orders/7", false),
            (Action::None, "javascript:alert(1)", true),
        ] {
            let text = Text::parse(url).unwrap();
            assert_eq!(check(action, &text).is_ok(), good, "{action:?} {url}");
        }
    }

    #[test]
    fn values_can_make_no_program_of_an_address() {
        for url in [
            "javascript:alert(1)",
            "java\nscript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "",
        ] {
            assert_eq!(check_filled(Action::Url, url), Err(NotAllowed), "{url}");
            assert_eq!(
                check_filled(Action::DeepLink, url),
                Err(NotAllowed),
                "{url}"
            );
        }
        assert_eq!(check_filled(Action::Url, "shop://7"), Err(NotAllowed));
        assert_eq!(check_filled(Action::DeepLink, "shop://7"), Ok(()));
        assert_eq!(check_filled(Action::Json, ""), Ok(()));
    }
}
