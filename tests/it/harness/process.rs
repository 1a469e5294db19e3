//! A process of our own, ended by its pid.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How many lines of a log are shown with a failure.
const SHOWN: usize = 400;

/// A running process with its log.
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts a command; what it writes goes to `folder/name.log`.
    pub fn start(name: &str, folder: &Path, command: &mut Command) -> Self {
        let log = folder.join(format!("{name}.log"));
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        Self {
            child,
            name: name.to_owned(),
            log,
        }
    }

    /// Gives the pid.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives what it has written so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Gives the last lines of it.
    pub fn tail(&self, lines: usize) -> String {
        let log = self.log();
        let mut last: Vec<&str> = log.lines().rev().take(lines).collect();
        last.reverse();
        last.join("\n")
    }

    /// Gives its status when it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Panics with the log when it has ended.
    pub fn assert_running(&mut self) {
        if let Some(status) = self.ended() {
            panic!("{} ended with {status}\n{}", self.name, self.log());
        }
    }

    /// Sends a signal by name, such as `HUP`.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args(["-s", signal, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success(), "kill -s {signal} {}", self.name);
    }

    /// Ends it at once, as a crash would (`kill -9`).
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end and waits.
    pub fn terminate(self, patience: Duration) -> ExitStatus {
        self.signal("TERM");
        self.end(patience).0
    }

    /// Waits until it ends by itself; gives its status and its log.
    pub fn end(mut self, patience: Duration) -> (ExitStatus, String) {
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if let Some(status) = self.ended() {
                return (status, self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!(
            "{} did not end within {patience:?}\n{}",
            self.name,
            self.log()
        );
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("--- log of {}\n{}", self.name, self.tail(SHOWN));
        }
    }
}
