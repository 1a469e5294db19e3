//! Traces of the control side, sent to an OpenTelemetry collector: the only file that knows OpenTelemetry.
//!
//! Spans have the target [`super::SPANS`] and the level trace, so that the log does not change by them. A span that ends goes into a
//! bounded queue, which one task empties: a collector that is down or slow costs spans, never time. No query has a span.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    Sampler, SdkTracerProvider, Span, SpanData, SpanExporter as _, SpanProcessor,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::Layer;

use super::logs::show_spans;

/// Spans that wait to be sent; more are lost. The control side makes a few a second.
const QUEUE: usize = 1024;
/// Spans of one request.
const BATCH: usize = 256;
/// How long spans are gathered before they are sent.
const GATHER: Duration = Duration::from_millis(500);
/// How long the collector may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the last spans may take at the end: a stop does not wait for a collector.
const LAST: Duration = Duration::from_millis(500);
/// Octets of a file of headers at most.
const HEADERS_OCTETS: u64 = 16 << 10;

/// Spans lost since the start.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Gives the spans that could not be sent since the start.
#[must_use]
pub fn lost_spans() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// `telemetry.otlp` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpConfig {
    /// The collector's URL, without a slash at its end; traces go to `/v1/traces` below it.
    pub endpoint: String,
    /// Lines `name: value` sent along. What is in it is a secret.
    pub headers_file: Option<PathBuf>,
    /// Share of traces sent, 0..=1.
    pub sample: f64,
}

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The file of headers cannot be read.
    #[error("{path}: cannot read")]
    Headers {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of it is no header. The line itself is not shown: it may be a secret.
    #[error("{path}: line {line} is not `name: value`")]
    Header {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// The HTTP client or the exporter cannot be made.
    #[error("cannot make a client for the collector: {0}")]
    Client(String),
}

/// What sends spans, to be run.
pub struct Traces {
    exporter: SpanExporter,
    ended: mpsc::Receiver<SpanData>,
    /// Makes the spans; they end with it.
    provider: SdkTracerProvider,
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The exporter knows the headers.
        f.write_str("Traces")
    }
}

impl Traces {
    /// Begins to gather spans. `node` is this node's name.
    ///
    /// # Errors
    /// When the headers cannot be read or no client can be made. Nothing is gathered then.
    pub fn start(config: &OtlpConfig, node: &str) -> Result<Self, TracesError> {
        let headers = match &config.headers_file {
            Some(path) => read_headers(path)?,
            None => HashMap::new(),
        };
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client(&config.endpoint)?)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(PATIENCE)
            .with_headers(headers)
            .with_endpoint(format!("{}/v1/traces", config.endpoint))
            .build()
            .map_err(|error| TracesError::Client(error.to_string()))?;
        let resource = Resource::builder_empty()
            .with_service_name("meridian")
            .with_attributes([
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new("service.instance.id", node.to_owned()),
            ])
            .build();
        exporter.set_resource(&resource);
        let (sender, ended) = mpsc::channel(QUEUE);
        let root = Sampler::TraceIdRatioBased(config.sample);
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_sampler(Sampler::ParentBased(Box::new(root)))
            .with_span_processor(Queue(sender))
            .build();
        let layer = tracing_opentelemetry::layer::<Registry>()
            .with_tracer(provider.tracer("meridian"))
            .with_location(false)
            .with_threads(false)
            .with_target(false);
        show_spans(Some(layer.boxed()));
        Ok(Self {
            exporter,
            ended,
            provider,
        })
    }

    /// Sends spans until the token falls.
    pub async fn run(mut self, token: CancellationToken) {
        let mut failing = false;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            // Cancel-safe: `recv_many` has taken nothing when dropped.
            let stop = tokio::select! {
                () = token.cancelled() => true,
                taken = self.ended.recv_many(&mut batch, 1) => taken == 0,
            };
            if !stop {
                tokio::select! {
                    () = token.cancelled() => {}
                    () = tokio::time::sleep(GATHER) => {}
                }
            }
            while batch.len() < BATCH
                && let Ok(span) = self.ended.try_recv()
            {
                batch.push(span);
            }
            if !batch.is_empty() {
                failing = self.send(std::mem::take(&mut batch), &token, failing).await;
            }
            if stop {
                show_spans(None);
                // The queue has no end of its own to be waited for.
                let _ = self.provider.shutdown_with_timeout(Duration::ZERO);
                return;
            }
        }
    }

    /// Sends a batch, or loses and counts it; tells whether it failed.
    async fn send(&self, batch: Vec<SpanData>, token: &CancellationToken, failing: bool) -> bool {
        let count = batch.len() as u64;
        let stopped = async {
            token.cancelled().await;
            tokio::time::sleep(LAST).await;
        };
        // Both arms may be dropped: a batch half sent is a batch lost.
        let sent = tokio::select! {
            sent = tokio::time::timeout(PATIENCE, self.exporter.export(batch)) => sent.ok(),
            () = stopped => None,
        };
        let error = match sent {
            Some(Ok(())) => {
                if failing {
                    info!("Traces are sent again");
                }
                return false;
            }
            Some(Err(error)) => error.to_string(),
            None => "no answer in time".to_owned(),
        };
        LOST.fetch_add(count, Ordering::Relaxed);
        // One line for a collector that stays away.
        if !failing {
            warn!(error, "Traces could not be sent; they are lost");
        }
        true
    }
}

