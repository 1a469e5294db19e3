//! Statements in words. They have no number that changes by itself: a message that changes is said again.

use crate::inventory::{Overruled, PolicyConflict};
use crate::model::LowerName;
use crate::source::kubernetes::annotations::PREFIX;

/// Names, or addresses, that are listed of one object.
const LISTED: usize = 5;

/// Lists the first ones, and says how many more there are.
pub(super) fn list(all: &[String]) -> String {
    let listed = all.iter().take(LISTED).cloned().collect::<Vec<_>>();
    let listed = listed.join(", ");
    match all.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

/// Says that names are answered.
pub(super) fn published(names: &[String], entries: &[String]) -> String {
    format!("Answered with {}: {}", list(entries), list(names))
}

/// Says that a part of an object was refused.
pub(super) fn invalid(what: &str, reason: &str) -> String {
    let key = what.strip_prefix(PREFIX);
    if key == Some("") {
        return format!("{reason}; the rest counts");
    }
    // Whom such an object keeps out is not known.
    let so = match key {
        Some("fence" | "geo-fence") => "the object is not served",
        _ => "the rest counts",
    };
    format!("{what}: {reason}; {so}")
}

/// Says that a part of an object was refused that is not served, for whatever reason.
pub(super) fn idle(what: &str, reason: &str) -> String {
    format!("{what}: {reason}")
}

/// Says why an object is not served.
pub(super) fn unserved(what: &str, reason: &str) -> String {
    format!("{what}: {reason}; the object is not served")
}

/// Says that a name is not the object's.
pub(super) fn hostname(name: &str, reason: &str) -> String {
    format!("{name} is not answered for this object: {reason}")
}

/// Says that the word of others counts.
pub(super) fn policy(conflict: &PolicyConflict, service: &str) -> String {
    let key = conflict.key;
    // Fields have dots; keys of annotations have none behind the prefix.
    let prefix = if key.contains('.') { "" } else { PREFIX };
    let what = format!("{prefix}{key}");
    if conflict.why == Overruled::ByRoom {
        return format!(
            "{what} is more than {service} has room for: that of the first clusters by name counts"
        );
    }
    format!(
        "{what} is not what counts for {service}: most clusters say otherwise, or the first of them by name; make them equal"
    )
}

/// Says that a host name is not followed.
pub(super) fn target(name: &LowerName, fault: &str) -> String {
    format!("{name} is not followed, or a part of it: {fault}")
}

/// Says that an address is not answered.
pub(super) fn unanswered(what: &str, reason: &str) -> String {
    format!("{what} is not answered: {reason}")
}

/// Says that nothing is healthy.
pub(super) fn unhealthy(service: &str) -> String {
    format!(
        "No cluster has a healthy endpoint of {service}: it is answered from the last resort, all endpoints as if they were healthy or its fallback"
    )
}

/// Says that a check never succeeded.
pub(super) fn never(targets: &[String]) -> String {
    format!(
        "The health check of {} never succeeded since it began: is the check right, or a firewall in its way?",
        list(targets)
    )
}

/// Says that it is drained.
pub(super) fn draining(entries: &[String]) -> String {
    format!(
        "Drained by its own word, or being deleted: no new answers with {} while another cluster can take the traffic",
        list(entries)
    )
}

/// Says that an operator drains it, for some of its names or, where none is given, for all. Who and why is kept for operators: a
/// reason may be none of a tenant's business.
pub(super) fn drained_by_operator(entries: &[String], names: &[String]) -> String {
    let of = if names.is_empty() {
        String::new()
    } else {
        format!(" for {}", list(names))
    };
    format!(
        "Drained by an operator: no new answers with {}{of} while another cluster can take the traffic",
        list(entries)
    )
}

/// Says that it may be stopped.
pub(super) fn safe(entries: &[String]) -> String {
    format!(
        "No cache can have an answer with {} any more: it is safe to stop",
        list(entries)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short_whatever_they_are_of() {
        let names = |count: usize| -> Vec<String> { (0..count).map(|at| at.to_string()).collect() };
        for (count, text) in [
            (0, ""),
            (1, "0"),
            (5, "0, 1, 2, 3, 4"),
            (6, "0, 1, 2, 3, 4 and 1 more"),
            (10_000, "0, 1, 2, 3, 4 and 9995 more"),
        ] {
            assert_eq!(list(&names(count)), text);
        }
    }

    #[test]
    fn a_drain_of_some_names_says_of_which() {
        let text = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            drained_by_operator(&["192.0.2.1".to_owned()], &names)
        };
        let end = "while another cluster can take the traffic";
        let all = format!("Drained by an operator: no new answers with 192.0.2.1 {end}");
        assert_eq!(text(&[]), all);
        let some = text(&["a.example", "b.example"]);
        assert!(
            some.contains("192.0.2.1 for a.example, b.example while"),
            "{some}"
        );
    }

    #[test]
    fn what_does_not_count_is_an_annotation_or_a_field() {
        for (key, why, wanted) in [
            (
                "ttl",
                Overruled::ByMost,
                "meridian-dns.io/ttl is not what counts for shop/web: most clusters say otherwise, or the first of them by name; make them equal",
            ),
            (
                "spec.ports",
                Overruled::ByMost,
                "spec.ports is not what counts for shop/web: most clusters say otherwise, or the first of them by name; make them equal",
            ),
            (
                "spec.ports",
                Overruled::ByRoom,
                "spec.ports is more than shop/web has room for: that of the first clusters by name counts",
            ),
        ] {
            let conflict = PolicyConflict {
                key,
                why,
                overruled: Vec::new(),
            };
            assert_eq!(policy(&conflict, "shop/web"), wanted);
        }
    }

    #[test]
    fn what_was_refused_is_named_where_it_has_a_name() {
        let key = "meridian-dns.io/weight";
        assert_eq!(
            invalid(key, "`-1` is none"),
            "meridian-dns.io/weight: `-1` is none; the rest counts"
        );
        let more = invalid(PREFIX, "7 more were refused");
        assert_eq!(more, "7 more were refused; the rest counts");
        assert_eq!(
            invalid("meridian-dns.io/fence", "it is none"),
            "meridian-dns.io/fence: it is none; the object is not served"
        );
    }
}
