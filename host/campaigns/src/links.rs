//! Which addresses people's devices may be asked to open: of surveys, and of push messages, also once their tokens
//! are filled in.
//!
//! Texts are read as browsers read them (the URL Standard), so that what they would leave out or mend, as a line
//! break within a scheme, hides nothing.

use reqwest::Url;

/// The longest address that people write, in bytes.
pub const MOST_BYTES: usize = 2_048;
/// Schemes whose addresses are programs or contents of their own, or lead into the device.
const PROGRAMS: [&str; 6] = [
    "javascript",
    "data",
    "vbscript",
    "blob",
    "file",
    "filesystem",
];

/// Which addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pages of the web: `http` and `https`, with a host.
    Web,
    /// Whatever an app opens, places within apps too. What would run as a program is none.
    Any,
}

impl Kind {
    /// Whether a text as it was written is such an address.
    pub fn has(self, text: &str) -> bool {
        text.len() <= MOST_BYTES && !text.contains(char::is_whitespace) && self.may_be_opened(text)
    }

    /// Whether a text with values in it is such an address. Values may have spaces, which browsers write as `%20`;
    /// its length is limited by that of the message.
    pub fn has_filled(self, text: &str) -> bool {
        let spaced = |character: char| character.is_whitespace() && !character.is_control();
        self.may_be_opened(&text.replace(spaced, "%20"))
    }

    fn may_be_opened(self, text: &str) -> bool {
        // Browsers leave out what a URL has no room for.
        if text.contains(char::is_control) {
            return false;
        }
        let Ok(url) = Url::parse(text) else {
            return false;
        };
        match self {
            Self::Any => !PROGRAMS.contains(&url.scheme()),
            Self::Web => {
                // Browsers read `https:example.com` too; it is no address (RFC 3986, section 4.3).
                let rest = text.get(url.scheme().len()..).unwrap_or_default();
                ["http", "https"].contains(&url.scheme())
                    && rest.starts_with("://")
                    && url.has_host()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_run_as_a_program_is_no_link() {
        for (text, web, any) in [
            ("https://shop.example/a?b=c#d", true, true),
            ("HTTP://shop.example", true, true),
            ("shop://orders/7", false, true),
            ("mailto:help@shop.example", false, true),
            ("tel:+4930123", false, true),
            ("https:shop.example", false, true),
            ("https://", false, false),
            ("/orders/7", false, false),
            ("", false, false),
            ("javascript:alert(1)", false, false),
            ("JavaScript:alert(1)", false, false),
            ("java\nscript:alert(1)", false, false),
            ("\u{1}javascript:alert(1)", false, false),
            ("data:text/html,x", false, false),
            ("vbscript:x", false, false),
            ("blob:https://shop.example/1", false, false),
            ("file:///etc/passwd", false, false),
            ("filesystem:https://shop.example/1", false, false),
        ] {
            assert_eq!(Kind::Web.has(text), web, "{text:?}");
            assert_eq!(Kind::Any.has(text), any, "{text:?}");
            assert_eq!(Kind::Web.has_filled(text), web, "{text:?}");
            assert_eq!(Kind::Any.has_filled(text), any, "{text:?}");
        }
        let long = format!("https://shop.example/{}", "p".repeat(MOST_BYTES));
        assert!(!Kind::Web.has(&long) && Kind::Web.has_filled(&long));
    }

    #[test]
    fn values_may_have_spaces_and_hide_nothing_by_them() {
        for (text, web, any) in [
            ("https://shop.example/?name=Ada Lovelace", true, true),
            ("shop://greet/Ada\u{a0}Lovelace", false, true),
            (" javascript:alert(1)", false, false),
            ("java script:alert(1)", false, false),
            ("\u{a0}javascript:alert(1)", false, false),
            ("java\tscript:alert(1)", false, false),
            ("https://shop .example/", false, false),
        ] {
            assert_eq!(Kind::Web.has_filled(text), web, "{text:?}");
            assert_eq!(Kind::Any.has_filled(text), any, "{text:?}");
            assert!(!Kind::Any.has(text), "{text:?}");
        }
    }
}
