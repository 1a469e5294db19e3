//! Credential plugins: programs that a kubeconfig names, which print credentials (client.authentication.k8s.io).
//!
//! A plugin has half a minute and a mebibyte, and what it starts ends with it when that is over. What it says on standard error is thrown away: nobody knows what is in it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{Cluster, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::bearer::Bearer;
use super::fault::{Fault, FaultKind};

/// How long a plugin may take: those of clouds ask over the network.
const TIME: Duration = Duration::from_secs(30);
/// Octets that it may print.
const MAX_OUTPUT: usize = 1 << 20;
/// The versions of its output that are known; they are alike in what is read here.
const VERSIONS: [&str; 2] = [
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
];

/// A plugin with all that it is started with.
#[derive(Clone)]
pub(super) struct Plugin {
    command: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and variables may be secrets.
        write!(f, "Plugin({})", self.command.display())
    }
}

/// What a plugin gave.
#[derive(Debug, Default)]
pub(super) struct Credentials {
    /// A token.
    pub(super) bearer: Option<Bearer>,
    /// A certificate and its key, PEM.
    pub(super) identity: Option<(String, SecretString)>,
    /// When they end; `None`: they do not.
    pub(super) expires: Option<Timestamp>,
}

/// A plugin that runs, the leader of a process group of its own. Dropped before it has ended, the group is killed: a shell's
/// children would outlive the shell.
struct Running {
    child: Child,
}

impl Running {
    /// Starts it.
    fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        Ok(Self { child })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Until it is waited for its number is nobody else's; then there is none.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// ExecCredential, as far as it is read.
#[derive(Deserialize)]
struct Printed {
    #[serde(rename = "apiVersion")]
    version: Option<String>,
    status: Option<PrintedStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PrintedStatus {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl Plugin {
    /// Takes what a kubeconfig in `folder` says. A command with a slash in it is a path, relative to the folder.
    ///
    /// # Errors
    /// When no command is named, its version is unknown, or it wants a terminal.
    pub(super) fn of(exec: &ExecConfig, cluster: &Cluster, folder: &Path) -> Result<Self, Fault> {
        let unusable = |why: &str| Fault::new(FaultKind::Unusable, why);
        let command = exec
            .command
            .as_deref()
            .filter(|command| !command.is_empty())
            .ok_or_else(|| unusable("exec: no command is named"))?;
        let version = exec.api_version.as_deref().unwrap_or_default();
        if !VERSIONS.contains(&version) {
            let known = VERSIONS.join(" or ");
            return Err(unusable(&format!("exec: apiVersion must be {known}")));
        }
        if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            return Err(unusable(
                "exec: interactiveMode is Always, and there is no terminal",
            ));
        }
        let mut spec = json!({"interactive": false});
        if exec.provide_cluster_info {
            let cluster = ExecAuthCluster::try_from(cluster)
                .ok()
                .and_then(|cluster| serde_json::to_value(cluster).ok())
                .ok_or_else(|| unusable("exec: the cluster cannot be told to the plugin"))?;
            if let Some(spec) = spec.as_object_mut() {
                spec.insert("cluster".to_owned(), cluster);
            }
        }
        let info = json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec});
        let mut variables = Vec::new();
        for entry in exec.env.iter().flatten() {
            let (Some(name), Some(value), 2) = (entry.get("name"), entry.get("value"), entry.len())
            else {
                return Err(unusable(
                    "exec: an entry of env must have name and value, and nothing else",
                ));
            };
            variables.push((name.clone(), value.clone()));
        }
        variables.push(("KUBERNETES_EXEC_INFO".to_owned(), info.to_string()));
        let command = if command.contains('/') {
            folder.join(command)
        } else {
            command.into()
        };
        Ok(Self {
            command,
            arguments: exec.args.clone().unwrap_or_default(),
            variables,
        })
    }

    /// Runs it.
    ///
    /// # Errors
    /// When it cannot be started, takes too long, fails, or prints no credentials.
    pub(super) async fn run(&self) -> Result<Credentials, Fault> {
        match tokio::time::timeout(TIME, self.output()).await {
            Ok(output) => self.read(&output?),
            // Dropped, it is killed with all that it started.
            Err(_) => Err(self.fault("took too long")),
        }
    }

