//! What can go wrong between a command and a node, and what to do about it.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// Why a node did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{server}: {kind}")]
pub(in crate::app) struct Fault {
    /// The node's URL.
    pub(in crate::app) server: String,
    /// What went wrong.
    pub(in crate::app) kind: FaultKind,
}

/// What went wrong, in words that say what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::app) enum FaultKind {
    /// Nobody listens there.
    #[error(
        "connection refused; is `meridian run` up there, and is this an address of its `admin.listen`?"
    )]
    Refused,
    /// The connection failed otherwise.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// The connection took too long.
    #[error("no connection within 3 s; is the address right, and does a firewall let you through?")]
    NoConnection,
    /// The host has no address.
    #[error("no address was found for this host; is its name right?")]
    NoSuchHost,
    /// The answer took too long.
    #[error("connected, but not answered within 10 s; is the node overloaded or stopped?")]
    NoAnswer,
    /// TLS failed.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// What came was not HTTP, or nothing came.
    #[error("this is no HTTP, or the connection was closed; is it an https:// address?")]
    NotHttp,
    /// It points elsewhere.
    #[error("it points to {0}; give that URL, for redirects are not followed")]
    Redirect(String),
    /// It answers, but not as a node does.
    #[error(
        "this does not answer as a Meridian node does (HTTP {status}, {content_type}); the API is on `admin.listen`, not on `metrics.listen`"
    )]
    NotMeridian {
        /// The status.
        status: u16,
        /// The kind of content.
        content_type: String,
    },
    /// More came than any node says.
    #[error("the answer is larger than 32 MiB; ask for less with filters or --limit")]
    TooLarge,
    /// The answer broke off.
    #[error("the answer broke off; try again")]
    Cut,
    /// The answer has another shape.
    #[error("the answer is not understood ({0}); this is meridian {version}, what is the node?", version = env!("CARGO_PKG_VERSION"))]
    Garbage(String),
    /// No token, or one it does not know.
    #[error("{}", unauthorized(*had_token, *changes))]
    Unauthorized {
        /// A token was shown.
        had_token: bool,
        /// Something was to be changed.
        changes: bool,
    },
    /// The token's role may not.
    #[error("{}", forbidden(detail, *changes))]
    Forbidden {
        /// In the node's words.
        detail: String,
        /// Something was to be changed.
        changes: bool,
    },
    /// There is none of this name.
    #[error("{0}")]
    NotFound(String),
    /// The node refuses what was asked.
    #[error("{0}")]
    Refusal(String),
    /// Too many requests.
    #[error("too many requests from here{}; wait, then try again", within(*retry_after))]
    Busy {
        /// Seconds until it may be tried again.
        retry_after: Option<u32>,
    },
    /// The node fails.
    #[error("the node fails (HTTP {status}): {detail}")]
    Failing {
        /// The status.
        status: u16,
        /// In the node's words.
        detail: String,
    },
}

impl FaultKind {
    /// Tells whether every node would say so: asking the next makes no sense.
    pub(in crate::app) fn is_definite(&self) -> bool {
        matches!(
            self,
            Self::Unauthorized { .. }
                | Self::Forbidden { .. }
                | Self::NotFound(_)
                | Self::Refusal(_)
        )
    }
}

/// Says what a node that wants a token wants.
fn unauthorized(had_token: bool, changes: bool) -> String {
    let role = if changes { "operator" } else { "viewer" };
    let what = if had_token {
        "it does not know this token"
    } else {
        "it wants a token"
    };
    format!(
        "{what}: `meridian token` makes one; list its line in the node's `admin.tokens` with role {role}, and give the token itself with --token-file FILE or MERIDIAN_TOKEN_FILE"
    )
}

/// Says what a node that forbids it wants.
fn forbidden(detail: &str, changes: bool) -> String {
    let role = if changes { "operator" } else { "viewer" };
    format!(
        "not with this token's role{}; role {role} is needed: `meridian token` makes one, and `admin.tokens` lists it with its role",
        if detail.is_empty() {
            String::new()
        } else {
            format!(" ({detail})")
        }
    )
}

/// Says when.
fn within(seconds: Option<u32>) -> String {
    seconds.map_or_else(String::new, |seconds| {
        format!(" ({seconds} s until the next is taken)")
    })
}

/// Says what a failed request failed of.
pub(super) fn of_request(error: &reqwest::Error) -> FaultKind {
    let chain = || causes(error.source());
    if let Some(tls) = chain().find_map(tls_error) {
        return FaultKind::Tls(tls_words(tls));
    }
    if error.is_timeout() {
        return if error.is_connect() {
            FaultKind::NoConnection
        } else {
            FaultKind::NoAnswer
        };
    }
    if error.is_connect() {
        if chain().any(|cause| cause.to_string().starts_with("dns error")) {
            return FaultKind::NoSuchHost;
        }
        let io = chain().find_map(|cause| cause.downcast_ref::<io::Error>());
        return match io.map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => FaultKind::Refused,
            // A server without TLS answers a hello with words, or not at all.
            Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
                FaultKind::Tls("the connection was closed; is it an http:// address?".to_owned())
            }
            _ => FaultKind::Unreachable(last(error)),
        };
    }
    if error.is_body() || error.is_decode() {
        return FaultKind::Cut;
    }
    FaultKind::NotHttp
}

/// Gives the deepest cause's words: those above say only that something failed.
fn last(error: &reqwest::Error) -> String {
    causes(error.source())
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// Lists an error and what is below it.
fn causes<'e>(
    first: Option<&'e (dyn Error + 'static)>,
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(first, |cause| (*cause).source())
}

/// Finds an error of TLS in a cause.
fn tls_error<'e>(cause: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    cause.downcast_ref::<rustls::Error>().or_else(|| {
        let inner = cause.downcast_ref::<io::Error>()?.get_ref()?;
        inner.downcast_ref::<rustls::Error>().or_else(|| {
            // The connector wraps once more.
            tls_error(inner.downcast_ref::<io::Error>()?)
        })
    })
}

/// Says what is wrong with a certificate or a handshake.
fn tls_words(error: &rustls::Error) -> String {
    match error {
        // A bad signature is another authority of the same name: one made anew, say.
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => {
            "its certificate is from an authority that is not trusted here; name a private one with --ca FILE".to_owned()
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "its certificate is for another name; give the URL with a name that the certificate has".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "its certificate has expired; renew it on the node, and check this machine's clock".to_owned(),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "its certificate is not valid yet; check this machine's clock".to_owned(),
        rustls::Error::InvalidMessage(_) => "this is no TLS; is it an http:// address?".to_owned(),
        other => other.to_string(),
    }
}
