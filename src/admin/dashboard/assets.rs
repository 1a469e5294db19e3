//! The files that pages need, compiled in. The name of each carries a hash of its content, so a browser may keep it for good.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};

/// One file.
struct Asset {
    /// The name that templates use.
    name: &'static str,
    /// The name in the URL: with the hash before the ending.
    public: String,
    /// The hash, in quotes.
    tag: String,
    kind: &'static str,
    content: &'static [u8],
}

/// Every file: its name, its media type, its content.
const FILES: &[(&str, &str, &[u8])] = &[
    ("meridian.css", CSS, include_bytes!("assets/meridian.css")),
    ("meridian.js", SCRIPT, include_bytes!("assets/meridian.js")),
    ("charts.js", SCRIPT, include_bytes!("assets/charts.js")),
    (
        "icon.svg",
        "image/svg+xml",
        include_bytes!("assets/icon.svg"),
    ),
    ("htmx.js", SCRIPT, include_bytes!("assets/vendor/htmx.js")),
    (
        "idiomorph.js",
        SCRIPT,
        include_bytes!("assets/vendor/idiomorph.js"),
    ),
    ("uplot.js", SCRIPT, include_bytes!("assets/vendor/uplot.js")),
    ("uplot.css", CSS, include_bytes!("assets/vendor/uplot.css")),
];

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let made = FILES.iter().map(|&(name, kind, content)| {
        let hash = hash(content);
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        Asset {
            name,
            public: format!("{stem}-{hash:016x}.{ending}"),
            tag: format!("\"{hash:016x}\""),
            kind,
            content,
        }
    });
    made.collect()
});

/// Gives the URL of a file.
///
/// # Panics
/// When there is no such file, which is a bug of a template; tests render all of them.
pub(super) fn url(name: &str) -> String {
    let found = ASSETS.iter().find(|asset| asset.name == name);
    let asset = found.expect("templates name files that are compiled in");
    format!("/assets/{}", asset.public)
}

/// Serves a file.
pub(super) async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.public == name) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    let kept = [
        (header::ETAG, asset.tag.as_str()),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    let held = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    if held.is_some_and(|held| held.split(',').any(|tag| tag.trim() == asset.tag)) {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    let kind = [
        (header::CONTENT_TYPE, asset.kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (kept, kind, asset.content).into_response()
}

/// Sends browsers to the icon.
pub(super) async fn icon() -> Redirect {
    Redirect::temporary(&url("icon.svg"))
}

/// Hashes content (FNV-1a, 64 bits): it tells our own versions apart, and keeps nobody from forging one.
fn hash(content: &[u8]) -> u64 {
    content.iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_kept_for_good_and_asked_for_once() {
        for asset in ASSETS.iter() {
            let name = url(asset.name).split_off("/assets/".len());
            let got = serve(Path(name.clone()), HeaderMap::new()).await;
            assert_eq!(got.status(), StatusCode::OK);
            let headers = got.headers();
            assert_eq!(headers[header::CONTENT_TYPE], asset.kind);
            assert!(
                headers[header::CACHE_CONTROL]
                    .to_str()
                    .unwrap()
                    .contains("immutable")
            );
            let mut again = HeaderMap::new();
            again.insert(header::IF_NONE_MATCH, headers[header::ETAG].clone());
            let again = serve(Path(name), again).await;
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        }
        let gone = serve(Path("meridian-0.css".to_owned()), HeaderMap::new()).await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn files_name_nothing_elsewhere() {
        for asset in ASSETS
            .iter()
            .filter(|asset| asset.name.starts_with("meridian"))
        {
            let text = std::str::from_utf8(asset.content).unwrap();
            assert!(
                !text.contains("http:") && !text.contains("https:"),
                "{}",
                asset.name
            );
        }
    }
}
