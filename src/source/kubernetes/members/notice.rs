//! A notice that is acted on a little later, by somebody who waits for other things too.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

/// A notice that was taken, and not yet acted on: kept here, it outlives a wait that is dropped in its middle.
#[derive(Debug, Default)]
pub(super) struct Notice {
    is_taken: bool,
}

impl Notice {
    /// Waits for a notice, and so much longer, as they come in swarms. Cancel-safe: what came before the wait was dropped is
    /// there for the next one.
    pub(super) async fn wait(&mut self, notices: &Notify, longer: Duration) {
        if !self.is_taken {
            notices.notified().await;
            self.is_taken = true;
        }
        sleep(longer).await;
        self.is_taken = false;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const LONGER: Duration = Duration::from_millis(100);

    #[tokio::test(start_paused = true)]
    async fn a_notice_outlives_a_wait_that_is_dropped() {
        let (notices, mut notice) = (Notify::new(), Notice::default());
        notices.notify_one();
        let early = timeout(LONGER / 2, notice.wait(&notices, LONGER)).await;
        assert!(early.is_err(), "it waits a little longer");
        let later = timeout(LONGER * 2, notice.wait(&notices, LONGER)).await;
        assert!(later.is_ok(), "it was lost");
        let again = timeout(LONGER * 2, notice.wait(&notices, LONGER)).await;
        assert!(again.is_err(), "one notice counts once");
    }
}
