//! Servers as processes: where they may listen, when they are ready, what they cost, and that none outlives this program.

use std::fs::{self, File};
use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, mpsc};
use std::time::{Duration, Instant};

use crate::harness::packages::{SETPRIV, need};
use crate::harness::process::Process;
use crate::servers::cache;

/// How long a server may take to be ready.
const START: Duration = Duration::from_secs(60);
/// How many places are tried.
const PLACES: usize = 3;
/// Clock ticks a second in `/proc`, for every program on Linux.
const TICKS: u64 = 100;

/// What the keeper does.
type Job = Box<dyn FnOnce() + Send>;

/// A thread that lives as long as this program.
static KEEPER: LazyLock<mpsc::Sender<Job>> = LazyLock::new(|| {
    let (sender, jobs) = mpsc::channel::<Job>();
    std::thread::spawn(move || jobs.into_iter().for_each(|job| job()));
    sender
});

/// This run's folder, and the lock that says that the run goes on.
static RUN: LazyLock<(PathBuf, File)> = LazyLock::new(|| {
    let runs = cache().join("runs");
    fs::create_dir_all(&runs).unwrap();
    // One at a time: nobody looks at a folder that is not locked yet.
    let door = File::create(runs.join("lock")).unwrap();
    door.lock().unwrap();
    for entry in fs::read_dir(&runs).unwrap() {
        let folder = entry.unwrap().path();
        let alive = File::open(folder.join("alive"));
        if folder.is_dir() && alive.is_ok_and(|alive| alive.try_lock().is_ok()) {
            // A server that dies just now may still write; the next run removes the rest.
            let _ = fs::remove_dir_all(&folder);
        }
    }
    let folder = runs.join(std::process::id().to_string());
    fs::create_dir_all(&folder).unwrap();
    let alive = File::create(folder.join("alive")).unwrap();
    alive.lock().unwrap();
    (folder, alive)
});

/// Gives this run's folder. The next run removes it: what is shared by all tests never falls.
pub fn run_folder() -> &'static Path {
    &RUN.0
}

/// Starts a server that ends with this program, however that ends.
///
/// The kernel ends it when the thread ends that started it. Tests have threads of their own, so the keeper starts it.
pub fn start(name: &str, folder: &Path, program: &Path, args: &[String]) -> Process {
    need(&[SETPRIV]);
    let mut command = Command::new(SETPRIV.0);
    command
        .args(["--pdeathsig", "KILL"])
        .arg(program)
        .args(args)
        .env_clear()
        .env("GOMAXPROCS", "2")
        .current_dir(folder);
    let (name, folder) = (name.to_owned(), folder.to_owned());
    let (sender, started) = mpsc::channel();
    let job = move || {
        let _ = sender.send(Process::start(&name, &folder, &mut command));
    };
    KEEPER.send(Box::new(job)).expect("the keeper");
    started.recv().expect("a started server")
}

/// Gives ports of an address on which nobody listens.
pub fn free_ports<const COUNT: usize>(address: IpAddr) -> [u16; COUNT] {
    [(); COUNT]
        .map(|()| TcpListener::bind((address, 0)).unwrap())
        .map(|listener| listener.local_addr().unwrap().port())
}

/// Tries places until one is nobody else's: somebody may take a port that was free just now.
pub fn somewhere<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    for _ in 1..PLACES {
        match attempt() {
            Ok(server) => return server,
            Err(why) if why.contains("address already in use") => {}
            Err(why) => panic!("{why}"),
        }
    }
    attempt().unwrap_or_else(|why| panic!("{why}"))
}

/// Waits until a server is ready. The error has the end of its log.
pub fn wait_ready(process: &mut Process, ready: impl Fn() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    let why = loop {
        if ready() {
            return Ok(());
        }
        if let Some(status) = process.ended() {
            break format!("ended with {status}");
        }
        if begun.elapsed() > START {
            break format!("was not ready within {START:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Err(format!(
        "a server {why}; its log ends with\n{}",
        process.tail(40)
    ))
}

/// What a process has cost so far.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Processor time.
    pub cpu: Duration,
    /// Resident memory in octets.
    pub rss: u64,
}

impl Cost {
    /// Reads it of a running process.
    pub fn of(process: &Process) -> Self {
        let folder = PathBuf::from(format!("/proc/{}", process.id()));
        let stat = fs::read_to_string(folder.join("stat")).unwrap();
        // The program's name stands in brackets and may hold anything; the state follows, then numbers.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks: u64 = fields[11..=12]
            .iter()
            .map(|ticks| ticks.parse::<u64>().unwrap())
            .sum();
        let status = fs::read_to_string(folder.join("status")).unwrap();
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: u64 = rss
            .and_then(|rss| rss.trim().strip_suffix(" kB"))
            .unwrap()
            .parse()
            .unwrap();
        Self {
            cpu: Duration::from_millis(ticks * 1000 / TICKS),
            rss: kib * 1024,
        }
    }
}
