//! How text becomes HTML: the one way in which anything from outside gets into a page.

use std::fmt::{self, Write};

use askama::filters::Escaper;

/// Escapes HTML, and shows what cannot be seen: control characters, and those that turn the direction of text, become U+FFFD.
/// So a host name or a reason cannot pretend to be something else, neither to a browser nor to a person.
#[derive(Clone, Copy, Debug)]
pub(super) struct Escape;

impl Escaper for Escape {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        let mut rest = string;
        while let Some(at) = rest.find(|character| replacement(character).is_some()) {
            let (plain, special) = rest.split_at(at);
            dest.write_str(plain)?;
            let mut characters = special.chars();
            if let Some(replaced) = characters.next().and_then(replacement) {
                dest.write_str(replaced)?;
            }
            rest = characters.as_str();
        }
        dest.write_str(rest)
    }
}

/// Gives what stands for a character that may not stand for itself.
fn replacement(character: char) -> Option<&'static str> {
    match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&#34;"),
        '\'' => Some("&#39;"),
        '\n' | '\t' => None,
        // Marks, embeddings, overrides and isolates of direction; zero-width characters; separators of lines.
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}' => Some("\u{fffd}"),
        other if other.is_control() => Some("\u{fffd}"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup_or_invisible() {
        for (text, shown) in [
            ("plain.example.com", "plain.example.com"),
            (
                "<script>alert('1')</script>",
                "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;",
            ),
            ("\" onload=\"x & y", "&#34; onload=&#34;x &amp; y"),
            ("a\u{0}b\u{1b}[31mc\r", "a\u{fffd}b\u{fffd}[31mc\u{fffd}"),
            ("evil\u{202e}gpj.exe", "evil\u{fffd}gpj.exe"),
            ("two\nlines\tand", "two\nlines\tand"),
            ("größe 東京", "größe 東京"),
            ("", ""),
        ] {
            let mut out = String::new();
            Escape.write_escaped_str(&mut out, text).unwrap();
            assert_eq!(out, shown);
        }
    }
}
