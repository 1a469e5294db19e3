//! TLS of the admin listeners: certificate and key are read anew when their files change, and the last good ones stay.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::client::verify_server_name;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::config::TlsFiles;
use crate::model::Rejection;
use crate::source::read_bounded;

/// Largest PEM file in octets.
const MAX_FILE: u64 = 1 << 20;
/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(2);
/// A client that has not finished its handshake by then is cut.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);

/// The certificate in force, shared by all listeners.
#[derive(Clone)]
pub(super) struct Certificates {
    inner: Arc<Inner>,
}

struct Inner {
    files: TlsFiles,
    /// What is shown, and the octets it was made of.
    held: RwLock<Option<Held>>,
}

#[derive(Clone)]
struct Held {
    key: Arc<CertifiedKey>,
    octets: Arc<(Vec<u8>, Vec<u8>)>,
}

/// Files and states hold a private key: nothing is shown.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}

impl Certificates {
    /// Reads the files. What is wrong with them is logged, and they are looked at again: until they are right, handshakes
    /// fail. DNS does not wait for the dashboard's certificate.
    pub(super) fn open(files: &TlsFiles) -> Self {
        let certificates = Self {
            inner: Arc::new(Inner {
                files: files.clone(),
                held: RwLock::default(),
            }),
        };
        if let Err(refused) = certificates.look() {
            warn!(
                rejection = refused.located(),
                "Certificate of the dashboard cannot be used; its TLS listeners refuse all until it is right"
            );
        }
        certificates
    }

    fn held(&self) -> Option<Held> {
        let held = self.inner.held.read();
        held.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files if they changed, and puts them in force if they are right. Tells whether it did.
    fn look(&self) -> Result<bool, Rejection> {
        let octets = read(&self.inner.files)?;
        if self.held().is_some_and(|held| *held.octets == octets) {
            return Ok(false);
        }
        let key = Arc::new(parse(&self.inner.files, &octets)?);
        let octets = Arc::new(octets);
        let mut held = self
            .inner
            .held
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *held = Some(Held { key, octets });
        Ok(true)
    }

    /// Looks at the files until the token falls.
    pub(super) async fn watch(self, token: CancellationToken) {
        let mut refused = Refused::default();
        let mut looks = tokio::time::interval(LOOK);
        loop {
            // Cancel-safe: both arms only wait.
            tokio::select! {
                () = token.cancelled() => return,
                _ = looks.tick() => {}
            }
            let looking = self.clone();
            // Reading never panics; should it, the next look does better.
            let Ok(looked) = tokio::task::spawn_blocking(move || looking.look()).await else {
                continue;
            };
            match looked {
                Ok(true) => info!("New certificate of the dashboard is in force"),
                Ok(false) => refused = Refused::default(),
                Err(now) => {
                    if refused.is_new(&now) {
                        warn!(
                            rejection = now.located(),
                            "New certificate of the dashboard is refused; the former one stays in force"
                        );
                    }
                }
            }
        }
    }

    /// Tells whether the certificate is for this name or address.
    pub(super) fn cover(&self, name: &str) -> bool {
        let covers = || {
            let held = self.held()?;
            let leaf = ParsedCertificate::try_from(held.key.cert.first()?).ok()?;
            let name = ServerName::try_from(name).ok()?;
            verify_server_name(&leaf, &name).ok()
        };
        covers().is_some()
    }

    /// Makes what speaks TLS over the connections of a listener.
    pub(super) fn acceptor(&self) -> Acceptor {
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .expect("ring has suites for TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Resolver(self.clone())));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Acceptor {
            tls: TlsAcceptor::from(Arc::new(config)),
            certificates: self.clone(),
        }
    }
}

/// What was refused at the last looks.
#[derive(Debug, Default)]
struct Refused {
    last: Option<Rejection>,
    times: u32,
}

impl Refused {
    /// Tells whether to speak of it: files are replaced one after the other, so it is said once it has stood for one look.
    fn is_new(&mut self, now: &Rejection) -> bool {
        if self.last.as_ref() != Some(now) {
            self.last = Some(now.clone());
            self.times = 0;
        }
        self.times = self.times.saturating_add(1);
        self.times == 2
    }
}

/// Speaks TLS.
#[derive(Clone)]
pub(super) struct Acceptor {
    tls: TlsAcceptor,
    /// What it shows.
    pub(super) certificates: Certificates,
}

impl Acceptor {
    /// Does the handshake of a connection, in time.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let accepting = self.tls.accept(stream);
        let accepted = tokio::time::timeout(HANDSHAKE_TIME, accepting).await;
        accepted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// Shows the certificate in force to every client.
#[derive(Debug)]
struct Resolver(Certificates);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.held().map(|held| held.key)
    }
}

