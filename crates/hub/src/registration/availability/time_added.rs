//! `timeAdded` of taints.
//!
//! OCM's webhook sets it, where it is installed, and refuses it from anybody else. So the hub writes it unless the last
//! write showed that the server sets it.

use std::{
    future::Future,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::cluster::v1::{ManagedCluster, Taint};

use ocm_runtime::error::all;

use crate::error::{Error, Result};

/// Sets `timeAdded` of the taints that lack it. In whole seconds, which is what other clients read and write.
pub(super) fn set(mut taints: Vec<Taint>, now: Timestamp) -> Vec<Taint> {
    let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
    taints.iter_mut().for_each(|taint| _ = taint.time_added.get_or_insert(Time(second)));
    taints
}

/// Writes taints with their times, or without where the server sets them.
#[derive(Debug, Default)]
pub(crate) struct TimeAdded {
    is_set_by_server: AtomicBool,
}

impl TimeAdded {
    /// Writes the change from `old` to `new` by `patch`; returns what that returned.
    pub(crate) async fn write<F>(
        &self,
        old: &ManagedCluster,
        new: ManagedCluster,
        patch: impl Fn(ManagedCluster) -> F,
    ) -> Result<Option<ManagedCluster>>
    where
        F: Future<Output = Result<Option<ManagedCluster>>>,
    {
        let untimed = without_new_times(old, &new);
        // Taints that were written without times and still lack them show that the server does not set them.
        let adds_taints = untimed.spec.taints != old.spec.taints;
        if adds_taints && self.is_set_by_server.load(Relaxed) {
            return self.write_untimed(old, patch(untimed)).await;
        }
        match patch(new).await {
            Err(refusal) if is_refused(&refusal) => match self.write_untimed(old, patch(untimed)).await {
                Err(error) => all([Err(refusal), Err(error)]).map(|()| None),
                written => written,
            },
            result => {
                let written = result?;
                self.is_set_by_server.store(false, Relaxed);
                Ok(written)
            }
        }
    }

    /// If the server does not set times, the taints come back without, which the controller sees as a change.
    async fn write_untimed(
        &self,
        old: &ManagedCluster,
        patch: impl Future<Output = Result<Option<ManagedCluster>>>,
    ) -> Result<Option<ManagedCluster>> {
        let written = patch.await?;
        let is_timed = written.as_ref().is_none_or(|written| new_taints_are_timed(old, written));
        self.is_set_by_server.store(is_timed, Relaxed);
        Ok(written)
    }
}

/// The new cluster, in which only those taints have a time that are unchanged.
fn without_new_times(old: &ManagedCluster, new: &ManagedCluster) -> ManagedCluster {
    let mut untimed = new.clone();
    let is_new = |taint: &&mut Taint| !old.spec.taints.contains(taint);
    untimed.spec.taints.iter_mut().filter(is_new).for_each(|taint| taint.time_added = None);
    untimed
}

fn new_taints_are_timed(old: &ManagedCluster, written: &ManagedCluster) -> bool {
    let mut new = written.spec.taints.iter().filter(|taint| !old.spec.taints.contains(taint));
    new.all(|taint| taint.time_added.is_some())
}

/// Whether the server's answer was that it does not accept the object as it is.
pub(crate) fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Api(error) if matches!(error.code(), Some(400 | 403 | 422)))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ocm_runtime::{Class, Classified as _};

    use super::*;
    use crate::testing::{cluster, now, refused};

    fn taint(key: &str, is_timed: bool) -> Taint {
        Taint { key: key.into(), time_added: is_timed.then(|| Time(now())), ..Taint::default() }
    }

    fn with(taints: &[Taint]) -> ManagedCluster {
        let mut cluster = cluster("c1");
        cluster.spec.taints = taints.to_vec();
        cluster
    }

    /// Writes one more taint to a server that has OCM's webhook or not; returns whether each request had its time.
    async fn requests(times: &TimeAdded, has_webhook: bool) -> Vec<bool> {
        let old = with(&[taint("old", true)]);
        let requests = Mutex::new(Vec::new());
        let patch = |mut new: ManagedCluster| {
            let last = new.spec.taints.last_mut().unwrap();
            let is_timed = last.time_added.is_some();
            requests.lock().unwrap().push(is_timed);
            let answer = if has_webhook && is_timed {
                Err(refused(400))
            } else {
                last.time_added = (has_webhook || is_timed).then(|| Time(now()));
                Ok(Some(new))
            };
            std::future::ready(answer)
        };
        times.write(&old, with(&[taint("old", true), taint("new", true)]), patch).await.unwrap();
        requests.into_inner().unwrap()
    }

    /// Writes a taint to a server that answers so, one answer for each request; returns the result and whether the next
    /// write leaves the times to the server.
    async fn answered(old: &[Taint], answers: Vec<Result<Option<ManagedCluster>>>) -> (Result<()>, bool) {
        let (times, answers) = (TimeAdded::default(), Mutex::new(answers.into_iter()));
        let patch = |_| std::future::ready(answers.lock().unwrap().next().unwrap());
        let written = times.write(&with(old), with(&[taint("new", true)]), patch).await;
        (written.map(|_| ()), times.is_set_by_server.load(Relaxed))
    }

    #[tokio::test]
    async fn of_two_refusals_the_one_that_is_retried_first_counts() {
        let (written, _) = answered(&[], vec![Err(refused(400)), Err(refused(500))]).await;
        assert_eq!(written.unwrap_err().class(), Class::Transient);
    }

    #[tokio::test]
    async fn a_server_that_refuses_times_but_sets_none_is_not_taken_for_one_that_sets_them() {
        let untimed = || Ok(Some(with(&[taint("new", false)])));
        assert!(!answered(&[], vec![Err(refused(403)), untimed()]).await.1);
    }

    #[tokio::test]
    async fn a_taint_that_the_server_left_without_time_gets_one_when_the_server_allows_it() {
        let times = TimeAdded::default();
        assert_eq!(requests(&times, true).await, [true, false], "the server sets times");
        let patch = |new: ManagedCluster| {
            assert_eq!(new.spec.taints, [taint("left", true)]);
            std::future::ready(Ok(Some(new)))
        };
        times.write(&with(&[taint("left", false)]), with(&[taint("left", true)]), patch).await.unwrap();
        assert_eq!(requests(&times, false).await, [true], "the server accepts times now");
    }

    #[tokio::test]
    async fn times_are_written_unless_the_server_sets_them_and_written_again_when_it_no_longer_does() {
        let times = TimeAdded::default();
        assert_eq!(requests(&times, false).await, [true]);
        assert_eq!(requests(&times, true).await, [true, false], "refused once");
        assert_eq!(requests(&times, true).await, [false]);
        assert_eq!(requests(&times, false).await, [false], "the webhook was removed");
        assert_eq!(requests(&times, false).await, [true]);
    }

    #[test]
    fn taints_that_have_a_time_keep_it() {
        let old = with(&[taint("timed", true), taint("untimed", false)]);
        let new = with(&set([&old.spec.taints[..], &[taint("new", false)]].concat(), now()));
        assert!(new.spec.taints.iter().all(|taint| taint.time_added.is_some()));
        let untimed = without_new_times(&old, &new).spec.taints;
        assert_eq!(untimed, [taint("timed", true), taint("untimed", false), taint("new", false)]);
    }
}