    async fn output(&self) -> Result<Vec<u8>, Fault> {
        let mut command = Command::new(&self.command);
        command
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut running = Running::start(&mut command)
            .map_err(|error| self.fault(&format!("cannot be started: {error}")))?;
        let mut output = Vec::new();
        if let Some(stdout) = running.child.stdout.take() {
            let mut stdout = stdout.take(MAX_OUTPUT as u64 + 1);
            let read = stdout.read_to_end(&mut output).await;
            read.map_err(|error| self.fault(&format!("cannot be read from: {error}")))?;
        }
        if output.len() > MAX_OUTPUT {
            return Err(self.fault("printed too much"));
        }
        let status = running.child.wait().await;
        let status = status.map_err(|error| self.fault(&format!("was lost: {error}")))?;
        if status.success() {
            Ok(output)
        } else {
            let why = format!("ended with {status}; run by hand, it may say why");
            Err(self.fault(&why))
        }
    }

    fn read(&self, output: &[u8]) -> Result<Credentials, Fault> {
        // What the parser says may quote what was printed.
        let printed: Printed = serde_json::from_slice(output)
            .map_err(|_| self.fault("printed no ExecCredential in JSON"))?;
        if !printed
            .version
            .is_some_and(|version| VERSIONS.contains(&version.as_str()))
        {
            return Err(self.fault("printed another apiVersion than was asked for"));
        }
        let status = printed
            .status
            .ok_or_else(|| self.fault("printed no status"))?;
        let expires = match status.expiration_timestamp {
            Some(text) => Some(
                text.parse()
                    .map_err(|_| self.fault("printed an expirationTimestamp that is no time"))?,
            ),
            None => None,
        };
        let bearer = match status.token {
            Some(token) => {
                Some(Bearer::new(&token).map_err(|_| self.fault("printed a token that is none"))?)
            }
            None => None,
        };
        let key = status.client_key_data.map(SecretString::from);
        let identity = match (status.client_certificate_data, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err(self.fault("printed a certificate without its key")),
            (None, Some(_)) => return Err(self.fault("printed a key without its certificate")),
        };
        if bearer.is_none() && identity.is_none() {
            return Err(self.fault("printed neither a token nor a certificate with its key"));
        }
        Ok(Credentials {
            bearer,
            identity,
            expires,
        })
    }

