//! The task that empties the rings and writes lines.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::circle::Ring;
use super::file::Rotating;
use super::record::{LoggedVia, QueryRecord};
use super::{QueryLogConfig, QueryLogTarget, QueryTap};
use crate::model::{ClusterIndex, LowerName, NameRef};
use crate::telemetry::logs::put_line;

/// How often the rings are emptied: a ring holds a thousand records, so ten thousand a second and worker are logged.
const LOOK: Duration = Duration::from_millis(100);
/// Octets written at once.
const CHUNK: usize = 64 << 10;

/// Lines that could not be written since the start.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Gives the lines of the query log that could not be written since the start.
#[must_use]
pub fn lost_query_log_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// What names clusters and zones in lines.
#[derive(Clone, Debug, Default)]
pub struct QueryNames {
    /// By index.
    pub clusters: HashMap<ClusterIndex, String>,
    /// Apexes.
    pub zones: HashSet<LowerName>,
}

impl QueryNames {
    /// Finds the zone that a name lies in.
    fn zone(&self, name: NameRef<'_>) -> Option<String> {
        let lower = name.to_lower();
        let ancestors = std::iter::successors(Some(lower.as_ref()), |name| name.parent());
        let mut apexes = ancestors.filter_map(|name| self.zones.get(&name.to_lower()));
        apexes.next().map(ToString::to_string)
    }
}

/// Gives the names of now.
pub type Naming = Box<dyn FnMut() -> Arc<QueryNames> + Send>;

/// The query log before it runs: hands a tap to each worker.
#[derive(Debug)]
pub struct QueryLog {
    config: QueryLogConfig,
    rings: Vec<Arc<Ring>>,
}

impl QueryLog {
    /// Begins a log without workers.
    #[must_use]
    pub fn new(config: &QueryLogConfig) -> Self {
        Self {
            config: config.clone(),
            rings: Vec::new(),
        }
    }

    /// Makes the tap of one more worker.
    #[must_use]
    pub fn tap(&mut self) -> QueryTap {
        let ring = Arc::new(Ring::new());
        let number = u32::try_from(self.rings.len()).unwrap_or(0);
        self.rings.push(Arc::clone(&ring));
        QueryTap::new(&self.config, ring, number)
    }

    /// Writes until the token falls, then what is left.
    pub async fn run(self, mut naming: Naming, token: CancellationToken) {
        let mut sink = Some(Sink::open(&self.config.target));
        let rings: Arc<[_]> = self.rings.into();
        loop {
            // Cancel-safe: both arms only wait.
            let stop = tokio::select! {
                () = token.cancelled() => true,
                () = tokio::time::sleep(LOOK) => false,
            };
            let (rings, names) = (Arc::clone(&rings), naming());
            let Some(mut writing) = sink.take() else {
                return;
            };
            let written = tokio::task::spawn_blocking(move || {
                writing.empty(&rings, &names);
                writing
            });
            sink = written.await.ok();
            if stop {
                return;
            }
        }
    }
}

/// Where lines go, and whether the last ones did.
#[derive(Debug)]
struct Sink {
    file: Option<Rotating>,
    failing: bool,
    /// Lines made and not written yet, and how many.
    lines: Vec<u8>,
    count: u64,
}

impl Sink {
    fn open(target: &QueryLogTarget) -> Self {
        let file = match target {
            QueryLogTarget::Stderr => None,
            QueryLogTarget::File {
                path,
                max_octets,
                keep,
            } => Some(Rotating::new(path, *max_octets, *keep)),
        };
        Self {
            file,
            failing: false,
            lines: Vec::new(),
            count: 0,
        }
    }

    /// Writes what the rings hold.
    fn empty(&mut self, rings: &[Arc<Ring>], names: &QueryNames) {
        for ring in rings {
            while let Some(words) = ring.pop() {
                let line = line(&QueryRecord::from_words(&words), names);
                if self.file.is_none() {
                    put_line(&line);
                    continue;
                }
                // No chunk is larger than the smallest file that may be wanted.
                if self.lines.len() + line.len() > CHUNK {
                    self.flush();
                }
                self.lines.extend_from_slice(&line);
                self.count += 1;
            }
        }
        self.flush();
    }

