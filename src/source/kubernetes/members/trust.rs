//! Kubeconfigs that were found in a directory or a Secret: whoever may write there must not read a file of this node, nor run a command on
//! it. They have data alone, and run no program but those that the operator lists, in the environment that the node has.

use std::path::PathBuf;

use kube::config::{AuthInfo, Cluster};

use super::fault::Fault;
use super::kubeconfig::unusable;

/// Refuses what names a file of this node, or a program that is not listed.
///
/// # Errors
/// Which key does.
pub(super) fn check(cluster: &Cluster, user: &AuthInfo, exec: &[PathBuf]) -> Result<(), Fault> {
    let is_there = |file: &Option<String>| file.as_deref().is_some_and(|file| !file.is_empty());
    let files = [
        (&cluster.certificate_authority, "certificate-authority"),
        (&user.client_certificate, "client-certificate"),
        (&user.client_key, "client-key"),
        (&user.token_file, "tokenFile"),
    ];
    for (file, key) in files {
        if is_there(file) {
            return Err(unusable(&format!(
                "{key}: a kubeconfig that was found may not name files; write the data into it"
            )));
        }
    }
    if user.auth_provider.is_some() {
        return Err(unusable(
            "auth-provider: a kubeconfig that was found may not run programs",
        ));
    }
    let Some(wanted) = &user.exec else {
        return Ok(());
    };
    let command = wanted.command.as_deref().unwrap_or_default();
    if !exec.iter().any(|listed| listed.as_os_str() == command) {
        return Err(unusable(
            "exec: a kubeconfig that was found may run only the programs that `clustersFrom[].exec` lists, by just that path",
        ));
    }
    // LD_PRELOAD, BASH_ENV or PATH make any program another one.
    if wanted.env.as_ref().is_some_and(|env| !env.is_empty()) {
        return Err(unusable(
            "exec.env: a kubeconfig that was found may set no environment; set it for the node",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::kubeconfig::choose;
    use crate::source::kubernetes::rules::{Access, Trust};

    /// The user of a cluster, programs that are listed, and a part of the reason; `-`: it can be used.
    const USERS: &str = r#"
{token: abc} => => -
{as: someone, token: abc} => => -
{username: a, password: canary} => => -
{client-certificate: /etc/shadow} => => client-certificate: a kubeconfig that was found may not name files
{client-certificate-data: YQ==, client-key: /etc/shadow} => => client-key: a kubeconfig
{tokenFile: /etc/shadow, token: canary} => => tokenFile: a kubeconfig
{auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}} => => auth-provider: a kubeconfig
{token: canary, exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}} => => exec: a kubeconfig
{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/aws}} => /bin/aws => -
{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh}} => /bin/aws => exec: a kubeconfig
{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/aws, env: [{name: LD_PRELOAD, value: canary}]}} => /bin/aws => exec.env: a kubeconfig
{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/aws, env: []}} => /bin/aws => -
{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}} => /bin/aws => exec: a kubeconfig
{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/../bin/aws}} => /bin/aws => exec: a kubeconfig
{exec: {apiVersion: client.authentication.k8s.io/v1, command: ../aws}} => /bin/aws => exec: a kubeconfig
{exec: {apiVersion: client.authentication.k8s.io/v1}} => /bin/aws => exec: a kubeconfig
"#;

    const SERVER: &str = "server: 'https://192.0.2.1'";

    /// Chooses of a kubeconfig with this cluster and this user; gives why not. No other file is opened.
    fn refusal((cluster, user): (&str, &str), tail: &str, trust: Trust) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("found.yaml");
        let text = format!(
            "clusters: [{{name: c, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {user}}}]\n\
             contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n{tail}"
        );
        fs::write(&file, text).unwrap();
        let context = None;
        let (files, chosen) = choose(&Access::Kubeconfig {
            file,
            context,
            trust,
        });
        assert_eq!(files.count(), 1, "{cluster} {user}");
        chosen.err().map(|fault| fault.text.into())
    }

    fn data(exec: &str) -> Trust {
        Trust::Data {
            exec: exec.split_whitespace().map(Into::into).collect(),
        }
    }

    #[test]
    fn what_was_found_names_no_file_and_no_program_but_the_listed() {
        let tail = "current-context: x\n";
        for row in USERS.lines().filter(|row| !row.is_empty()) {
            let parts: Vec<&str> = row.split("=>").map(str::trim).collect();
            let [user, exec, expected] = parts[..] else {
                panic!("{row}")
            };
            let found = refusal((SERVER, user), tail, data(exec));
            match (expected, &found) {
                ("-", found) => assert_eq!(*found, None, "{row}"),
                (part, Some(why)) => {
                    assert!(
                        why.contains(part) && !why.contains("canary"),
                        "{row}: {why}"
                    );
                }
                (_, None) => panic!("{row} is used"),
            }
        }
        for (more, part) in [
            (
                ", certificate-authority: /etc/shadow",
                Some("certificate-authority: a kubeconfig"),
            ),
            // Where a request goes is for whoever writes the server too.
            (", proxy-url: 'http://192.0.2.9'", None),
        ] {
            let cluster = format!("{SERVER}{more}");
            let found = refusal((&cluster, "{}"), tail, data(""));
            assert_eq!(found.is_some(), part.is_some(), "{found:?}");
            assert!(found.is_none_or(|why| why.contains(part.unwrap_or("-"))));
        }
    }

    #[test]
    fn the_only_context_needs_no_choice() {
        assert_eq!(refusal((SERVER, "{}"), "", data("")), None);
        let other = "current-context: other\n";
        assert!(refusal((SERVER, "{}"), other, data("")).is_some());
        // The operator's own say it.
        assert!(refusal((SERVER, "{}"), "", Trust::Whole).is_some());
    }
}
