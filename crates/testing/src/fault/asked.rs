//! The properties of requests by which faults are selected.

use http::{Method, Request};

/// The properties of a request by which faults are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The HTTP method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The query; empty when there is none.
    pub query: String,
}

impl Asked {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
        }
    }

    /// Whether it is a write.
    pub fn is_write(&self) -> bool {
        ![Method::GET, Method::HEAD, Method::OPTIONS].contains(&self.method) && !self.is_review()
    }

    /// Whether it is a watch.
    pub fn is_watch(&self) -> bool {
        self.query.split('&').any(|parameter| parameter == "watch=true" || parameter == "watch=1")
    }

    /// Whether it reads a list, or an object.
    pub fn is_read(&self) -> bool {
        self.method == Method::GET && !self.is_watch()
    }

    /// Whether it is about objects of this resource, given by its plural name.
    pub fn is_about(&self, resource: &str) -> bool {
        self.path.split('/').any(|part| part == resource)
    }

    /// Reviews are created but change nothing.
    fn is_review(&self) -> bool {
        self.path.contains("reviews")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, uri: &str) -> Asked {
        Asked::of(&Request::builder().method(method).uri(uri).body(()).unwrap())
    }

    #[test]
    fn watches_reads_and_writes_are_told_apart() {
        let watch = asked(Method::GET, "/api/v1/pods?watch=true&allowWatchBookmarks=true");
        assert!(watch.is_watch() && !watch.is_read() && !watch.is_write());
        let read = asked(Method::GET, "/api/v1/pods?limit=500");
        assert!(read.is_read() && !read.is_watch() && read.is_about("pods") && !read.is_about("secrets"));
        assert!(asked(Method::PATCH, "/api/v1/namespaces/a/pods/b/status").is_write());
        assert!(!asked(Method::POST, "/apis/authorization.k8s.io/v1/subjectaccessreviews").is_write());
    }
}
