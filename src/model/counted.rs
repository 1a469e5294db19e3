//! A number with its noun, for every sentence that counts.

/// Writes a number with its noun: `1 record`, `2 records`, `0 databases`, `3 prefixes`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if noun.ends_with(['s', 'x']) => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_s() {
        for (count, noun, words) in [
            (1, "record", "1 record"),
            (0, "error", "0 errors"),
            (2, "prefix", "2 prefixes"),
            (1, "prefix", "1 prefix"),
            (3, "query", "3 queries"),
            (3, "key", "3 keys"),
        ] {
            assert_eq!(counted(count, noun), words);
        }
    }
}
