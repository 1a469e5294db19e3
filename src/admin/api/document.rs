//! The OpenAPI document: what all operations share is added here, by rule.

use axum::Router;
use axum::http::StatusCode;
use axum::response::Response as HttpResponse;
use axum::routing::get;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, InfoBuilder, LicenseBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, Ref, RefOr,
    Required, Response, ResponseBuilder, ServerBuilder, Type,
};
use utoipa::{PartialSchema, ToSchema};

use super::output::Held;
use crate::admin::dto::ProblemDetailsDto;
use crate::admin::problem::MEDIA_TYPE;

/// The path of the document.
pub(super) const PATH: &str = "/api/openapi.json";

/// The cookie of a browser's session, on the usual port and without TLS.
const SESSION_COOKIE: &str = "meridian-8053";

/// Kinds of problems: status, name in the document, when it happens, an example of its words.
const PROBLEMS: &[(StatusCode, &str, &str, &str)] = &[
    (
        StatusCode::BAD_REQUEST,
        "BadRequest",
        "A parameter that there is not, or that is not what it must be; a cursor of another list; a body that is no JSON, with line \
         and column.",
        "unknown parameter `page`; there are `limit`, `cursor`",
    ),
    (
        StatusCode::UNAUTHORIZED,
        "Unauthorized",
        "Nobody knows who asks: no token, or one that is not valid.",
        "this needs a token: send `Authorization: Bearer`, or sign in at /login",
    ),
    (
        StatusCode::FORBIDDEN,
        "Forbidden",
        "The role does not suffice, or a browser sent it from elsewhere.",
        "`grafana` has role viewer; this needs role operator",
    ),
    (
        StatusCode::NOT_FOUND,
        "NotFound",
        "There is none of this name.",
        "there is no cluster `aws-use2`",
    ),
    (
        StatusCode::METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        "The path does not know the method; `Allow` lists those it knows.",
        "PUT is not for this path; `Allow` lists what is",
    ),
    (
        StatusCode::REQUEST_TIMEOUT,
        "TooSlow",
        "The body came too slowly.",
        "the body came too slowly",
    ),
    (
        StatusCode::CONFLICT,
        "Conflict",
        "It stands against what is there.",
        "another force of this target is in force",
    ),
    (
        StatusCode::PAYLOAD_TOO_LARGE,
        "PayloadTooLarge",
        "The body is longer than 16 KiB.",
        "the body could not be taken: length limit exceeded",
    ),
    (
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        "The body does not say that it is JSON.",
        "the body must be JSON: send `Content-Type: application/json`",
    ),
    (
        StatusCode::MISDIRECTED_REQUEST,
        "Misdirected",
        "The node is not called by the name in `Host`; `admin.hosts` lists further ones.",
        "the dashboard is not called by this name; `admin.hosts` lists further ones",
    ),
    (
        StatusCode::UNPROCESSABLE_ENTITY,
        "Unprocessable",
        "A member of the body, or the reason, is not as it must be, or names nothing that is there; `field` says which.",
        "`reason` must have 1 to 500 characters; this has 0",
    ),
    (
        StatusCode::TOO_MANY_REQUESTS,
        "TooManyRequests",
        "Too many requests, or too many failures to sign in; `Retry-After` says when to try again.",
        "too many requests; try again in 2 s",
    ),
    (
        StatusCode::SERVICE_UNAVAILABLE,
        "Unavailable",
        "The node is going down, or has too much to do; `Retry-After` says when to try again.",
        "the node is going down",
    ),
];

/// Tags and what they hold.
const TAGS: &[(&str, &str)] = &[
    ("status", "The whole in a glance."),
    ("clusters", "Clusters: where they are, and how they are."),
    (
        "services",
        "Services, their names and monitors, and why a client gets its answer.",
    ),
    ("events", "What happened, and what happens."),
    ("operate", "What operators change, and the log of who did."),
    (
        "nodes",
        "What this node stands on: other nodes, zones, sources.",
    ),
];

/// Makes the document without operations.
pub(super) fn frame() -> OpenApi {
    let license = LicenseBuilder::new()
        .name("Apache-2.0")
        .identifier(Some("Apache-2.0"))
        .build();
    let info = InfoBuilder::new()
        .title("Meridian")
        .description(Some(
            "What a Meridian node sees and does, and what operators tell it. Every list comes in pages, every answer to a read has an \
             `ETag`, every failure is a problem (RFC 9457). Within `v1`, members may be added; none changes its meaning.",
        ))
        .version(env!("CARGO_PKG_VERSION"))
        .license(Some(license))
        .build();
    let server = ServerBuilder::new()
        .url("/")
        .description(Some("This node."))
        .build();
    let tags = TAGS.iter().map(|(name, words)| {
        TagBuilder::new()
            .name(*name)
            .description(Some(*words))
            .build()
    });
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([server]))
        .tags(Some(tags.collect::<Vec<_>>()))
        .build()
}

