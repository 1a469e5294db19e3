//! Labels of Kubernetes objects, and selectors of them, as Kubernetes writes both.

use super::read;
use crate::config::faults::Report;
use crate::config::spec::Node;

/// Longest selector in octets.
const MAX: usize = 1024;

/// Reads a selector: requirements between commas, such as `a=b,c!=d,e,!f,g in (h,i)`.
pub(super) fn selector<'t>(node: Node<'t, '_>, report: &mut Report) -> Option<&'t str> {
    let text = read::text(node, report)?;
    let why = if text.len() > MAX {
        Some(format!("longer than {MAX} octets"))
    } else {
        // Whatever namespace has it, not all of its Secrets are clusters.
        let wrong = requirements(text)
            .into_iter()
            .find(|one| !is_requirement(one));
        wrong.map(|one| {
            format!(
                "`{one}` is no requirement such as `key=value`, `key`, `!key` or `key in (a,b)`"
            )
        })
    };
    if let Some(why) = why {
        report.fault(node, why);
        return None;
    }
    Some(text)
}

/// Reads the key of a label.
pub(super) fn label_key<'t>(node: Node<'t, '_>, report: &mut Report) -> Option<&'t str> {
    let text = read::text(node, report)?;
    if is_key(text) {
        return Some(text);
    }
    report.fault(
        node,
        format_args!("`{text}` is no key of a label such as `example.com/name`"),
    );
    None
}

/// Splits at the commas that stand in no parentheses.
fn requirements(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let parts = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).collect()
}

fn is_requirement(text: &str) -> bool {
    if let Some(key) = text.strip_prefix('!') {
        return is_key(key.trim());
    }
    for (word, is_set) in [
        (" notin ", true),
        (" in ", true),
        ("!=", false),
        ("==", false),
        ("=", false),
    ] {
        let Some((key, values)) = text.split_once(word) else {
            continue;
        };
        let set = values
            .trim()
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'));
        return is_key(key.trim())
            && match (is_set, set) {
                (true, Some(set)) => set.split(',').all(|value| is_value(value.trim())),
                (true, None) => false,
                (false, _) => is_value(values.trim()),
            };
    }
    is_key(text)
}

/// Tells whether this is a key: a name, with the name of a domain before a slash perhaps.
fn is_key(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let is_domain = |prefix: &str| prefix.parse::<crate::model::ClusterId>().is_ok();
    !name.is_empty() && is_value(name) && prefix.is_none_or(is_domain)
}

/// Tells whether this is a value: at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends.
fn is_value(text: &str) -> bool {
    let edge = |octet: &u8| octet.is_ascii_alphanumeric();
    let inner = |octet: u8| edge(&octet) || matches!(octet, b'-' | b'_' | b'.');
    let octets = text.as_bytes();
    text.len() <= 63
        && octets.iter().copied().all(inner)
        && octets.first().is_none_or(edge)
        && octets.last().is_none_or(edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_those_of_kubernetes() {
        for text in [
            "a=b",
            "istio/multiCluster=true",
            "cluster.x-k8s.io/cluster-name",
            "!a, b!=c",
            "a in (b, c),d",
            "a notin (b)",
            "a==",
        ] {
            assert!(requirements(text).into_iter().all(is_requirement), "{text}");
        }
        for text in [
            "",
            ",",
            "a=b,",
            "a b",
            "a in b",
            "a=b&limit=1",
            "a in (b",
            "/a",
            "A/b",
            "-a",
            "a=b c",
            "é=b",
        ] {
            assert!(
                !requirements(text).into_iter().all(is_requirement),
                "{text}"
            );
        }
    }
}