    /// Writes the lines made so far, or loses and counts them.
    fn flush(&mut self) {
        let Some(file) = self.file.as_mut().filter(|_| self.count > 0) else {
            return;
        };
        match file.append(&self.lines) {
            Ok(()) if self.failing => {
                self.failing = false;
                info!("Query log is written again");
            }
            Ok(()) => {}
            Err(error) => {
                LOST.fetch_add(self.count, Ordering::Relaxed);
                // One line for a disk that stays full.
                if !std::mem::replace(&mut self.failing, true) {
                    warn!(%error, "Query log could not be written; its lines are lost");
                }
            }
        }
        self.lines.clear();
        self.count = 0;
    }
}

/// A line: the keys of version 1, which stay.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'r> {
    time: String,
    client: String,
    name: String,
    #[serde(rename = "type")]
    qtype: String,
    transport: &'static str,
    rcode: &'static str,
    zone: Option<String>,
    cluster: Option<&'r str>,
    reason: Option<&'static str>,
    order: Option<&'static str>,
    ttl: Option<u32>,
    scope: u8,
}

/// Makes the line of a record, its end included. Names are in presentation form: what is not visible ASCII is escaped there.
fn line(record: &QueryRecord, names: &QueryNames) -> Vec<u8> {
    let time = i64::try_from(record.time_ms).ok();
    let time = time.and_then(|time| jiff::Timestamp::from_millisecond(time).ok());
    let line = Line {
        time: time.map_or_else(String::new, |time| format!("{time:.3}")),
        client: record.client.to_string(),
        name: record.name().to_string(),
        qtype: record.qtype.to_string(),
        transport: match record.via {
            LoggedVia::Udp => "udp",
            LoggedVia::Tcp => "tcp",
        },
        rcode: record.code.as_str(),
        zone: names.zone(record.name()),
        cluster: record
            .cluster
            .and_then(|cluster| Some(names.clusters.get(&cluster)?.as_str())),
        reason: record.decided.map(|(_, given)| given.as_str()),
        order: record.decided.map(|(order, _)| order.as_str()),
        ttl: record.ttl,
        scope: record.scope,
    };
    // Text and numbers always have a form.
    let mut line = serde_json::to_vec(&line).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClientSubnet, NameRef, RecordType};
    use crate::telemetry::{Given, Order, ReplyCode};

    #[test]
    fn a_line_says_all_and_escapes_what_a_terminal_would_obey() {
        let mut names = QueryNames::default();
        names.zones.insert("example".parse().unwrap());
        names.clusters.insert(ClusterIndex(2), "europe".to_owned());
        let mut record = QueryRecord::begin(1_700_000_000_120, LoggedVia::Tcp);
        record.set_name(NameRef::from_wire(b"\x05a\x1b[\xff\"\x07EXAMPLE\0").unwrap());
        record.client = ClientSubnet::host("192.0.2.77".parse().unwrap()).cut(24);
        record.qtype = RecordType::AAAA;
        record.code = ReplyCode::NoData;
        record.decided = Some((Order::Distance, Given::AsIfUp));
        record.cluster = Some(ClusterIndex(2));
        record.ttl = Some(30);
        record.scope = 20;
        let text = String::from_utf8(line(&record, &names)).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"time":"2023-11-14T22:13:20.120Z","client":"192.0.2.0/24","name":"a\\027[\\255\\\".EXAMPLE","type":"AAAA","#,
                r#""transport":"tcp","rcode":"NODATA","zone":"example","cluster":"europe","reason":"as_if_up","order":"distance","ttl":30,"scope":20}"#,
                "\n"
            )
        );
    }

    #[test]
    fn lines_that_find_no_room_are_counted() {
        let full = QueryLogTarget::File {
            path: "/dev/full".into(),
            max_octets: 1 << 20,
            keep: 1,
        };
        let (before, ring) = (lost_query_log_lines(), Arc::new(Ring::new()));
        for _ in 0..3 {
            assert!(ring.push(&QueryRecord::begin(0, LoggedVia::Udp).to_words()));
        }
        Sink::open(&full).empty(&[ring], &QueryNames::default());
        assert_eq!(lost_query_log_lines() - before, 3);
    }
}
