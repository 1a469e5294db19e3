//! One file a resource: the template's data, and the handler that asks the view for it.

pub(super) mod clusters;
pub(super) mod drains;
pub(super) mod events;
pub(super) mod explain;
pub(super) mod monitors;
pub(super) mod overview;
pub(super) mod services;
pub(super) mod sources;
pub(super) mod zones;

use axum::extract::Query;
use axum::http::Uri;
use serde::de::DeserializeOwned;

use super::shell::{Asked, Dashboard};
use super::words;
use crate::admin::view::ViewError;

/// Reads what a form asks for. Fields left empty are as absent ones: browsers send them.
///
/// # Errors
/// With what cannot be read.
pub(super) fn fields<T: DeserializeOwned>(asked: &Asked) -> Result<T, ViewError> {
    let uri: Uri = format!("/?{}", tidy(asked.query()))
        .parse()
        .map_err(|_| ViewError::Invalid("the address of this page cannot be read".to_owned()))?;
    match Query::try_from_uri(&uri) {
        Ok(Query(fields)) => Ok(fields),
        Err(rejection) => Err(ViewError::Invalid(rejection.body_text())),
    }
}

/// Drops the fields left empty from a query, so that what is left can be read strictly. `+` and `%` stay as they are.
fn tidy(query: &str) -> String {
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            pair.split_once('=')
                .is_some_and(|(_, value)| !value.is_empty())
        })
        .collect();
    kept.join("&")
}

/// Lists the clusters that can be asked for.
pub(super) async fn cluster_names(dashboard: &Dashboard) -> Vec<String> {
    let clusters = dashboard.view.clusters().await;
    clusters.into_iter().map(|cluster| cluster.name).collect()
}

/// Gives the link to the next page of a list: the same query with another cursor.
pub(super) fn next(path: &str, query: &str, cursor: Option<&str>) -> Option<String> {
    let cursor = cursor?;
    let mut link = format!("{path}?");
    for pair in query.split('&') {
        let is_cursor = pair.starts_with("cursor=");
        if !pair.is_empty() && !is_cursor {
            link.push_str(pair);
            link.push('&');
        }
    }
    link.push_str("cursor=");
    link.push_str(&words::encode(cursor));
    Some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_keeps_what_was_asked_for() {
        assert_eq!(next("/services", "", None), None);
        assert_eq!(
            next("/services", "", Some("a/b")).unwrap(),
            "/services?cursor=a%2Fb"
        );
        assert_eq!(
            next("/services", "search=web&cursor=old&state=down", Some("new")).unwrap(),
            "/services?search=web&state=down&cursor=new"
        );
    }

    #[test]
    fn fields_left_empty_were_not_asked_for() {
        assert_eq!(tidy("search=&state=down&cluster=&x"), "state=down");
        assert_eq!(tidy(""), "");
    }
}
