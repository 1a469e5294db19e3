//! What leaves the node beside answers: the query log and traces.

use std::sync::Arc;

use tracing::warn;

use super::output::in_one;
use crate::controller::{ControllerHandle, World};
use crate::lifecycle::Supervisor;
use crate::telemetry::{Naming, OtlpConfig, QueryNames, Traces};
use crate::transport::Running;

/// Starts the task that writes the query log, if there is one.
pub(super) fn log_queries(
    running: &mut Running,
    controller: &ControllerHandle,
    supervisor: &mut Supervisor,
) {
    if let Some(log) = running.take_query_log() {
        let token = supervisor.token();
        supervisor.spawn("query-log", log.run(naming(controller.clone()), token));
    }
}

/// Gives names to clusters and zones, as of the last publish that changed any.
fn naming(controller: ControllerHandle) -> Naming {
    let mut held: Option<(Arc<World>, Arc<QueryNames>)> = None;
    Box::new(move || {
        let world = Arc::clone(&controller.status().world);
        if let Some((of, names)) = &held
            && Arc::ptr_eq(of, &world)
        {
            return Arc::clone(names);
        }
        let clusters = world.clusters.iter();
        let names = Arc::new(QueryNames {
            clusters: clusters
                .map(|(index, cluster)| (*index, cluster.id.to_string()))
                .collect(),
            zones: world.zones.iter().map(|(apex, _)| apex.clone()).collect(),
        });
        held = Some((world, Arc::clone(&names)));
        names
    })
}

/// Starts to send traces, if they are wanted. What stands in the way is told, and nothing more: answers need no collector.
pub(super) fn send_traces(config: Option<&OtlpConfig>, node: &str, supervisor: &mut Supervisor) {
    let Some(config) = config else { return };
    match Traces::start(config, node) {
        Ok(traces) => {
            let token = supervisor.token();
            supervisor.spawn("traces", traces.run(token));
        }
        Err(error) => {
            warn!(
                error = in_one(&error),
                "Traces are not sent; serving goes on"
            );
        }
    }
}
