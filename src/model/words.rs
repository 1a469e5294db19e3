//! What people say of what they do: names and reasons, as they are kept, shown and passed on.

/// Longest name and longest reason, characters.
pub const MAX_WORDS: usize = 500;

/// Why a name or a reason was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// Nothing is said.
    #[error("empty, or only blanks")]
    Blank,
    /// It is too long.
    #[error("more than {MAX_WORDS} characters")]
    Long,
    /// It would break a line, or steer a terminal.
    #[error("control characters are not allowed, line breaks neither")]
    Control,
}

/// Checks a name or a reason, whoever said it: it is written to logs and shown to people.
///
/// # Errors
/// When it is blank, too long, or has control characters.
pub fn check_words(text: &str) -> Result<(), WordsError> {
    if text.trim().is_empty() {
        Err(WordsError::Blank)
    } else if text.chars().count() > MAX_WORDS {
        Err(WordsError::Long)
    } else if text.chars().any(char::is_control) {
        Err(WordsError::Control)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_line_of_something() {
        let (most, more) = ("ü".repeat(MAX_WORDS), "ü".repeat(MAX_WORDS + 1));
        for (text, found) in [
            ("kernel update", Ok(())),
            ("ü", Ok(())),
            (&most, Ok(())),
            (&more, Err(WordsError::Long)),
            ("", Err(WordsError::Blank)),
            (" \u{2003}\t\n", Err(WordsError::Blank)),
            ("a\nb", Err(WordsError::Control)),
            ("a\r", Err(WordsError::Control)),
            ("\u{1b}[2J", Err(WordsError::Control)),
            ("a\u{9b}b", Err(WordsError::Control)),
            ("a\0b", Err(WordsError::Control)),
        ] {
            assert_eq!(check_words(text), found, "{text:?}");
        }
    }
}