/// Adds what all operations share: who may call them, what they answer when they fail, tags of responses.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    let components = document.components.get_or_insert_with(Components::new);
    let (name, schema) = (ProblemDetailsDto::name(), ProblemDetailsDto::schema());
    components.schemas.insert(name.into_owned(), schema);
    for problem in PROBLEMS {
        components
            .responses
            .insert(problem.1.to_owned(), RefOr::T(response(problem)));
    }
    schemes(components);
    for (path, item) in &mut document.paths.paths {
        let is_audit = path.ends_with("/audit");
        let PathItem {
            get, post, delete, ..
        } = item;
        if let Some(operation) = get {
            read(operation);
            finish(operation, path, &[], !is_audit);
        }
        let body = [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::CONFLICT,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            StatusCode::UNPROCESSABLE_ENTITY,
        ];
        for operation in [post, delete].into_iter().flatten() {
            finish(operation, path, &body, false);
        }
    }
    document
}

/// Says how somebody shows who they are.
fn schemes(components: &mut Components) {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A token of `admin.tokens`, or one of the identity provider. Where `admin.anonymous` is `viewer`, reads from the same \
             machine need none.",
        ))
        .build();
    let cookie = ApiKeyValue::with_description(
        SESSION_COOKIE,
        "The session of a browser that signed in at /login. The listener's port is in its name; with TLS it begins with `__Host-`. A \
         change by it needs `Origin` or `Sec-Fetch-Site` of this very server.",
    );
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
}

/// Makes the response of a kind of problem.
fn response((status, _, when, words): &(StatusCode, &str, &str, &str)) -> Response {
    let example = serde_json::json!({
        "type": "about:blank",
        "title": status.canonical_reason().unwrap_or_default(),
        "status": status.as_u16(),
        "detail": words,
    });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(ProblemDetailsDto::name())))
        .example(Some(example))
        .build();
    let response = ResponseBuilder::new()
        .description(*when)
        .content(MEDIA_TYPE, content);
    let named = match *status {
        StatusCode::UNAUTHORIZED => Some(("WWW-Authenticate", "How to show who asks.")),
        StatusCode::METHOD_NOT_ALLOWED => Some(("Allow", "Methods that the path knows.")),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Some(("Retry-After", "Seconds after which to try again."))
        }
        _ => None,
    };
    match named {
        Some((name, words)) => response.header(name, header(words)).build(),
        None => response.build(),
    }
}

/// Describes a header that is a text.
fn header(words: &str) -> utoipa::openapi::Header {
    HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).build()))
        .description(Some(words))
        .build()
}

/// Adds what every read has: a tag, and the word that it is still the same.
fn read(operation: &mut Operation) {
    let parameter = ParameterBuilder::new()
        .name("If-None-Match")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "Tags of what is held already; where one of them fits, the answer is 304.",
        ))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).build()))
        .build();
    let parameters = operation.parameters.get_or_insert_default();
    for given in parameters.iter_mut() {
        // No header must be sent.
        if let RefOr::T(given) = given
            && given.parameter_in == ParameterIn::Header
        {
            given.required = Required::False;
        }
    }
    parameters.push(RefOr::T(parameter));
    let tagged = |response: ResponseBuilder| {
        response
            .header("ETag", header("The strong tag of the body."))
            .header(
                "Cache-Control",
                header("Always `no-cache`: ask with the tag."),
            )
    };
    let responses = &mut operation.responses.responses;
    if let Some(RefOr::T(found)) = responses.get_mut("200") {
        *found = tagged(ResponseBuilder::from(found.clone())).build();
    }
    let same =
        tagged(ResponseBuilder::new().description("What is held already is still the same."));
    responses.insert("304".to_owned(), RefOr::T(same.build()));
}

/// Adds who may call an operation, and its problems.
fn finish(operation: &mut Operation, path: &str, more: &[StatusCode], anonymous: bool) {
    let scopes = || std::iter::empty::<String>();
    let mut security = vec![
        SecurityRequirement::new("bearer", scopes()),
        SecurityRequirement::new("session", scopes()),
    ];
    if anonymous {
        security.push(SecurityRequirement::default());
    }
    operation.security = Some(security);
    let role = if anonymous {
        "Needs role viewer or operator."
    } else {
        "Needs role operator."
    };
    let words = operation.description.take().unwrap_or_default();
    operation.description = Some(format!("{words}\n\n{role}").trim_start().to_owned());
    let always = [
        StatusCode::BAD_REQUEST,
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::MISDIRECTED_REQUEST,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    // These lists are of a cluster that there is, if they are of one.
    let is_of_cluster = ["/services", "/monitors"]
        .iter()
        .any(|list| path.ends_with(list));
    let is_of_something = path.contains('{') || is_of_cluster;
    let named = is_of_something.then_some(StatusCode::NOT_FOUND);
    for status in always.iter().chain(more).chain(&named) {
        if let Some((_, name, ..)) = PROBLEMS.iter().find(|problem| problem.0 == *status) {
            let response = RefOr::Ref(Ref::from_response_name(*name));
            operation
                .responses
                .responses
                .insert(status.as_str().to_owned(), response);
        }
    }
}

/// Serves the document to whoever asks: it says what there is, not what it says.
pub(super) fn routes(document: &OpenApi) -> Router {
    // Texts and numbers cannot fail to become JSON.
    let text = serde_json::to_vec(document).unwrap_or_default();
    let text = axum::body::Bytes::from(text);
    let serve =
        async move |held: Held| -> HttpResponse { held.or_send("application/json", text.clone()) };
    Router::new().route(PATH, get(serve))
}
