//! FAULTS F11: `kill -9` at any step of a write leaves the old state or the new one, whole.
//!
//! The steps that are too short to be hit are tried one by one in `controller::last_good`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use meridian::controller::{LastGood, content_hash};

use crate::harness::loopback;
use crate::harness::node::Node;
use crate::harness::process::Process;
use crate::samples::FIVE;

/// Kills in a normal run; `MERIDIAN_KILLS=200` before a change to what is written on disk is handed in.
const KILLS: usize = 40;

/// Longest time for one start to get to its first write.
const PATIENCE: Duration = Duration::from_secs(20);

/// The steps of a write as they can be seen from outside.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A content is being written.
    ContentBegun,
    /// The state is being written.
    StateBegun,
    /// The new state is in place; former contents are being removed.
    StateRenamed,
}

/// Gives the zone file of one round, some megabytes that take a while to reach the disk.
fn zone(round: usize) -> String {
    let line = format!("; {}\n", "x".repeat(126));
    format!("$TTL 300\nnumber TXT \"{round}\"\n{}", line.repeat(16_384))
}

/// What one round looks at.
struct Round<'a> {
    state: &'a Path,
    /// `state.json` before.
    former: Vec<u8>,
    /// Hash of the new content.
    hash: String,
    since: SystemTime,
}

impl Round<'_> {
    /// Tells whether a step is reached. Temporary files of former rounds do not count.
    fn is_reached(&self, step: Step) -> bool {
        match step {
            Step::ContentBegun => {
                let name = format!("{}.tmp", self.hash);
                self.state.join("blobs").join(name).exists()
            }
            Step::StateBegun => std::fs::metadata(self.state.join("state.tmp"))
                .is_ok_and(|metadata| metadata.modified().unwrap() >= self.since),
            Step::StateRenamed => std::fs::read(self.state.join("state.json"))
                .is_ok_and(|octets| octets != self.former),
        }
    }
}

#[test]
fn a_kill_at_any_step_leaves_the_old_state_or_the_new_one() {
    let kills = std::env::var("MERIDIAN_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let mut node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), zone(0)).unwrap();
    });
    // A first whole state.
    assert!(node.take_process().terminate(PATIENCE).success());
    let (folder, state) = (node.folder().to_owned(), node.folder().join("state"));
    let path = folder.join("svc.mesh.zone");
    let (mut dice, mut kept, mut taken) = (Dice(0x5eed), 0, [0; 2]);
    let begun = Instant::now();
    for round in 1..=kills {
        let seen = Round {
            state: &state,
            former: std::fs::read(state.join("state.json")).unwrap(),
            hash: content_hash(zone(round).as_bytes()),
            since: SystemTime::now(),
        };
        std::fs::write(&path, zone(round)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_meridian"));
        command.arg("run").arg("--config").arg(node.config_path());
        let mut process = Process::start("round", &folder, &mut command);
        let step = [Step::ContentBegun, Step::StateBegun, Step::StateRenamed][round % 3];
        let started = Instant::now();
        while !seen.is_reached(step) && !seen.is_reached(Step::StateRenamed) {
            process.assert_running();
            assert!(started.elapsed() < PATIENCE, "{step:?} in round {round}");
            std::thread::yield_now();
        }
        // Then anywhere in the next milliseconds.
        let moment = Instant::now() + Duration::from_micros(dice.below(1500));
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        process.kill();
        // What a restart would find: the round before, or this one, and the content that it names.
        let last_good = LastGood::at(&state);
        let memory = last_good
            .read()
            .unwrap_or_else(|error| panic!("{error} in round {round}"));
        let content = last_good.kept(&memory.files[&path]).unwrap();
        let found = if content == zone(round).as_bytes() {
            round
        } else {
            kept
        };
        assert!(
            content == zone(found).as_bytes(),
            "{step:?} in round {round}"
        );
        taken[usize::from(found == round)] += 1;
        kept = found;
    }
    println!(
        "{kills} kills in {:?}: {} times the old state, {} times the new one",
        begun.elapsed(),
        taken[0],
        taken[1]
    );
    assert!(
        taken.iter().all(|times| *times > 0),
        "both sides must be hit: {taken:?}"
    );
    let log = std::fs::read_to_string(folder.join("round.log")).unwrap();
    assert!(!log.contains("not usable"), "{log}");
    // The program finds the same: with the file gone it serves the content it kept.
    std::fs::remove_file(&path).unwrap();
    node.spawn();
    let reply = crate::harness::client::Ask::a("number.svc.mesh")
        .of_type(hickory_proto::rr::RecordType::TXT)
        .udp(node.dns());
    assert!(
        reply.0.answers[0]
            .data
            .to_string()
            .contains(&kept.to_string()),
        "{reply:?}"
    );
}

/// Draws numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
