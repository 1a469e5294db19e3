//! The live stream: it says that something happened, never what. The page then fetches its own part again.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use futures_util::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until, timeout};

use super::parts::STEADY;
use super::shell::Dashboard;
use crate::admin::access::Viewer;
use crate::admin::dto::EventDto;
use crate::admin::view::LOOK;

/// From an event to the word of it, at least: until then a part made before the event may be shown, and that part may have been
/// made of a look that was already as old as a look may be. Whoever fetches at the word sees nothing older than the event, but
/// where there is so much that a look takes longer to read than it may be used: the next word shows it then.
const SETTLE: Duration = Duration::from_millis(250);
const _: () = assert!(SETTLE.as_millis() >= STEADY.as_millis() + LOOK.as_millis());
/// From one word to the next, at least: a storm of flips is one fetch a second.
const PACE: Duration = Duration::from_secs(1);
/// With nothing to tell, this is how often ages and rates are fetched again. It also finds out who has left.
const TICK: Duration = Duration::from_secs(5);

/// Streams `change` after events, at most once a second, and `tick` where nothing happens.
pub(super) async fn stream(_: Viewer, State(dashboard): State<Dashboard>) -> impl IntoResponse {
    let listener = Listener {
        events: dashboard.view.subscribe(),
        next: Instant::now(),
    };
    let words = stream::unfold(listener, |listener| async {
        let (word, listener) = listener.hear().await?;
        let event = Event::default().event(word).data(word);
        Some((Ok::<_, Infallible>(event), listener))
    });
    // No proxy may hold them back until it has many.
    ([("x-accel-buffering", "no")], Sse::new(words))
}

/// One who listens.
struct Listener {
    events: Receiver<EventDto>,
    /// When the next word may be said.
    next: Instant,
}

impl Listener {
    /// Waits for the next word; `None` when the node goes down.
    async fn hear(mut self) -> Option<(&'static str, Self)> {
        let heard = timeout(TICK, self.events.recv()).await;
        let word = match heard {
            Ok(Err(RecvError::Closed)) => return None,
            // Whoever lagged behind knows as much: something happened.
            Ok(Ok(_) | Err(RecvError::Lagged(_))) => "change",
            Err(_) => "tick",
        };
        let due = self.next.max(Instant::now() + SETTLE);
        sleep_until(due - SETTLE).await;
        // All that happened until here is told by this word: what is fetched when it is said shows it. What happens from here
        // on has a word of its own.
        self.events = self.events.resubscribe();
        sleep_until(due).await;
        self.next = Instant::now() + PACE;
        Some((word, self))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;
    use crate::admin::dashboard::samples;

    #[tokio::test(start_paused = true)]
    async fn a_storm_is_one_word_a_second_and_the_last_flip_is_told() {
        let (sender, events) = broadcast::channel(8);
        let mut listener = Listener {
            events,
            next: Instant::now(),
        };
        let begun = Instant::now();
        sender.send(samples::flip(1)).unwrap();
        let (word, after) = listener.hear().await.unwrap();
        assert_eq!((word, begun.elapsed()), ("change", SETTLE));
        listener = after;
        // More than the channel holds, within the second.
        for id in 2..50 {
            sender.send(samples::flip(id)).unwrap();
        }
        let (word, after) = listener.hear().await.unwrap();
        assert_eq!((word, begun.elapsed()), ("change", SETTLE + PACE));
        listener = after;
        let (word, after) = listener.hear().await.unwrap();
        assert_eq!(
            (word, begun.elapsed()),
            ("tick", SETTLE + PACE + TICK + SETTLE)
        );
        drop(sender);
        assert!(after.hear().await.is_none());
    }
    #[tokio::test(start_paused = true)]
    async fn what_happens_just_before_a_word_has_a_word_of_its_own() {
        let (sender, events) = broadcast::channel(8);
        let listener = Listener {
            events,
            next: Instant::now(),
        };
        let begun = Instant::now();
        sender.send(samples::flip(1)).unwrap();
        let late = async {
            tokio::time::sleep(SETTLE / 2).await;
            sender.send(samples::flip(2)).unwrap();
        };
        let (heard, ()) = tokio::join!(listener.hear(), late);
        let (word, listener) = heard.unwrap();
        assert_eq!((word, begun.elapsed()), ("change", SETTLE));
        let (word, _) = listener.hear().await.unwrap();
        assert_eq!((word, begun.elapsed()), ("change", SETTLE + PACE));
    }
}
