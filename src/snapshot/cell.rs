//! The one cell: the only file that knows arc-swap.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::frozen::Snapshot;

/// Holds the snapshot in force. One per process.
#[derive(Debug, Default)]
pub struct SnapshotCell {
    current: ArcSwap<Snapshot>,
}

impl SnapshotCell {
    /// Puts a snapshot in force and hands back the one before, which the controller keeps until no worker reads it.
    pub fn publish(&self, snapshot: Snapshot) -> Arc<Snapshot> {
        self.current.swap(Arc::new(snapshot))
    }

    /// Makes a reader for one worker.
    #[must_use]
    pub fn reader(self: &Arc<Self>) -> SnapshotReader {
        SnapshotReader {
            cell: Arc::clone(self),
        }
    }
}

/// Loads the snapshot in force: wait-free.
#[derive(Clone, Debug)]
pub struct SnapshotReader {
    cell: Arc<SnapshotCell>,
}

impl SnapshotReader {
    /// Loads the snapshot in force to keep: it counts as held until dropped.
    #[must_use]
    pub fn load_owned(&self) -> Arc<Snapshot> {
        self.cell.current.load_full()
    }

    /// Loads the snapshot in force: wait-free. Hold it for a batch, never while blocked.
    #[must_use]
    pub fn load(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.cell.current.load()
    }
}
