//! Keys, certificates, tokens, and the kubeconfig files that hold them.

use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

/// Who asks an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// May do everything; by a token.
    Admin,
    /// The same by a client certificate.
    Certificate,
    /// May look at what is open to everybody who is known, such as versions; by a token.
    Viewer,
    /// Has the rights that a test gives to its group; by a token.
    Reader,
}

impl User {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Certificate, Self::Viewer, Self::Reader];

    /// Its name, as RBAC knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Certificate => "certificate",
            Self::Viewer => "viewer",
            Self::Reader => "reader",
        }
    }

    /// Its group, as RBAC knows it.
    pub fn group(self) -> &'static str {
        match self {
            Self::Admin | Self::Certificate => "system:masters",
            Self::Viewer => "viewers",
            Self::Reader => "readers",
        }
    }
}

/// A cluster's certificate authority, and all that it has handed out, in the cluster's folder.
pub struct Authority {
    cluster: String,
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
    client: (String, String),
}

impl Authority {
    /// Makes it, with a client certificate, the users' tokens and the key of service accounts.
    pub fn new(cluster: &str, folder: &Path) -> Self {
        let mut params = named(&format!("{cluster} authority"), "meridian tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let user = User::Certificate;
        let mut params = named(user.name(), user.group());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let authority = Self {
            cluster: cluster.to_owned(),
            folder: folder.to_owned(),
            client: (certificate.pem(), key.serialize_pem()),
            issuer,
        };
        fs::write(authority.certificate(), authority.issuer.pem()).unwrap();
        let accounts = KeyPair::generate().unwrap();
        let (private, public) = authority.accounts();
        fs::write(private, accounts.serialize_pem()).unwrap();
        fs::write(public, accounts.public_key_pem()).unwrap();
        let tokens = [User::Admin, User::Viewer, User::Reader].map(|user| {
            let (token, name, group) = (authority.token(user), user.name(), user.group());
            format!("{token},{name},{name},{group}\n")
        });
        fs::write(authority.tokens(), tokens.concat()).unwrap();
        authority
    }

    /// The cluster's name.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The file of its certificate.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The file of tokens.
    pub fn tokens(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }

    /// The files of the key that signs tokens of service accounts: private, public.
    pub fn accounts(&self) -> (PathBuf, PathBuf) {
        (self.folder.join("sa.key"), self.folder.join("sa.pub"))
    }

    /// The cluster's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a certificate for a server at an address; gives the files of certificate and key.
    pub fn certify(&self, address: IpAddr) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::new(vec![address.to_string()]).unwrap();
        params.distinguished_name = named("kube-apiserver", "meridian tests").distinguished_name;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |suffix: &str| self.folder.join(format!("{address}.{suffix}"));
        fs::write(file("crt"), certificate.pem()).unwrap();
        fs::write(file("key"), key.serialize_pem()).unwrap();
        (file("crt"), file("key"))
    }

    /// A user's token; no other cluster knows it.
    fn token(&self, user: User) -> String {
        format!("token-of-{}-at-{}", user.name(), self.cluster)
    }

    /// What a kubeconfig file says of a user.
    fn credentials(&self, user: User) -> Value {
        match user {
            User::Admin | User::Viewer | User::Reader => json!({"token": self.token(user)}),
            User::Certificate => json!({
                "client-certificate-data": BASE64.encode(self.client.0.as_bytes()),
                "client-key-data": BASE64.encode(self.client.1.as_bytes()),
            }),
        }
    }
}

/// Begins a certificate for a name and a group.
fn named(name: &str, group: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    params
}

/// A context of a kubeconfig file. Its cluster and its user have its name.
pub struct Context<'a> {
    pub name: &'a str,
    /// The server behind it.
    pub url: String,
    pub authority: &'a Authority,
    /// Who asks.
    pub user: User,
}

/// Writes a kubeconfig file with contexts, as many as wished onto the same server. The first one is the current one.
pub fn write_kubeconfig(path: &Path, contexts: &[Context<'_>]) {
    let list = |what: &str, make: &dyn Fn(&Context<'_>) -> Value| -> Value {
        contexts
            .iter()
            .map(|context| json!({"name": context.name, what: make(context)}))
            .collect()
    };
    let file = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": contexts.first().map(|context| context.name),
        "clusters": list("cluster", &|context| json!({
            "server": context.url,
            "certificate-authority-data": BASE64.encode(context.authority.issuer.pem().as_bytes()),
        })),
        "contexts": list("context", &|context| json!({"cluster": context.name, "user": context.name})),
        "users": list("user", &|context| context.authority.credentials(context.user)),
    });
    // Tests that share a cluster share its files: nobody reads half of one. JSON is YAML.
    let mut draft = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
    writeln!(draft, "{file:#}").unwrap();
    draft.persist(path).unwrap();
}
