//! What the outside may count and read: the log set-up, the counters of workers, the query log, traces.

mod clock;
mod counters;
mod histogram;
mod labels;
mod logs;
mod outlet;
mod query_log;
mod senders;
mod traces;

pub use clock::wall_time;
pub use counters::{CLUSTERS, Count, Counters, RESORT_CELLS};
pub use histogram::{Histogram, Times};
pub use labels::{Given, Order, PlaceOf, QueryType, ReplyCode};
pub use logs::{LogFilter, LogFormat, SPANS, flush_log, set_up, tell};
pub use outlet::lost_log_lines;
pub use query_log::{
    LoggedVia, Naming, QueryLog, QueryLogConfig, QueryLogTarget, QueryNames, QueryRecord, QueryTap,
    lost_query_log_lines,
};
pub use senders::{KEPT_SENDERS, SampledSender, SenderKind, SenderRing};
pub use traces::{OtlpConfig, Traces, TracesError, lost_spans};
