//! Streams of server-sent events, read as they come.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::raw_http::Web;

/// One server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub id: String,
    pub event: String,
    pub data: String,
}

/// A stream of events.
pub struct Events {
    reader: BufReader<TcpStream>,
    /// What came and is no whole event yet.
    text: String,
}

impl Events {
    /// Sends a request for a stream.
    pub fn open(web: Web) -> Self {
        let web = web.with("Accept", "text/event-stream");
        let mut stream = web.connect();
        stream.write_all(web.text().as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
        }
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let text = String::new();
        Self { reader, text }
    }

    /// Waits for the next event; comments are passed over. `None` when none came in time, or the stream ended.
    pub fn next(&mut self, patience: Duration) -> Option<Sent> {
        let until = Instant::now() + patience;
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let read = read(&event);
                if read != Sent::default() {
                    return Some(read);
                }
                continue;
            }
            let left = until.checked_duration_since(Instant::now())?;
            let left = left.max(Duration::from_millis(1));
            self.reader.get_ref().set_read_timeout(Some(left)).unwrap();
            let mut size = String::new();
            self.reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).ok()?;
            chunk.truncate(size);
            self.text += std::str::from_utf8(&chunk).unwrap();
        }
    }
}

/// Reads the fields of an event.
fn read(text: &str) -> Sent {
    let mut sent = Sent::default();
    for line in text.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "id" => sent.id = value,
            "event" => sent.event = value,
            "data" => sent.data += &value,
            _ => {}
        }
    }
    sent
}
