//! Errors of controllers, with a class that decides what happens next.

use std::{error::Error as StdError, fmt::Write as _};

use kube::{core::Status, runtime::watcher};

/// What to do about an error.
///
/// Where several steps failed, the class that is retried first wins, so the order is that of the next retry: `Invalid`
/// has none, `Refused` has one in minutes, `Conflict` and `Transient` have one at once. `Transient` is last because it
/// is logged each time, and a conflict is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Our own validation found an error in the object: nothing is retried before somebody edits the object.
    Invalid,
    /// The API server refused the request: its validation, an admission webhook or policy, or a quota. Any of these can
    /// change without a change of the object, so it is retried, after minutes.
    Refused,
    /// Somebody else wrote first: observe and plan again, with exponential back-off.
    Conflict,
    /// May go away by itself: retried with exponential back-off.
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
            Some(403) if self.status().is_some_and(is_refused_by_admission) => Class::Refused,
            // Malformed, not supported, too large or not valid.
            Some(400 | 405 | 406 | 413 | 415 | 422) => Class::Refused,
            _ => Class::Transient,
        }
    }
}

/// Whether a 403 comes from an admission plugin, a webhook, a policy or a quota. Otherwise it comes from a missing
/// right, which is often granted moments later, or from a namespace that is being deleted.
fn is_refused_by_admission(status: &Status) -> bool {
    let message = &status.message;
    let is_missing_right = message.contains("User \"") && message.contains(" cannot ");
    // To grant a right, one must have it.
    let is_escalation = message.contains("is attempting to grant RBAC permissions");
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let is_terminating = causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating");
    !is_missing_right && !is_escalation && !is_terminating
}

/// The API server's answer inside a client error.
#[must_use]
pub fn status_of(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// The API server's answer inside an error of a watch.
#[must_use]
pub fn status_of_watch(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => status_of(error),
        watcher::Error::WatchError(status) => Some(status),
        watcher::Error::NoResourceVersion => None,
    }
}

/// Adds to an error what was being done when the request failed.
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

/// The result of several steps that do not depend on one another. Of several errors it is the one that is retried first
/// (see the order of [`Class`]): one that waits for an edit must not delay the retry of the others.
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
pub(crate) fn request_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a kube::Error> {
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
        assert_eq!(answer(500, "x").class(), Class::Transient);
        assert_eq!([400, 405, 413, 422].map(|code| answer(code, "x").class()), [Class::Refused; 4]);
        assert_eq!([401, 404, 410, 429].map(|code| answer(code, "x").class()), [Class::Transient; 4]);
    }

    #[test]
    fn of_what_is_forbidden_a_missing_right_is_retried_soon_and_what_admission_denies_is_retried_slowly() {
        let class = |message| answer(403, message).class();
        let missing = "namespaces is forbidden: User \"hub\" cannot create resource \"namespaces\" in API group \"\"";
        assert_eq!(class(missing), Class::Transient);
        let escalation = "clusterroles \"a\" is forbidden: user \"hub\" (groups=[]) is attempting to grant RBAC \
                          permissions not currently held: {}";
        assert_eq!(class(escalation), Class::Transient);
        for denial in [
            "admission webhook \"a.example.com\" denied the request: not on Sundays",
            "rolebindings \"a\" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'a' denied request: no",
            "pods \"a\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1",
        ] {
            assert_eq!(class(denial), Class::Refused, "{denial}");
        }
    }

    #[test]
    fn what_a_namespace_that_is_being_deleted_refuses_is_retried_soon() {
        let status = serde_json::json!({
            "status": "Failure", "code": 403, "reason": "Forbidden",
            "message": "configmaps \"a\" is forbidden: unable to create new content in namespace n",
            "details": {"causes": [{"reason": "NamespaceTerminating", "message": "", "field": "metadata.namespace"}]},
        });
        let source = Box::new(kube::Error::Api(serde_json::from_value(status).unwrap()));
        let error = Error::Request { verb: "create", noun: "ConfigMap n/a".into(), source };
        assert_eq!(error.class(), Class::Transient);
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
    fn of_several_errors_the_one_that_is_retried_first_counts() {
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
