//! Who may ask what: tokens, bearer tokens of an identity provider, browser sessions, and the guard before every route.
//!
//! A handler says who may call it by what it takes: [`Viewer`], [`Operator`], [`PeerNode`], or [`MaybeIdentity`] where all
//! may. This part knows nothing of what the routes do.
//!
//! | What | Where |
//! |---|---|
//! | who is who, behind one handle | [`Access`] in `gate` |
//! | tokens by their hashes, read anew when files change | `tokens` |
//! | JSON Web Tokens of a provider, checked by ring | `oidc` |
//! | cookies | `sessions`, `cookie` |
//! | Host and Origin | `hosts` |
//! | what every request and answer passes | `guard`, `headers` |
//! | bounds: guesses, recorded refusals, streams | `failures`, `refusals`, `streams` |

pub(super) mod cookie;
mod extract;
mod failures;
mod gate;
mod guard;
mod headers;
mod hosts;
mod oidc;
mod refusals;
mod sessions;
mod streams;
mod tokens;

#[allow(
    unused_imports,
    reason = "the routes of the API, the pages and other nodes take them"
)]
pub(super) use extract::{Caller, MaybeIdentity, Operator, PeerNode, Viewer, accepts_html};
pub use gate::Access;
pub(super) use gate::refused;
pub(super) use guard::{MAX_BODY, guard, is_stream, open};
pub(super) use hosts::Surface;
pub(super) use streams::Place;
pub use tokens::FreshToken;