    fn fault(&self, what: &str) -> Fault {
        let name = self.command.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        Fault::new(FaultKind::Unusable, &format!("plugin {name} {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plugin that is a shell script.
    fn script(text: &str) -> ExecConfig {
        serde_json::from_value(json!({
            "apiVersion": VERSIONS[0],
            "command": "sh",
            "args": ["-c", text],
            "env": [{"name": "TOKEN", "value": "canary"}],
            "provideClusterInfo": true,
        }))
        .unwrap()
    }

    fn plugin(exec: &ExecConfig) -> Result<Plugin, Fault> {
        let cluster = Cluster {
            server: Some("https://192.0.2.1".to_owned()),
            ..Cluster::default()
        };
        Plugin::of(exec, &cluster, Path::new("/etc/folder"))
    }

    const HEAD: &str =
        r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": "#;

    #[tokio::test]
    async fn tokens_and_certificates_are_read() {
        let text = format!(
            r#"echo '{HEAD}{{"token": "'$TOKEN'", "expirationTimestamp": "2030-01-01T00:00:00Z"}}}}'"#
        );
        let got = plugin(&script(&text)).unwrap().run().await.unwrap();
        assert_eq!(got.bearer.unwrap().secret(), "canary");
        assert!(got.identity.is_none());
        assert_eq!(got.expires.unwrap().as_second(), 1_893_456_000);

        let text = format!(
            r#"echo '{HEAD}{{"clientCertificateData": "cert", "clientKeyData": "key"}}}}'"#
        );
        let got = plugin(&script(&text)).unwrap().run().await.unwrap();
        assert_eq!(got.identity.unwrap().0, "cert");
        assert!(got.bearer.is_none() && got.expires.is_none());
    }

    #[tokio::test]
    async fn the_plugin_is_told_of_the_cluster() {
        let text = format!(
            r#"case "$KUBERNETES_EXEC_INFO" in
            *'"interactive":false'*'"server":"https://192.0.2.1"'*) echo '{HEAD}{{"token": "told"}}}}' ;;
            esac"#
        );
        let got = plugin(&script(&text)).unwrap().run().await.unwrap();
        assert_eq!(got.bearer.unwrap().secret(), "told");
    }

    #[tokio::test]
    async fn failures_have_reasons_without_secrets() {
        let mebibyte = MAX_OUTPUT + 2;
        for (text, why) in [
            ("echo canary >&2; exit 3".to_owned(), "exit status: 3"),
            ("echo canary".to_owned(), "no ExecCredential"),
            (format!("head -c {mebibyte} /dev/zero"), "too much"),
            (format!("echo '{HEAD}{{}}}}'"), "neither"),
            (
                format!(r#"echo '{HEAD}{{"token": "a", "clientCertificateData": "canary"}}}}'"#),
                "without its key",
            ),
            (
                format!(r#"echo '{HEAD}{{"token": "a", "clientKeyData": "canary"}}}}'"#),
                "without its certificate",
            ),
            (
                format!(r#"echo '{HEAD}{{"token": "canary canary"}}}}'"#),
                "token that is none",
            ),
            (
                format!(r#"echo '{HEAD}{{"token": "a", "expirationTimestamp": "canary"}}}}'"#),
                "no time",
            ),
            (
                r#"echo '{"apiVersion": "canary/v1", "status": {"token": "a"}}'"#.to_owned(),
                "another apiVersion",
            ),
        ] {
            let plugin = plugin(&script(&text)).unwrap();
            let fault = plugin.run().await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Unusable);
            assert!(fault.text.contains(why), "{text}: {}", fault.text);
            assert!(!fault.text.contains("canary"), "{}", fault.text);
            assert!(!format!("{plugin:?}").contains("canary"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_hangs_is_given_up() {
        let fault = plugin(&script("exec sleep 1000")).unwrap().run().await;
        assert!(fault.unwrap_err().text.contains("took too long"));
    }

    /// Tells whether a process runs: one that was killed and not yet waited for does not.
    fn runs(id: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"));
        stat.is_ok_and(|stat| {
            let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
            !matches!(state, Some(Some('Z' | 'X')) | None)
        })
    }

    /// Waits for something that must come.
    async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn what_a_plugin_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("children");
        // The leader waits, or is gone while its child holds its output.
        for end in ["wait", "exit 0"] {
            let text = format!(
                "sleep 1000 & echo $! > {0}.part; mv {0}.part {0}; {end}",
                file.display()
            );
            let plugin = plugin(&script(&text)).unwrap();
            let begun = async {
                let read = || std::fs::read_to_string(&file).ok();
                until(read).await.trim().to_owned()
            };
            let child = tokio::select! {
                output = plugin.output() => panic!("it ended: {}", output.is_ok()),
                child = begun => child,
            };
            let gone = until(|| (!runs(&child)).then_some(()));
            let is_gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
            assert!(is_gone.is_ok(), "{child} runs on");
            std::fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused_at_once() {
        let mut exec = script("true");
        exec.api_version = Some("client.authentication.k8s.io/v1alpha1".to_owned());
        assert!(plugin(&exec).unwrap_err().text.contains("apiVersion"));
        let mut exec = script("true");
        exec.interactive_mode = Some(ExecInteractiveMode::Always);
        assert!(plugin(&exec).unwrap_err().text.contains("terminal"));
        let mut exec = script("true");
        exec.command = None;
        assert!(plugin(&exec).unwrap_err().text.contains("command"));
        for env in [
            json!([{"name": "A", "vaule": "canary"}]),
            json!([{"name": "A", "value": "b"}, {"value": "canary"}]),
            json!([{"name": "A", "value": "b", "valueFrom": "canary"}]),
        ] {
            let mut exec = script("true");
            exec.env = serde_json::from_value(env).unwrap();
            let text = plugin(&exec).unwrap_err().text;
            assert!(text.contains("env") && !text.contains("canary"), "{text}");
        }
        exec.command = Some("bin/plugin".to_owned());
        assert_eq!(
            plugin(&exec).unwrap().command,
            Path::new("/etc/folder/bin/plugin")
        );
    }
}