/// Takes spans that ended; whoever ended them never waits.
#[derive(Debug)]
struct Queue(mpsc::Sender<SpanData>);

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.0.try_send(span).is_err() {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Makes the HTTP client. It follows no redirect, which would carry the headers elsewhere, and asks no proxy.
fn client(endpoint: &str) -> Result<reqwest::Client, TracesError> {
    let mut anchors = rustls::RootCertStore::empty();
    if endpoint.starts_with("https://") {
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = anchors.add_parsable_certificates(found.certs);
        if added == 0 {
            warn!("The system has no trust anchors; no collector can be trusted over https");
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TracesError::Client(error.to_string()))?
        .with_root_certificates(anchors)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .map_err(|error| TracesError::Client(error.to_string()))
}

/// Reads lines `name: value`; blank ones and those that begin with `#` are passed over.
fn read_headers(path: &Path) -> Result<HashMap<String, String>, TracesError> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(HEADERS_OCTETS).read_to_string(&mut text))
        .map_err(|source| TracesError::Headers {
            path: path.to_owned(),
            source,
        })?;
    let mut headers = HashMap::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let header = text.split_once(':').filter(|(name, value)| {
            let is_token = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
            let is_visible = |octet: u8| matches!(octet, b' '..=b'~');
            !name.is_empty() && name.bytes().all(is_token) && value.bytes().all(is_visible)
        });
        let Some((name, value)) = header else {
            let path = path.to_owned();
            return Err(TracesError::Header { path, line });
        };
        headers.insert(name.to_owned(), value.trim().to_owned());
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_a_broken_line_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headers");
        std::fs::write(
            &path,
            "# token\n\nAuthorization: Bearer a:b\nx-scope:  7 \n",
        )
        .unwrap();
        let headers = read_headers(&path).unwrap();
        assert_eq!(headers["Authorization"], "Bearer a:b");
        assert_eq!(headers["x-scope"], "7");
        std::fs::write(&path, "a: b\nsecret\n").unwrap();
        let error = read_headers(&path).unwrap_err().to_string();
        assert!(error.ends_with("line 2 is not `name: value`"), "{error}");
        assert!(!error.contains("secret"));
        assert!(read_headers(folder.path()).is_err());
    }

    #[test]
    fn clients_are_made_for_both_schemes() {
        client("http://127.0.0.1:1").unwrap();
        client("https://127.0.0.1:1").unwrap();
    }
}
