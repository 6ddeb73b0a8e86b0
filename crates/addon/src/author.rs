//! Calls of the author's code: a panic becomes an error, and so does a call that takes too long. A call that blocks its
//! thread instead of waiting cannot be ended.

use std::{future::Future, panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt as _;

/// How long a call may take: a pod has as long to end.
const LIMIT: Duration = Duration::from_secs(30);

/// The author's code did not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("the add-on's code panicked, see the log for where")]
    Panicked,
    #[error("the add-on's code did not return within {} s", LIMIT.as_secs())]
    TimedOut,
}

/// What a call of the author's code returns.
pub(crate) async fn call<T>(code: impl Future<Output = T>) -> Result<T, NoAnswer> {
    match tokio::time::timeout(LIMIT, AssertUnwindSafe(code).catch_unwind()).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err(NoAnswer::Panicked),
        Err(_) => Err(NoAnswer::TimedOut),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn code_that_panics_or_never_returns_is_an_error() {
        assert_eq!(call(async { 7 }).await, Ok(7));
        assert_eq!(call(async { panic!("a bug") }).await, Err::<(), _>(NoAnswer::Panicked));
        assert_eq!(call(pending::<()>()).await, Err(NoAnswer::TimedOut));
    }
}
