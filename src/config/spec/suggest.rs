//! Did you mean: the nearest of several words.

/// Longest word that is compared: the cost grows with its square.
const MAX_WORD: usize = 64;

/// Finds the candidate with the fewest typing slips from `word`; `None` when even that one has too many to be meant.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if word.len() > MAX_WORD {
        return None;
    }
    let limit = 1 + word.chars().count() / 4;
    let scored = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_WORD);
    let scored = scored.map(|candidate| (distance(word, candidate), candidate));
    let (slips, best) = scored.min_by_key(|(slips, _)| *slips)?;
    (slips <= limit && slips < best.chars().count()).then_some(best)
}

/// Finds the one candidate that begins with `word`, which has three letters at least.
pub(super) fn abbreviated<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    const LEAST: usize = 3;
    let mut found = candidates
        .into_iter()
        .filter(|candidate| word.len() >= LEAST && candidate.starts_with(word));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Says it as the end of a message: ``; did you mean `x`?``, or nothing.
pub(crate) fn hint<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Counts slips: letters added, left out, replaced or swapped with their neighbor. Case counts for nothing.
fn distance(a: &str, b: &str) -> usize {
    let lower = |text: &str| {
        text.chars()
            .map(|c| c.to_ascii_lowercase())
            .collect::<Vec<_>>()
    };
    let (a, b) = (lower(a), lower(b));
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let replaced = at(&above, j) + usize::from(from != to);
            let mut best = replaced.min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(to) && b.get(j - 1) == Some(from);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    at(&above, b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (a, b, slips) in [
            ("", "", 0),
            ("abc", "", 3),
            ("nmae", "name", 1),
            ("Name", "name", 0),
            ("kitten", "sitting", 3),
            ("endpoint", "endpoints", 1),
        ] {
            assert_eq!(distance(a, b), slips, "{a} {b}");
            assert_eq!(distance(b, a), slips, "{b} {a}");
        }
    }

    #[test]
    fn only_what_may_be_meant_is_suggested() {
        let keys = ["name", "hostnames", "ttl"];
        assert_eq!(nearest("hostname", keys), Some("hostnames"));
        assert_eq!(nearest("nmae", keys), Some("name"));
        assert_eq!(nearest("zebra", keys), None);
        assert_eq!(nearest(&"x".repeat(1000), keys), None);
        assert_eq!(hint("tll", keys), "; did you mean `ttl`?");
    }

    #[test]
    fn what_is_cut_short_is_found_where_one_word_is_meant() {
        let keys = ["latitude", "longitude", "prefixV4", "prefixV6"];
        assert_eq!(abbreviated("lat", keys), Some("latitude"));
        assert_eq!(abbreviated("lon", keys), Some("longitude"));
        assert_eq!(abbreviated("lo", keys), None);
        assert_eq!(abbreviated("prefix", keys), None);
        assert_eq!(abbreviated("lng", keys), None);
    }
}
