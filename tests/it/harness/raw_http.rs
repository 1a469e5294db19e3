//! An HTTP client that sends what it is told, right or wrong, from an address of its own.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use super::honest::connect_from;
use super::loopback;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Status line and headers, as sent.
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Reads an answer; `None` when the connection ended without one.
    fn parse(octets: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(octets);
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some(Self {
            status: head.split(' ').nth(1)?.parse().ok()?,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    /// Gives the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// Reads the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}) in {self:?}"))
    }

    /// Gives the cookie that it sets, as a browser sends it back.
    pub fn cookie(&self) -> String {
        let set = self.header("set-cookie").expect("a cookie");
        set.split(';').next().unwrap().to_owned()
    }
}

/// A request being put together.
#[derive(Clone, Debug)]
pub struct Web {
    to: SocketAddr,
    from: IpAddr,
    line: String,
    host: Option<String>,
    headers: String,
    body: String,
}

impl Web {
    /// Asks for a path, from an address that nobody else uses.
    pub fn new(to: SocketAddr, method: &str, path: &str) -> Self {
        Self {
            to,
            from: loopback(),
            line: format!("{method} {path} HTTP/1.1"),
            host: Some(to.to_string()),
            headers: String::new(),
            body: String::new(),
        }
    }

    /// Gets a path.
    pub fn get(to: SocketAddr, path: &str) -> Self {
        Self::new(to, "GET", path)
    }

    /// Sends a form of the page itself.
    pub fn form(to: SocketAddr, path: &str, body: &str) -> Self {
        let origin = format!("http://{to}");
        Self::new(to, "POST", path)
            .with("Origin", &origin)
            .with("Content-Type", "application/x-www-form-urlencoded")
            .body(body)
    }

    /// Asks from this address.
    pub fn from(mut self, from: IpAddr) -> Self {
        self.from = from;
        self
    }

    /// Names the host, or none.
    pub fn host(mut self, host: Option<&str>) -> Self {
        self.host = host.map(str::to_owned);
        self
    }

    /// Adds a header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Shows a token.
    pub fn bearer(self, token: &str) -> Self {
        self.with("Authorization", &format!("Bearer {token}"))
    }

    /// Adds a body.
    pub fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        let length = body.len().to_string();
        self.with("Content-Length", &length)
    }

    /// Adds a body of JSON.
    pub fn json(self, body: &str) -> Self {
        self.with("Content-Type", "application/json").body(body)
    }

    /// Writes all of it.
    pub fn text(&self) -> String {
        let host = self.host.as_ref();
        let host = host.map_or_else(String::new, |host| format!("Host: {host}\r\n"));
        let (line, headers, body) = (&self.line, &self.headers, &self.body);
        format!("{line}\r\n{host}{headers}Connection: close\r\n\r\n{body}")
    }

    /// Sends it and reads what comes; `None` when nothing does.
    pub fn try_send(&self) -> Option<Answer> {
        let mut stream = self.connect();
        // Whoever sends too much is cut while it still sends.
        let _ = stream.write_all(self.text().as_bytes());
        Answer::parse(&read(&mut stream))
    }

    /// Sends it and reads the answer.
    pub fn send(&self) -> Answer {
        self.try_send()
            .unwrap_or_else(|| panic!("no answer to {}", self.text()))
    }

    /// Connects.
    pub fn connect(&self) -> TcpStream {
        let stream = connect_from(self.from, self.to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends it over TLS to a server of this name, whose certificate must be the given one.
    pub fn send_over_tls(
        &self,
        name: &str,
        certificate: &CertificateDer<'static>,
    ) -> Option<Answer> {
        let mut stream = self.open_over_tls(name, certificate)?;
        Answer::parse(&read(&mut stream))
    }

    /// The same, of what never ends: reads until the answer has a text.
    pub fn hear_over_tls(
        &self,
        (name, text): (&str, &str),
        certificate: &CertificateDer<'static>,
    ) -> Option<String> {
        let mut stream = self.open_over_tls(name, certificate)?;
        let (mut heard, mut buffer) = (String::new(), [0; 4096]);
        while !heard.contains(text) {
            let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
            heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
        Some(heard)
    }

    /// Sends it over TLS; gives the connection.
    fn open_over_tls(
        &self,
        name: &str,
        certificate: &CertificateDer<'static>,
    ) -> Option<StreamOwned<ClientConnection, TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, self.connect());
        stream.write_all(self.text().as_bytes()).ok()?;
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        Some(stream)
    }
}

/// Reads to the end, or to the error that is one.
fn read(stream: &mut impl Read) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        octets.extend_from_slice(&buffer[..length]);
    }
    octets
}
