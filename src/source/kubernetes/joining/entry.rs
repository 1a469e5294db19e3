//! The text of a kubeconfig that leads to one cluster and needs nothing else.

use std::fmt;

use crate::model::ClusterId;
use crate::source::kubernetes::members::Endpoint;

/// A token for a cluster. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

impl Token {
    /// Takes one; `None`: it is empty, or a header cannot carry it.
    pub(super) fn new(text: &str) -> Option<Self> {
        let is_good = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_graphic());
        is_good.then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// The text of a kubeconfig. It is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry(String);

impl Entry {
    /// Gives the text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entry(***)")
    }
}

/// Writes it. Context, cluster and user have the cluster's name.
pub(super) fn write(name: &ClusterId, endpoint: &Endpoint, token: &Token) -> Entry {
    let name = quoted(name.as_str());
    let mut text = format!(
        "# Leads to one cluster. Written by `meridian cluster join`; whoever has it may read there.\n\
         apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
         contexts:\n  - name: {name}\n    context: {{cluster: {name}, user: {name}}}\n\
         clusters:\n  - name: {name}\n    cluster:\n      server: {}\n",
        quoted(&endpoint.url)
    );
    let mut line = |key: &str, value: &str| {
        text.push_str(&format!("      {key}: {value}\n"));
    };
    // Both at once are refused by other programs.
    if let (Some(authority), false) = (&endpoint.authority, endpoint.is_unchecked) {
        line("certificate-authority-data", &quoted(authority));
    }
    if let Some(server) = &endpoint.tls_server_name {
        line("tls-server-name", &quoted(server));
    }
    if let Some(proxy) = &endpoint.proxy_url {
        line("proxy-url", &quoted(proxy.expose()));
    }
    if endpoint.is_unchecked {
        line("insecure-skip-tls-verify", "true");
    }
    text.push_str(&format!(
        "users:\n  - name: {name}\n    user:\n      token: {}\n",
        quoted(&token.0)
    ));
    Entry(text)
}

/// Writes a text as a scalar of YAML that is never taken for anything else. Strings of JSON are such.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn what_is_written_is_read_again_by_others() {
        for (name, url, server_name) in [
            ("aws-use1", "https://192.0.2.1:6443", None),
            (
                "1e3",
                "https://[2001:db8::1]:6443/k8s/a: b #c",
                Some("a\"b"),
            ),
            ("null", "https://a.example", Some("yes")),
        ] {
            let endpoint = Endpoint {
                url: url.to_owned(),
                authority: Some("YWJj".to_owned()),
                tls_server_name: server_name.map(str::to_owned),
                proxy_url: Some("http://me:canary@192.0.2.2".to_owned().into()),
                is_unchecked: false,
            };
            let token = Token::new("canary.to.ken").unwrap();
            let entry = write(&name.parse().unwrap(), &endpoint, &token);
            assert!(!format!("{entry:?}{token:?}").contains("canary"));
            // kube reads as kubectl does.
            let read = Kubeconfig::from_yaml(entry.expose()).unwrap();
            assert_eq!(read.current_context.as_deref(), Some(name));
            let context = read.contexts[0].context.as_ref().unwrap();
            assert_eq!(read.contexts[0].name, name);
            assert_eq!(
                (&*context.cluster, context.user.as_deref()),
                (name, Some(name))
            );
            assert_eq!(
                (&*read.clusters[0].name, &*read.auth_infos[0].name),
                (name, name)
            );
            let cluster = read.clusters[0].cluster.as_ref().unwrap();
            assert_eq!(cluster.server.as_deref(), Some(url));
            assert_eq!(cluster.certificate_authority_data.as_deref(), Some("YWJj"));
            assert_eq!(cluster.tls_server_name.as_deref(), server_name);
            assert_eq!(
                cluster.proxy_url.as_deref(),
                Some("http://me:canary@192.0.2.2")
            );
            assert_eq!(cluster.insecure_skip_tls_verify, None);
            let user = read.auth_infos[0].auth_info.as_ref().unwrap();
            let token = user.token.as_ref().unwrap().expose_secret();
            assert_eq!(token, "canary.to.ken");
            assert!(user.exec.is_none() && user.token_file.is_none());
        }
    }

    #[test]
    fn tokens_that_no_header_carries_are_none() {
        for bad in ["", "a b", "a\n", "ä"] {
            assert_eq!(Token::new(bad), None, "{bad:?}");
        }
    }
}
