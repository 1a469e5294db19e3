//! What configuration says of the HTTP listeners.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::identity::Role;

/// `admin` and `metrics`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `admin.listen`: everything. Beyond loopback only with TLS, and with tokens or an identity provider.
    pub admin: Vec<SocketAddr>,
    /// `metrics.listen`: livez, readyz and metrics alone, open to all who reach it.
    pub metrics: Vec<SocketAddr>,
    /// `admin.tls`: what every listener of `admin` speaks.
    pub tls: Option<TlsFiles>,
    /// Who may do what.
    pub access: AccessConfig,
}

/// `admin.tls`: PEM files, absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those above it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What may change while running: all of `admin` but the listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    /// `admin.anonymous`.
    pub anonymous: Anonymous,
    /// `admin.tokens`.
    pub tokens: Vec<TokenFile>,
    /// `admin.oidc`.
    pub oidc: Option<OidcConfig>,
    /// `admin.hosts`: further names of the dashboard, lower case, without port.
    pub hosts: Vec<String>,
}

/// What those may who show nothing, on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anonymous {
    /// Read.
    #[default]
    Viewer,
    /// Nothing.
    None,
}

/// One of `admin.tokens`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile {
    /// Who uses it.
    pub name: String,
    /// The file with its hashes, absolute.
    pub path: PathBuf,
    /// What it may.
    pub role: Role,
}

/// `admin.oidc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcConfig {
    /// The provider: `https://…`, as in the claim `iss`.
    pub issuer: String,
    /// Who the tokens are for, as in the claim `aud`.
    pub audience: String,
    /// A file with the provider's keys, absolute; `None` asks the provider.
    pub jwks_file: Option<PathBuf>,
    /// PEM file with the authorities that sign the provider's certificate, absolute; `None`: the system's.
    pub ca: Option<PathBuf>,
    /// The claim that has the roles; dots lead into objects.
    pub roles_claim: String,
    /// Values of the claim that make a viewer.
    pub viewer: Vec<String>,
    /// Values of the claim that make an operator.
    pub operator: Vec<String>,
}
