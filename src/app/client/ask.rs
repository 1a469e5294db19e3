//! What is asked: a path of the API with its query.

use reqwest::Url;

/// A path under `/api/v1` with its query. Parts are escaped where they are put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) struct Ask {
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
}

impl Ask {
    /// Asks for a path, part by part.
    pub(in crate::app) fn of<const N: usize>(path: [&str; N]) -> Self {
        Self {
            path: path.map(str::to_owned).to_vec(),
            query: Vec::new(),
        }
    }

    /// Adds a part of the query.
    pub(in crate::app) fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.query.push((key, value.to_string()));
        self
    }

    /// As above, if there is a value.
    pub(in crate::app) fn maybe(self, key: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Puts it behind a node's URL.
    pub(super) fn at(&self, server: &Url) -> Url {
        let mut url = server.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "v1"]).extend(&self.path);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_escaped() {
        let server: Url = "https://ns1.example.com:8053".parse().unwrap();
        let behind: Url = "https://proxy/meridian/".parse().unwrap();
        for (ask, url) in [
            (
                Ask::of(["status"]),
                "https://ns1.example.com:8053/api/v1/status",
            ),
            (
                Ask::of(["clusters", "a/../b?c#d e"]),
                "https://ns1.example.com:8053/api/v1/clusters/a%2F..%2Fb%3Fc%23d%20e",
            ),
            (
                Ask::of(["services"])
                    .with("search", "a&b=c d")
                    .maybe("state", None::<&str>)
                    .with("limit", 5),
                "https://ns1.example.com:8053/api/v1/services?search=a%26b%3Dc+d&limit=5",
            ),
        ] {
            assert_eq!(ask.at(&server).as_str(), url);
        }
        assert_eq!(
            Ask::of(["status"]).at(&behind).as_str(),
            "https://proxy/meridian/api/v1/status"
        );
    }
}
