//! Foreign text, made fit to be shown in a log, on a page or in a terminal.

/// Octets of foreign text that are shown, at most.
pub(super) const SHOWN: usize = 256;

/// Tells whether a character would break a line, steer a terminal, or turn or hide what follows.
pub(super) fn is_strange(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Escapes what would break a line, steer a terminal, or turn or hide what follows, and cuts what is longer than 256 octets.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if is_strange(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        if out.len() > SHOWN {
            out.truncate(out.floor_char_boundary(SHOWN - '…'.len_utf8()));
            out.push('…');
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_line_of_at_most_256_octets() {
        for (text, is) in [
            ("", ""),
            ("Köln 東京", "Köln 東京"),
            ("a\nb\t\0", "a\\nb\\t\\u{0}"),
            ("\u{1b}[2J\u{9b}31m", "\\u{1b}[2J\\u{9b}31m"),
            (
                "a\u{202e}b\u{200b}c\u{feff}",
                "a\\u{202e}b\\u{200b}c\\u{feff}",
            ),
        ] {
            assert_eq!(shown(text), is);
        }
        let most = "x".repeat(SHOWN);
        assert_eq!(shown(&most), most);
        for long in [format!("{most}x"), "€".repeat(SHOWN), "\u{7}".repeat(SHOWN)] {
            let shown = shown(&long);
            assert!(shown.len() <= SHOWN && shown.len() > SHOWN - 4, "{shown}");
            assert!(shown.ends_with('…'));
        }
    }
}
