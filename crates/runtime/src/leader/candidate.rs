//! The loop of a candidate: wait, lead, and release or wait again.

use std::{future::Future, ops::ControlFlow, sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tracing::{error, info, warn};

use super::{
    Lock,
    health::RenewalCheck,
    lock::{Attempt, LeaseLock},
    record::Record,
    settings::{JITTER, Settings},
};
use crate::{Change, Context, Informers, error::chain, informer::WatchFilter};

/// How long the work has to finish when the process is asked to end: pods are killed after half a minute.
const GRACE: Duration = Duration::from_secs(10);
/// How long a process that ends tries to release the lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// One candidate for one lease.
pub(super) struct Candidate {
    context: Context,
    client: Client,
    lock: Lock,
    settings: Settings,
    lease: LeaseLock,
    renewals: RenewalCheck,
    /// The leader that was last logged.
    logged: Option<String>,
}

/// Why leading came to an end.
enum Over<T> {
    /// The process is asked to end.
    Asked,
    /// The lease was not renewed in time.
    NotRenewed,
    /// Somebody else holds the lease.
    Taken(String),
    /// The work ended; `None` if it was aborted.
    Finished(Option<T>),
}

impl Candidate {
    pub(super) fn new(context: Context, client: Client, lock: Lock, settings: Settings) -> Self {
        let lease = LeaseLock::new(client.clone(), lock.clone(), settings, context.clock().clone());
        let renewals = RenewalCheck::new(&context, &lock.name, settings);
        Self { context, client, lock, settings, lease, renewals, logged: None }
    }

    pub(super) async fn run<W, F, E>(mut self, work: W) -> Result<(), E>
    where
        W: Fn(Context) -> F + Send,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Send + 'static,
    {
        while self.acquire().await {
            if let ControlFlow::Break(outcome) = self.term(&work).await {
                return outcome;
            }
        }
        Ok(())
    }

    /// Waits until the lease is acquired. Returns `false` if the process is to end instead.
    async fn acquire(&mut self) -> bool {
        let context = self.context.clone();
        let mut watch = None;
        loop {
            tokio::select! {
                biased;
                () = context.ended() => return self.give_up().await,
                acquired = self.try_acquire() => if acquired { return true },
            }
            let watch = watch.get_or_insert_with(|| LeaseWatch::new(&context, &self.client, &self.lock));
            // As in client-go, so without `Backoff`: candidates that ask less and less often would take over late.
            let pause = self.settings.retry_period().mul_f64(rand::random_range(1.0..=1.0 + JITTER));
            tokio::select! {
                () = context.ended() => return self.give_up().await,
                () = watch.freed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Ends without the lease. An attempt whose response was not received may have acquired it.
    async fn give_up(&mut self) -> bool {
        self.release().await;
        false
    }

    async fn try_acquire(&mut self) -> bool {
        match timeout(self.settings.request_timeout(), self.lease.acquire_or_renew()).await {
            Ok(Ok(Attempt::Held)) => return true,
            Ok(Ok(Attempt::HeldBy(holder))) => self.log_holder(holder),
            Ok(Err(error)) if error.is_conflict() => {}
            Ok(Err(error)) => warn!(error = %chain(&error), "cannot acquire the lease, retrying"),
            Err(_) => warn!("the API server does not answer, cannot acquire the lease, retrying"),
        }
        false
    }

    fn log_holder(&mut self, holder: String) {
        if self.logged.as_ref() != Some(&holder) {
            info!(holder, "another process leads, waiting");
            self.logged = Some(holder);
        }
    }

    /// Leads. Breaks with the work's outcome if this candidate is not to lead again.
    async fn term<W, F, E>(&mut self, work: &W) -> ControlFlow<Result<(), E>>
    where
        W: Fn(Context) -> F,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Send + 'static,
    {
        info!(identity = self.lock.identity, "leading");
        self.logged = None;
        self.report_renewal();
        let term = self.context.child();
        let mut outcome = start(&term, work(term.clone()));
        let context = self.context.clone();
        let over = tokio::select! {
            biased;
            finished = &mut outcome => Over::Finished(finished.ok()),
            () = context.ended() => Over::Asked,
            over = self.renew() => over,
        };
        let finished = self.end(&term, &over).await;
        match over {
            Over::Finished(None) => error!("the work of the leader was aborted"),
            Over::Finished(Some(outcome)) => return self.leave(finished, outcome).await,
            Over::Asked => return self.leave(finished, outcome.try_recv().unwrap_or(Ok(()))).await,
            Over::NotRenewed | Over::Taken(_) => {}
        }
        self.lease.resign();
        match outcome.try_recv() {
            Ok(Err(error)) => ControlFlow::Break(Err(error)),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Renews the lease until that fails. Returns why leading ends.
    async fn renew<T>(&mut self) -> Over<T> {
        loop {
            let deadline = self.lease.leads_until();
            sleep_until(deadline.min(Instant::now() + self.settings.retry_period())).await;
            if Instant::now() >= deadline {
                return Over::NotRenewed;
            }
            let limit = deadline.min(Instant::now() + self.settings.request_timeout());
            match timeout_at(limit, self.lease.acquire_or_renew()).await {
                Ok(Ok(Attempt::Held)) => self.report_renewal(),
                Ok(Ok(Attempt::HeldBy(holder))) => return Over::Taken(holder),
                Ok(Err(error)) => warn!(error = %chain(&error), "cannot renew the lease, retrying"),
                Err(_) => warn!("the API server does not answer, cannot renew the lease, retrying"),
            }
        }
    }

    /// Ends the work. Returns whether all of it was finished in time.
    async fn end<T>(&self, term: &Context, over: &Over<T>) -> bool {
        let limit = match over {
            Over::Taken(holder) => {
                warn!(holder, "another process holds the lease, ending at once");
                Instant::now()
            }
            Over::NotRenewed => {
                warn!("the lease was not renewed in time, ending what runs under it");
                self.lease.finished_by()
            }
            Over::Asked => self.lease.finished_by().min(Instant::now() + GRACE),
            Over::Finished(_) => self.lease.finished_by(),
        };
        let finished = term.stop_by(limit).await;
        if !finished {
            warn!("not everything was finished before another process could acquire the lease, aborted the rest");
        }
        self.renewals.set(None);
        finished
    }

    /// Releases the lease, unless work was aborted: its last writes may still arrive at the API server, so the lease is left
    /// to run out.
    async fn leave<E>(&mut self, finished: bool, outcome: Result<(), E>) -> ControlFlow<Result<(), E>> {
        if finished {
            self.release().await;
        }
        ControlFlow::Break(outcome)
    }

    async fn release(&mut self) {
        match timeout(RELEASE_TIMEOUT, self.lease.release()).await {
            Ok(Ok(true)) => info!("released the lease"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => warn!(error = %chain(&error), "cannot release the lease, it will run out"),
            Err(_) => warn!("the API server does not answer, cannot release the lease, it will run out"),
        }
    }

    fn report_renewal(&self) {
        let renewed = self.lease.leads_until() - self.settings.renew_deadline();
        self.renewals.set(Some(renewed));
    }
}

/// Runs the work as a task of its context, which aborts it when that is aborted.
fn start<T: Send + 'static>(term: &Context, work: impl Future<Output = T> + Send + 'static) -> oneshot::Receiver<T> {
    let (sender, outcome) = oneshot::channel();
    term.spawn_to_completion(async move { _ = sender.send(work.await) });
    outcome
}

/// A watch of the lease, for a candidate: the lease may become free before it runs out.
struct LeaseWatch {
    context: Context,
    freed: Arc<Notify>,
}

impl LeaseWatch {
    fn new(context: &Context, client: &Client, lock: &Lock) -> Self {
        let context = context.child();
        let freed = Arc::new(Notify::new());
        let informers = Informers::new(client.clone(), context.clone());
        let lease = informers.namespaced::<Lease>(&lock.namespace, WatchFilter::named(&lock.name));
        let notice = freed.clone();
        lease.subscribe(move |change| {
            let is_free = match change {
                Change::Deleted(_) => true,
                Change::Added(lease) | Change::Updated { new: lease, .. } => Record::of(lease).holder.is_empty(),
            };
            if is_free {
                notice.notify_one();
            }
            ControlFlow::Continue(())
        });
        Self { context, freed }
    }

    /// Waits until the lease is free.
    async fn freed(&self) {
        self.freed.notified().await;
    }
}

impl Drop for LeaseWatch {
    fn drop(&mut self) {
        self.context.end();
    }
}