/// Tells what is wrong with the files; `None`: nothing.
pub(super) fn refused(files: &TlsFiles) -> Option<Rejection> {
    let octets = match read(files) {
        Ok(octets) => octets,
        Err(refused) => return Some(refused),
    };
    parse(files, &octets).err()
}

/// Reads both files.
fn read(files: &TlsFiles) -> Result<(Vec<u8>, Vec<u8>), Rejection> {
    let read = |path| {
        read_bounded(path, MAX_FILE)
            .map_err(|error| refuse(path, format!("cannot be read: {}", error.reason())))
    };
    Ok((read(&files.certificate)?, read(&files.key)?))
}

fn refuse(path: &std::path::Path, reason: String) -> Rejection {
    Rejection {
        source: path.display().to_string(),
        place: String::new(),
        reason,
    }
}

/// Makes a certificate with its key out of PEM texts. Nothing of the texts is in what is said of them.
fn parse(files: &TlsFiles, (chain, key): &(Vec<u8>, Vec<u8>)) -> Result<CertifiedKey, Rejection> {
    let of_chain = |why: &str| refuse(&files.certificate, format!("is no certificate: {why}"));
    let of_key = |why: &str| refuse(&files.key, format!("is no private key: {why}"));
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|_| of_chain("its PEM is broken"))?;
    let leaf = chain
        .first()
        .ok_or_else(|| of_chain("there is no `BEGIN CERTIFICATE` in it"))?;
    ParsedCertificate::try_from(leaf).map_err(|_| of_chain("its first certificate is broken"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
        of_key("a PEM text with `BEGIN PRIVATE KEY` is wanted, without a passphrase")
    })?;
    CertifiedKey::from_der(chain, key, &default_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => of_key("it belongs to another certificate"),
        _ => of_key("its kind is unknown; ECDSA P-256 or P-384, RSA and Ed25519 are known"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &std::path::Path, names: &[&str]) -> TlsFiles {
        let made = rcgen::generate_simple_self_signed(
            names.iter().map(ToString::to_string).collect::<Vec<_>>(),
        )
        .unwrap();
        let files = TlsFiles {
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
        };
        std::fs::write(&files.certificate, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        files
    }

    #[test]
    fn a_certificate_is_for_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let files = write(
            folder.path(),
            &["dash.example.com", "*.nodes.example.com", "192.0.2.1"],
        );
        let certificates = Certificates::open(&files);
        for (name, covered) in [
            ("dash.example.com", true),
            ("DASH.example.com", true),
            ("fra.nodes.example.com", true),
            ("192.0.2.1", true),
            ("192.0.2.2", false),
            ("example.com", false),
            ("a.fra.nodes.example.com", false),
            ("", false),
        ] {
            assert_eq!(certificates.cover(name), covered, "{name}");
        }
        assert_eq!(format!("{certificates:?}"), "Certificates");
    }

    #[test]
    fn the_last_good_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let files = write(folder.path(), &["one.example"]);
        let certificates = Certificates::open(&files);
        assert_eq!(certificates.look(), Ok(false));
        let key = std::fs::read(&files.key).unwrap();
        write(folder.path(), &["two.example"]);
        assert_eq!(certificates.look(), Ok(true));
        assert!(certificates.cover("two.example") && !certificates.cover("one.example"));
        // A key of another certificate, and no certificate at all.
        std::fs::write(&files.key, &key).unwrap();
        let why = certificates.look().unwrap_err();
        assert!(why.reason.contains("another certificate"), "{why}");
        std::fs::write(&files.certificate, "canary").unwrap();
        let why = certificates.look().unwrap_err();
        assert!(why.reason.contains("BEGIN CERTIFICATE"), "{why}");
        assert!(!why.to_string().contains("canary"));
        std::fs::remove_file(&files.certificate).unwrap();
        assert!(certificates.look().is_err() && refused(&files).is_some());
        assert!(certificates.cover("two.example"));
    }
}
