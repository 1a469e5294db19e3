//! A bounded choice in which nobody hides the others.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Takes at most `most` items: of each group the first, then of each the second, and so on as far as there is room. Gives them in
/// their order, each with its place in its group, counted from 0; and how many there were.
pub fn fair<T, G: Eq + Hash>(
    all: impl Iterator<Item = T>,
    most: usize,
    group: impl Fn(&T) -> G,
) -> (Vec<(usize, T)>, usize) {
    let mut sizes: HashMap<G, usize> = HashMap::new();
    // By place, then by order: what is too much is at the end.
    let mut kept = BTreeMap::new();
    let mut count = 0;
    for item in all {
        let size = sizes.entry(group(&item)).or_default();
        kept.insert((*size, count), item);
        *size += 1;
        count += 1;
        if kept.len() > most {
            kept.pop_last();
        }
    }
    let mut kept: Vec<((usize, usize), T)> = kept.into_iter().collect();
    kept.sort_by_key(|((_, order), _)| *order);
    let kept = kept.into_iter().map(|((place, _), item)| (place, item));
    (kept.collect(), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_hides_the_others() {
        for (all, most, kept) in [
            ("", 3, ""),
            ("abc", 0, ""),
            ("aaaa", 5, "aaaa"),
            ("aaaa", 3, "aaa"),
            ("aaaab", 3, "aab"),
            ("aaaabbbbc", 3, "abc"),
            ("aaaabbbbc", 5, "aabbc"),
            ("aaaabbbbc", 6, "aaabbc"),
            ("abababc", 2, "ab"),
        ] {
            let (chosen, count) = fair(all.chars(), most, |item| *item);
            let text: String = chosen.iter().map(|(_, item)| item).collect();
            assert_eq!((&*text, count), (kept, all.len()), "{all} {most}");
        }
        let (chosen, _) = fair("abab".chars(), 9, |item| *item);
        assert_eq!(chosen, [(0, 'a'), (0, 'b'), (1, 'a'), (1, 'b')]);
    }
}
