//! The real program, serving a configuration of the test's.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

use super::process::Process;
use super::{loopback, wait_for};

/// How long a start may take.
const START: Duration = Duration::from_secs(20);

/// How long a figure may lag behind what it counts.
const SETTLING: Duration = Duration::from_secs(10);

/// Gives the command that the program is started with, such as one that limits it; the arguments follow.
pub type Wrap = fn(&Path) -> Command;

/// A running node in a folder of its own.
pub struct Node {
    process: Option<Process>,
    wrap: Wrap,
    folder: TempDir,
    dns: SocketAddr,
    http: SocketAddr,
}

/// Runs a command of the program to its end.
pub fn meridian(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_meridian"))
        .args(args)
        .output()
        .unwrap()
}

impl Node {
    /// Starts a node on port 53 of a loopback address of its own. `rest` is the configuration but for node, dns and admin.
    pub fn start(rest: &str) -> Self {
        Self::start_with("", rest)
    }

    /// As above; `dns` is put into the `dns` section, such as `identity: a, `.
    pub fn start_with(dns: &str, rest: &str) -> Self {
        Self::start_on(loopback(), dns, rest, |_| ())
    }

    /// Starts a node on a given address; `prepare` may write files into its folder first.
    pub fn start_on(address: IpAddr, dns: &str, rest: &str, prepare: impl FnOnce(&Path)) -> Self {
        let plain = |_: &Path| Command::new(env!("CARGO_BIN_EXE_meridian"));
        Self::start_wrapped(plain, (address, dns), rest, prepare)
    }

    /// As above, through a command that becomes the program (`exec`).
    pub fn start_wrapped(
        wrap: Wrap,
        (address, dns): (IpAddr, &str),
        rest: &str,
        prepare: impl FnOnce(&Path),
    ) -> Self {
        let http = SocketAddr::new(loopback(), 8053);
        let admin = format!("admin: {{listen: [\"{http}\"]}}\n");
        Self::start_on_listeners(wrap, (address, dns), (http, &admin), (rest, prepare))
    }

    /// Starts a node with a section `admin` of the test's. Readiness and metrics are on a listener of their own.
    pub fn start_with_admin(
        wrap: Wrap,
        admin: &str,
        rest: &str,
        prepare: impl FnOnce(&Path),
    ) -> Self {
        let http = SocketAddr::new(loopback(), 8053);
        let sections = format!("metrics: {{listen: [\"{http}\"]}}\nadmin: {{{admin}}}\n");
        Self::start_on_listeners(wrap, (loopback(), ""), (http, &sections), (rest, prepare))
    }

    /// Starts a node with more in its `admin` section, such as `anonymous: none, `.
    pub fn start_admin(admin: &str, rest: &str, prepare: impl FnOnce(&Path)) -> Self {
        let plain = |_: &Path| Command::new(env!("CARGO_BIN_EXE_meridian"));
        let http = SocketAddr::new(loopback(), 8053);
        let section = format!("admin: {{{admin}listen: [\"{http}\"]}}\n");
        Self::start_on_listeners(plain, (loopback(), ""), (http, &section), (rest, prepare))
    }

    fn start_on_listeners(
        wrap: Wrap,
        (address, dns): (IpAddr, &str),
        (http, sections): (SocketAddr, &str),
        (rest, prepare): (&str, impl FnOnce(&Path)),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = SocketAddr::new(address, 53);
        let head = format!(
            "version: 1\nnode: {{name: test, stateDirectory: state}}\ndns: {{{dns}listen: [\"{listen}\"], workers: 2}}\n{sections}"
        );
        prepare(folder.path());
        let mut node = Self {
            process: None,
            wrap,
            folder,
            dns: listen,
            http,
        };
        node.write_config(&format!("{head}{rest}"));
        node.spawn();
        node
    }

    /// Starts the program, and waits until it is ready.
    pub fn spawn(&mut self) {
        let mut command = (self.wrap)(self.folder.path());
        command.arg("run").arg("--config").arg(self.config_path());
        let mut process = Process::start("meridian", self.folder.path(), &mut command);
        wait_for("readyz", START, || {
            process.assert_running();
            self.get("/readyz")
                .filter(|answer| answer.starts_with("HTTP/1.1 200"))
        });
        self.process = Some(process);
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.process.take().expect("a running node").kill();
    }

    /// Gives the process.
    pub fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a running node")
    }

    /// Takes the process out, to end it by hand.
    pub fn take_process(&mut self) -> Process {
        self.process.take().expect("a running node")
    }

    /// Where it answers.
    pub fn dns(&self) -> SocketAddr {
        self.dns
    }

    /// Where livez, readyz and metrics are.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A path in its folder as it sees it itself, in its own mount namespace.
    pub fn inside(&mut self, path: &str) -> PathBuf {
        let folder = self.folder.path().strip_prefix("/").unwrap().to_owned();
        PathBuf::from(format!("/proc/{}/root", self.process().id()))
            .join(folder)
            .join(path)
    }

    /// Its configuration file.
    pub fn config_path(&self) -> PathBuf {
        self.folder.path().join("meridian.yaml")
    }

    /// Gives the configuration.
    pub fn config(&self) -> String {
        std::fs::read_to_string(self.config_path()).unwrap()
    }

    /// Replaces the configuration by rename, as editors and mounts do.
    pub fn write_config(&self, text: &str) {
        let path = self.folder.path().join("next.yaml");
        std::fs::write(&path, text).unwrap();
        std::fs::rename(path, self.config_path()).unwrap();
    }

    /// Gets a path over HTTP; the whole response, or `None` when nobody answers.
    pub fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&self.http, Duration::from_secs(1)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.http
        )
        .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Reads one value out of `/metrics`, by the whole name with its labels.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").expect("metrics");
        let line = text.lines().find(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(' '))
        });
        let line = line.unwrap_or_else(|| panic!("no metric {name} in\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Waits until a value of `/metrics` is what is wanted: what an answer shows, the figures may show a moment later.
    pub fn await_metric(&self, name: &str, wanted: f64) {
        wait_for(&format!("{name} to be {wanted}"), SETTLING, || {
            (self.metric(name) == wanted).then_some(())
        });
    }
}
