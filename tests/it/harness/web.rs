//! An HTTP client that shares nothing with the server: whole responses, and streams of events as they come.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long one response may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    /// Gives a header; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Reads the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}) in {self:?}"))
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Web {
    server: SocketAddr,
    method: String,
    path: String,
    headers: Vec<String>,
    body: Option<String>,
}

impl Web {
    /// Asks for a path.
    pub fn get(server: SocketAddr, path: &str) -> Self {
        Self::new(server, "GET", path)
    }

    /// As above, by any method.
    pub fn new(server: SocketAddr, method: &str, path: &str) -> Self {
        Self {
            server,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// Adds a header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push(format!("{name}: {value}"));
        self
    }

    /// Shows a token, if there is one.
    pub fn token(self, token: Option<&str>) -> Self {
        match token {
            Some(token) => self.with("Authorization", &format!("Bearer {token}")),
            None => self,
        }
    }

    /// Adds a body of JSON.
    pub fn json(self, body: &str) -> Self {
        self.with("Content-Type", "application/json").body(body)
    }

    /// Adds a body.
    pub fn body(mut self, body: &str) -> Self {
        self.body = Some(body.to_owned());
        self
    }

    /// Sends it.
    fn open(&self, connection: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.server, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        text += &format!("Host: {}\r\nConnection: {connection}\r\n", self.server);
        for header in &self.headers {
            text += &format!("{header}\r\n");
        }
        if let Some(body) = &self.body {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += "\r\n";
        text += self.body.as_deref().unwrap_or_default();
        // The server may answer before it has read all.
        let _ = stream.write_all(text.as_bytes());
        BufReader::new(stream)
    }

    /// Sends it, and reads the whole response.
    pub fn send(&self) -> Answer {
        let mut reader = self.open("close");
        let (status, headers) = head(&mut reader);
        let mut body = String::new();
        // A server that did not take the whole body may reset the connection behind its answer.
        let _ = reader.read_to_string(&mut body);
        Answer {
            status,
            headers,
            body,
        }
    }

    /// Sends it, and reads a stream of events.
    pub fn stream(&self) -> Events {
        let mut reader = self
            .clone()
            .with("Accept", "text/event-stream")
            .open("keep-alive");
        let (status, headers) = head(&mut reader);
        assert_eq!(status, 200, "{headers:?}");
        assert!(headers["content-type"].starts_with("text/event-stream"));
        assert_eq!(headers["transfer-encoding"], "chunked");
        Events {
            reader,
            text: String::new(),
        }
    }
}

/// Reads status and headers.
fn head(reader: &mut BufReader<TcpStream>) -> (u16, BTreeMap<String, String>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status in {line:?}"));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return (status, headers);
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

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
