//! The same again and again: in place on a terminal, line behind line elsewhere.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Form, Frame, frame, last_word, summary};
use crate::app::args::{ListOutputArg, StatusArgs, StatusOf};
use crate::app::client::Nodes;
use crate::app::output::note;
use crate::app::words::span;

/// Goes to the terminal's other screen, hides the cursor, and lets long lines end at the margin.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
/// Undoes it.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Shows what was asked for until Ctrl-C.
///
/// # Errors
///
/// When the first answer is a definite no, or nobody reads on. Later faults are shown, and it goes on: nodes come back.
pub(super) async fn watch(
    args: &StatusArgs,
    nodes: &Nodes,
    every: Duration,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new()?;
    let table = matches!(args.how.output, ListOutputArg::Table | ListOutputArg::Wide);
    let place = (io::stdout().is_terminal() && table)
        .then(Place::enter)
        .transpose()?;
    let mut shown = Shown::default();
    loop {
        let mut form = Form::of(args, true);
        // What scrolls by is not said twice; a list in place is whole each time.
        if place.is_none() && matches!(args.of, Some(StatusOf::Events(_))) {
            form.after = shown.newest;
        }
        // Both futures are dropped without harm: a request is only reading.
        let result = tokio::select! {
            result = frame(args, nodes, &form) => result,
            () = signals.any() => break,
        };
        let frame = match result {
            Err(error)
                if !shown.any
                    && last_word(&error).is_some_and(|fault| fault.kind.is_definite()) =>
            {
                return Err(error);
            }
            Err(error) => Frame {
                notes: vec![format!("error: {error:#}")],
                ..Frame::default()
            },
            Ok(frame) => frame,
        };
        match &place {
            Some(place) => {
                let head = format!(
                    "{} · every {} · {:.0} · Ctrl-C ends it",
                    summary::title(nodes),
                    span(every.as_secs()),
                    form.screen.now
                );
                place.draw(&head, &frame)?;
            }
            None => append(&frame, table && shown.any && form.after.is_none())?,
        }
        shown.any = true;
        shown.newest = frame.newest.or(shown.newest);
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = signals.any() => break,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What was shown before.
#[derive(Debug, Default)]
struct Shown {
    any: bool,
    newest: Option<u64>,
}

/// Writes a frame behind the one before it.
fn append(frame: &Frame, gap: bool) -> io::Result<()> {
    for words in &frame.notes {
        note(words);
    }
    let mut out = io::stdout().lock();
    if gap {
        out.write_all(b"\n")?;
    }
    out.write_all(frame.text.as_bytes())?;
    out.flush()
}

/// The terminal's other screen, left when this falls.
struct Place;

impl Place {
    /// Goes there.
    fn enter() -> io::Result<Self> {
        let mut out = io::stdout().lock();
        out.write_all(ENTER.as_bytes())?;
        out.flush()?;
        Ok(Self)
    }

    /// Draws a frame over the one before.
    fn draw(&self, head: &str, frame: &Frame) -> io::Result<()> {
        let notes = frame.notes.iter().flat_map(|words| words.lines());
        let lines: Vec<&str> = [head, ""]
            .into_iter()
            .chain(frame.text.lines())
            .chain(notes)
            .collect();
        let mut out = io::stdout().lock();
        out.write_all(over(&lines).as_bytes())?;
        out.flush()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut out = io::stdout().lock();
        // Nobody is left to be told.
        let _ = out.write_all(LEAVE.as_bytes());
        let _ = out.flush();
    }
}

/// Writes lines over what is on the screen. Rows below the last one count as the last: so what is below the lines is cleared first,
/// and lines are written from the last to the first, and the top of too long a text stays.
fn over(lines: &[&str]) -> String {
    let mut text = format!("\x1b[{};1H\x1b[J", lines.len() + 1);
    for (at, line) in lines.iter().enumerate().rev() {
        text.push_str(&format!("\x1b[{};1H\x1b[2K{line}", at + 1));
    }
    text
}

/// What ends a watch.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Catches them from now on.
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for any of them.
    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_drawn_over_each_other_from_the_last_to_the_first() {
        assert_eq!(
            over(&["a", "b"]),
            "\x1b[3;1H\x1b[J\x1b[2;1H\x1b[2Kb\x1b[1;1H\x1b[2Ka"
        );
    }
}
