//! Errors of controllers, with a class that decides what happens next.

use std::{error::Error as StdError, fmt::Write as _};

use kube::{core::Status, runtime::watcher};

/// What to do about an error; later ones matter more where several came together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The object is wrong: waiting for an edit is the only thing that helps.
    Invalid,
    /// Somebody else wrote first: observe and plan again, soon and then later each time.
    Conflict,
    /// May go away by itself: try again, later each time.
    Transient,
}

/// An error that knows its [`Class`].
pub trait Classified: StdError + Send + Sync + 'static {
    /// What to do about it.
    fn class(&self) -> Class;
}

/// The result of talking to an API server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What writing a part of an object is called in [`Error::Request`].
pub(crate) const PATCH: &str = "patch";
/// What writing its status is called there.
pub(crate) const PATCH_STATUS: &str = "patch the status of";
const PATCH_VERBS: [&str; 2] = [PATCH, PATCH_STATUS];

/// A request to an API server that failed, or an answer that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request failed.
    #[error("failed to {verb} {noun}")]
    Request {
        /// What was tried, as a verb: `create`, `list`, `patch the status of`.
        verb: &'static str,
        /// What it was tried on, for people: `namespace cluster1`.
        noun: String,
        /// What went wrong.
        #[source]
        source: Box<kube::Error>,
    },
    /// An object could not be turned into JSON or back.
    #[error("failed to serialize {noun}")]
    Serialize {
        /// The object, for people.
        noun: String,
        /// What went wrong.
        #[source]
        source: serde_json::Error,
    },
    /// An object lacks something that the API server always sets.
    #[error("{noun} has no {field}")]
    Incomplete {
        /// The object, for people.
        noun: String,
        /// What it lacks.
        field: &'static str,
    },
}

impl Error {
    /// The API server's answer, if there was one.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Request { source, .. } => status_of(source),
            Self::Serialize { .. } | Self::Incomplete { .. } => None,
        }
    }

    /// The HTTP status code of the answer, if there was one.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// Whether the object, its namespace or its kind does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the object was there already, or was changed by somebody else.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    fn is_of_patch(&self) -> bool {
        matches!(self, Self::Request { verb, .. } if PATCH_VERBS.contains(verb))
    }

    /// Whether the credentials were refused (401) or are not enough (403).
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }
}

impl Classified for Error {
    fn class(&self) -> Class {
        match self.code() {
            Some(409) => Class::Conflict,
            // What was to be changed has been deleted meanwhile.
            Some(404) if self.is_of_patch() => Class::Conflict,
            Some(400 | 422) => Class::Invalid,
            _ => Class::Transient,
        }
    }
}

/// The API server's answer inside a client error.
#[must_use]
pub fn status_of(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// Says what was being done when a request failed.
pub trait ResultExt<T> {
    /// Turns a client error into [`Error::Request`]; `noun` is only called on failure.
    ///
    /// # Errors
    /// The error it was called on, with the context.
    fn while_trying_to(self, verb: &'static str, noun: impl FnOnce() -> String) -> Result<T>;
}

impl<T> ResultExt<T> for Result<T, kube::Error> {
    fn while_trying_to(self, verb: &'static str, noun: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Request { verb, noun: noun(), source: Box::new(source) })
    }
}

/// Turns "not found" into `None`: for reads of what may be gone, and deletions of what is gone.
///
/// # Errors
/// Every other error.
pub fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What came of several steps of which none keeps the others from being tried. Of several errors it is the one whose
/// [`Class`] matters most: an object that waits for an edit must not keep others from another try.
///
/// # Errors
/// One of those in `results`.
pub fn all<E: Classified>(results: impl IntoIterator<Item = Result<(), E>>) -> Result<(), E> {
    results.into_iter().filter_map(Result::err).max_by_key(Classified::class).map_or(Ok(()), Err)
}

/// An error and everything that caused it, on one line: `failed to create x: refused: no route`.
///
/// An API server's answer is shown as its message, without the noise of its debug form, and a cause
/// that the line so far already ends with is not repeated.
#[must_use]
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut line = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let request_error = request_error(error);
        let text = match request_error {
            Some(kube::Error::Api(status)) => status.message.clone(),
            Some(kube::Error::Service(_) | kube::Error::HyperError(_)) => String::new(),
            _ => error.downcast_ref().map_or_else(|| error.to_string(), watch_step),
        };
        let is_status = request_error.and_then(status_of).is_some();
        if !text.is_empty() && !line.ends_with(&text) {
            let separator = if line.is_empty() { "" } else { ": " };
            let _ = write!(line, "{separator}{text}");
        }
        next = if is_status { None } else { error.source() };
    }
    line
}

/// At which step a watch failed; its own text would repeat the cause.
fn watch_step(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(_) => "failed to list".to_owned(),
        watcher::Error::WatchStartFailed(_) => "failed to start watching".to_owned(),
        watcher::Error::WatchFailed(_) => "failed to go on watching".to_owned(),
        watcher::Error::WatchError(status) => format!("the API server ended the watch: {}", status.message),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

/// The client error that this is; as the source of [`Error::Request`] it is in a box.
fn request_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a kube::Error> {
    let boxed = || error.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref);
    error.downcast_ref().or_else(boxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, message: &str) -> Error {
        let status = Status::failure(message, "").with_code(code).boxed();
        Error::Request { verb: "create", noun: "namespace a".into(), source: Box::new(kube::Error::Api(status)) }
    }

    #[test]
    fn a_chain_shows_the_servers_message_once_and_without_debug_noise() {
        assert_eq!(chain(&answer(403, "not for you")), "failed to create namespace a: not for you");
        let status = Status::failure("not for you", "").with_code(403).boxed();
        let watch = watcher::Error::InitialListFailed(kube::Error::Api(status));
        assert_eq!(chain(&watch), "failed to list: not for you");
    }

    #[test]
    fn the_class_follows_the_status_code() {
        assert_eq!(answer(409, "x").class(), Class::Conflict);
        assert_eq!(answer(422, "x").class(), Class::Invalid);
        assert_eq!(answer(500, "x").class(), Class::Transient);
    }

    #[test]
    fn what_is_gone_when_it_is_patched_is_a_conflict_and_where_something_cannot_be_created_is_not() {
        let class = |verb| {
            let Error::Request { noun, source, .. } = answer(404, "x") else { panic!() };
            Error::Request { verb, noun, source }.class()
        };
        assert_eq!([PATCH, PATCH_STATUS, "create", "list"].map(class), {
            [Class::Conflict, Class::Conflict, Class::Transient, Class::Transient]
        });
    }

    #[test]
    fn of_several_errors_the_one_that_is_tried_again_counts() {
        let of = |codes: &[u16]| {
            let results = codes.iter().map(|code| if *code == 200 { Ok(()) } else { Err(answer(*code, "x")) });
            all(results).err().and_then(|error| error.code())
        };
        assert_eq!(of(&[200, 200]), None);
        assert_eq!(of(&[422, 409]), Some(409));
        assert_eq!(of(&[409, 500, 422, 200]), Some(500));
        assert_eq!(of(&[200, 422]), Some(422));
    }

    #[test]
    fn not_found_is_none_and_other_errors_stay() {
        assert!(matches!(found::<()>(Err(answer(404, "x"))), Ok(None)));
        assert!(found::<()>(Err(answer(403, "x"))).is_err());
    }
}
