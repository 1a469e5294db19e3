//! What words mean: a cluster, a service, an endpoint, or a record's id.

use crate::admin::dto::{TargetDto, TargetKind};

/// What is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// A thing.
    Target(TargetDto),
    /// A record, by its id.
    Id(String),
}

/// Says that a word stands for no kind of thing.
pub(super) fn unknown(word: &str) -> String {
    format!(
        "`{word}` is no kind of target; write `cluster NAME`, `service NAMESPACE/NAME` or `endpoint CLUSTER ADDRESS`"
    )
}

/// Reads the words of a target, and the options that narrow it.
///
/// # Errors
///
/// In words, when they do not fit together.
pub(super) fn read(
    words: &[String],
    cluster: Option<&str>,
    service: Option<&str>,
) -> Result<Meant, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let owned = |text: &str| Some(text.to_owned());
    let target = match words.as_slice() {
        ["cluster", name] => {
            if service.is_some() || cluster.is_some() {
                return Err(
                    "a cluster is drained or forced whole; for a part of it write `service NAMESPACE/NAME --cluster NAME`"
                        .to_owned(),
                );
            }
            TargetDto {
                kind: TargetKind::Cluster,
                cluster: owned(name),
                service: None,
                address: None,
            }
        }
        ["service", key] => {
            if service.is_some() {
                return Err("--service goes with `endpoint`".to_owned());
            }
            TargetDto {
                kind: TargetKind::Service,
                cluster: cluster.map(str::to_owned),
                service: Some(checked(key)?),
                address: None,
            }
        }
        ["endpoint", of, address] => {
            if cluster.is_some() {
                return Err("--cluster goes with `service`; of an endpoint the cluster stands before its address".to_owned());
            }
            TargetDto {
                kind: TargetKind::Endpoint,
                cluster: owned(of),
                service: service.map(checked).transpose()?,
                address: owned(address),
            }
        }
        ["cluster", ..] => return Err("a cluster has one name: `cluster NAME`".to_owned()),
        ["service", ..] => return Err("a service has one key: `service NAMESPACE/NAME`".to_owned()),
        ["endpoint", ..] => {
            return Err(
                "an endpoint has a cluster and an address: `endpoint CLUSTER ADDRESS`".to_owned(),
            );
        }
        [id] => {
            if cluster.is_some() || service.is_some() {
                return Err(unknown(id));
            }
            return Ok(Meant::Id((*id).to_owned()));
        }
        [word, ..] => return Err(unknown(word)),
        [] => return Err("what? write `cluster NAME`, say".to_owned()),
    };
    Ok(Meant::Target(target))
}

/// Checks the form of a service's key.
fn checked(key: &str) -> Result<String, String> {
    match key.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok(key.to_owned())
        }
        _ => Err(format!(
            "`{key}` is no key of a service; write `NAMESPACE/NAME`, such as shop/web"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(text: &str, cluster: Option<&str>, service: Option<&str>) -> Result<Meant, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        read(&words, cluster, service)
    }

    #[test]
    fn words_name_targets() {
        let target = |kind, cluster: &str, service: &str, address: &str| {
            let part = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Meant::Target(TargetDto {
                kind,
                cluster: part(cluster),
                service: part(service),
                address: part(address),
            })
        };
        let (cluster, service, endpoint) = (
            TargetKind::Cluster,
            TargetKind::Service,
            TargetKind::Endpoint,
        );
        for (text, in_cluster, of_service, wanted) in [
            ("cluster a", None, None, target(cluster, "a", "", "")),
            ("service n/s", None, None, target(service, "", "n/s", "")),
            (
                "service n/s",
                Some("a"),
                None,
                target(service, "a", "n/s", ""),
            ),
            (
                "endpoint a ::1",
                None,
                None,
                target(endpoint, "a", "", "::1"),
            ),
            (
                "endpoint a ::1",
                None,
                Some("n/s"),
                target(endpoint, "a", "n/s", "::1"),
            ),
            ("01JF", None, None, Meant::Id("01JF".to_owned())),
        ] {
            assert_eq!(meant(text, in_cluster, of_service), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn words_that_do_not_fit_are_told_what_would() {
        for (text, cluster, service, words) in [
            ("cluster", None, None, "cluster NAME"),
            ("cluster a b", None, None, "cluster NAME"),
            ("cluster a", None, Some("n/s"), "--cluster NAME"),
            ("service web", None, None, "NAMESPACE/NAME"),
            ("service n/s/t", None, None, "NAMESPACE/NAME"),
            ("service n/s", None, Some("n/s"), "`endpoint`"),
            ("endpoint a", None, None, "CLUSTER ADDRESS"),
            ("endpoint a 1.2.3.4", Some("a"), None, "before its address"),
            ("clutser a", None, None, "no kind of target"),
            ("01JF", Some("a"), None, "no kind of target"),
            ("", None, None, "cluster NAME"),
        ] {
            let fault = meant(text, cluster, service).unwrap_err();
            assert!(fault.contains(words), "{text}: {fault}");
        }
    }
}
