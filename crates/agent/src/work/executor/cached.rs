//! The feature gate ExecutorValidatingCaches: what executors may do is kept until RBAC objects change.
//!
//! A change drops what is known of the executors that it concerns, in the namespaces that it concerns, and has their works applied
//! again: at once for a few changes, and then once a minute, however often RBAC objects change. RBAC objects are watched only
//! while works have executors.

use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use ocm_runtime::{Context, Informers, Queue, Result};
use tokio::time::{Instant, sleep};

use super::{
    answers::{Answers, UNUSED_FOR},
    rbac::{Rbac, Subjects},
    review::Access,
    subject::ServiceAccount,
};

/// The answers, and what says that they may have changed.
pub(super) struct CachedAnswers {
    answers: Answers,
    informers: Informers,
    context: Context,
    watching: Mutex<Option<Watching>>,
    works: OnceLock<Queue<String>>,
}

/// The watches of RBAC objects, which end with their context.
struct Watching {
    rbac: Rbac,
    context: Context,
}

impl CachedAnswers {
    pub(super) fn new(informers: &Informers, context: &Context) -> Arc<Self> {
        Arc::new(Self {
            answers: Answers::default(),
            informers: informers.clone(),
            context: context.clone(),
            watching: Mutex::default(),
            works: OnceLock::new(),
        })
    }

    /// Has the works that a change of rights concerns added to this queue.
    pub(super) fn notify(&self, works: Queue<String>) {
        let _ = self.works.set(works);
    }

    /// The first verb that is denied, as it is known or as `ask` returns it.
    pub(super) async fn first_denied(
        self: &Arc<Self>,
        account: &ServiceAccount,
        access: &Access,
        work: &str,
        ask: impl Future<Output = Result<Option<&'static str>>>,
    ) -> Result<Option<&'static str>> {
        let (known, is_synced) = self.known(account, access, work);
        if let Some(denied) = known {
            return Ok(denied);
        }
        let asked = Instant::now();
        let denied = ask.await?;
        if is_synced {
            self.answers.insert(account, access, denied, asked);
        }
        Ok(denied)
    }

    /// What is known, and whether changes are noticed that happen from now on.
    fn known(
        self: &Arc<Self>,
        account: &ServiceAccount,
        access: &Access,
        work: &str,
    ) -> (Option<Option<&'static str>>, bool) {
        let mut watching = self.watching();
        let known = self.answers.get(account, access, work, Instant::now());
        let watching = watching.get_or_insert_with(|| self.watch());
        (known, watching.rbac.is_synced())
    }

    fn watch(self: &Arc<Self>) -> Watching {
        let (context, cached) = (self.context.child(), Arc::downgrade(self));
        let rbac = Rbac::watch(&self.informers.part(context.clone()), move |subjects| changed(&cached, subjects));
        context.spawn(sweep(Arc::downgrade(self)));
        Watching { rbac, context }
    }

    fn invalidate(&self, subjects: &Subjects) {
        let works = self.answers.invalidate(|account, namespace| subjects.include(account, namespace), Instant::now());
        if let Some(queue) = self.works.get() {
            works.into_iter().for_each(|(work, wait)| queue.add_after(work, wait));
        }
    }

    /// Drops what no work uses, and the watches with the last of it.
    fn sweep(&self) {
        let mut watching = self.watching();
        if self.answers.sweep(Instant::now())
            && let Some(Watching { context, .. }) = watching.take()
        {
            context.end();
        }
    }

    fn watching(&self) -> MutexGuard<'_, Option<Watching>> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changed(cached: &Weak<CachedAnswers>, subjects: &Subjects) -> ControlFlow<()> {
    let Some(cached) = cached.upgrade() else { return ControlFlow::Break(()) };
    cached.invalidate(subjects);
    ControlFlow::Continue(())
}

async fn sweep(cached: Weak<CachedAnswers>) {
    loop {
        sleep(UNUSED_FOR).await;
        let Some(cached) = cached.upgrade() else { return };
        cached.sweep();
    }
}
