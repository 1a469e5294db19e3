//! What happened: a page of it, or a live stream.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;

use super::examples;
use super::input::Asked;
use super::live;
use super::output::Held;
use crate::admin::access::Viewer;
use crate::admin::dto::{EventDto, Page};
use crate::admin::problem::Problem;
use crate::admin::view::{EventQuery, View};

/// The highest number of an event: the highest whole number that every reader of JSON has.
const HIGHEST: u64 = (1 << 53) - 1;
/// Where a stream is taken up again; browsers send it by themselves.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Lists events, newest first, or streams them as they happen.
///
/// With `Accept: text/event-stream` it is a stream of server-sent events: `id` is the event's number, `data` the event as JSON.
/// The filters hold for it too; `limit` and `cursor` do not. `Last-Event-ID` takes it up where it broke off. An event of type
/// `lagged` says that some were missed, because the reader was slow, they are no longer kept, or the node was started anew:
/// read anew what you show. A comment comes every 15 seconds when nothing else does.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    tag = "events",
    params(
        EventQuery,
        ("Last-Event-ID" = u64, Header, maximum = 9_007_199_254_740_991_i64, description = "For streams: the number of the last event seen.", example = 17),
    ),
    responses((status = 200, description = "A page of events, or the stream.", content(
        (Page<EventDto> = "application/json", example = json!(examples::page(examples::event()))),
        (String = "text/event-stream", example = json!(examples::stream())),
    )))
)]
pub(super) async fn list_events(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(query): Asked<EventQuery>,
    headers: HeaderMap,
    held: Held,
) -> Result<Response, Problem> {
    let last = last_event_id(&headers)?;
    let mut response = if wants_stream(&headers) {
        if query.limit.is_some() || query.cursor.is_some() {
            let detail = "a stream has no pages: leave `limit` and `cursor` out";
            return Err(Problem::bad_request(detail));
        }
        live::stream(view.journal(), &query, last)
    } else {
        held.or_json(&view.events(&query)?)
    };
    let vary = HeaderValue::from_static("Accept");
    response.headers_mut().insert(header::VARY, vary);
    Ok(response)
}

/// Reads where a stream is taken up again.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let number = number.filter(|number| *number <= HIGHEST);
    number.map(Some).ok_or_else(|| {
        Problem::bad_request("`Last-Event-ID` must be the number of an event")
            .in_field("Last-Event-ID")
    })
}

/// Tells whether a stream is asked for: by name, and no less wanted than JSON (RFC 9110 section 12.5.1).
fn wants_stream(headers: &HeaderMap) -> bool {
    let (mut stream, mut json) = (0.0, 0.0);
    let lists = headers.get_all(header::ACCEPT).iter();
    for range in lists
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
    {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        let quality = quality.unwrap_or(1.0);
        match kind.as_str() {
            "text/event-stream" => stream = quality,
            "application/json" => json = quality,
            _ => {}
        }
    }
    stream > 0.0 && stream >= json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_must_be_asked_for_by_name() {
        for (accept, stream) in [
            ("text/event-stream", true),
            ("Text/Event-Stream; charset=utf-8", true),
            ("application/json, text/event-stream", true),
            ("application/json;q=0.5, text/event-stream;q=0.9", true),
            ("application/json, text/event-stream;q=0.9", false),
            ("text/event-stream;q=0", false),
            ("*/*", false),
            ("text/*", false),
            ("application/json", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(wants_stream(&headers), stream, "{accept}");
        }
    }

    #[test]
    fn the_number_of_the_last_event_is_a_number() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(LAST_EVENT_ID, text.parse().unwrap());
            last_event_id(&headers).map_err(|problem| problem.status)
        };
        assert_eq!(read("17"), Ok(Some(17)));
        assert_eq!(read("9007199254740991"), Ok(Some(HIGHEST)));
        assert_eq!(read("9007199254740992"), Err(400));
        assert_eq!(read("18446744073709551616"), Err(400));
        assert_eq!(read("-1"), Err(400));
        assert_eq!(read(""), Err(400));
        assert_eq!(last_event_id(&HeaderMap::new()).unwrap(), None);
    }
}
