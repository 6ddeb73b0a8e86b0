//! The driver of the four verbs: observe → plan → apply → report.

use std::{
    fmt::Debug,
    future::{Future, ready},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{Instrument as _, debug, info_span, warn};

use crate::{
    context::Context,
    error::{Class, Classified, chain},
    informer::{Cache, Change, Watchable},
    queue::{Key, Queue},
};

/// Conflicts are normal; so many in a row mean that two writers overwrite each other.
const TOO_MANY_CONFLICTS: u32 = 10;

/// What a controller wants after a successful reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Nothing, until something it watches changes.
    OnChange,
    /// To reconcile again after this time, or earlier when something changes.
    After(Duration),
    /// To retry with exponential back-off, as after a failure, though nothing failed: it waits for
    /// somebody else.
    BackOff,
    /// Like [`Requeue::BackOff`], but after no more than this time.
    BackOffWithin(Duration),
    /// The API server refused something, which the status reports: retry after minutes, as after
    /// [`Class::Refused`].
    BackOffSlowly,
}

/// A control loop for the objects that [`Controller::Key`] names.
///
/// The driver takes a key from the queue and calls the verbs in their order. An error ends the run
/// and its [`Class`] decides what follows: a conflict and anything transient is retried with
/// exponential back-off, what the API server refuses is retried after minutes, and an invalid object
/// waits for an edit. A key is never in two runs at once.
///
/// A controller that writes no status leaves out `report`; its `Applied` is `()`. One that writes
/// nothing but a status implements [`StatusController`], which has no `apply`.
pub trait Controller: Send + Sync + 'static {
    /// Name in logs and metrics.
    const NAME: &'static str;
    /// What the queue holds.
    type Key: Key + Debug;
    /// Everything a decision depends on, as plain data.
    type Observed: Send + Sync;
    /// What to write.
    type Plan: Send;
    /// What writing led to.
    type Applied: Send;
    /// What can go wrong.
    type Error: Classified;

    /// Sets up which changes put which keys into the queue, and which caches must be synced first.
    fn setup(&self, builder: &mut ControllerBuilder<'_, Self::Key>);

    /// Gathers what the decision depends on; `None` when there is nothing to decide.
    fn observe(&self, key: &Self::Key) -> impl Future<Output = Result<Option<Self::Observed>, Self::Error>> + Send;

    /// Decides what to write. Pure: everything it knows is in its arguments.
    fn plan(observed: &Self::Observed, now: Timestamp) -> Self::Plan;

    /// Writes what was planned, in order.
    fn apply(
        &self,
        observed: &Self::Observed,
        plan: Self::Plan,
    ) -> impl Future<Output = Result<Self::Applied, Self::Error>> + Send;

    /// Writes the status in at most one request, and decides when to reconcile again. By default
    /// there is no status, and the next change starts the next run.
    fn report(
        &self,
        _observed: &Self::Observed,
        _applied: Self::Applied,
        _now: Timestamp,
    ) -> impl Future<Output = Result<Requeue, Self::Error>> + Send {
        ready(Ok(Requeue::OnChange))
    }
}

/// A [`Controller`] that writes nothing but a status: observe → plan → report.
pub trait StatusController: Send + Sync + 'static {
    /// Name in logs and metrics.
    const NAME: &'static str;
    /// What the queue holds.
    type Key: Key + Debug;
    /// Everything a decision depends on, as plain data.
    type Observed: Send + Sync;
    /// The desired status.
    type Plan: Send;
    /// What can go wrong.
    type Error: Classified;

    /// See [`Controller::setup`].
    fn setup(&self, builder: &mut ControllerBuilder<'_, Self::Key>);

    /// See [`Controller::observe`].
    fn observe(&self, key: &Self::Key) -> impl Future<Output = Result<Option<Self::Observed>, Self::Error>> + Send;

    /// Decides on the status. Pure: everything it knows is in its arguments.
    fn plan(observed: &Self::Observed, now: Timestamp) -> Self::Plan;

    /// Writes the status in at most one request, and decides when to reconcile again.
    fn report(
        &self,
        observed: &Self::Observed,
        plan: Self::Plan,
        now: Timestamp,
    ) -> impl Future<Output = Result<Requeue, Self::Error>> + Send;
}

impl<C: StatusController> Controller for C {
    const NAME: &'static str = C::NAME;
    type Key = C::Key;
    type Observed = C::Observed;
    type Plan = C::Plan;
    type Applied = C::Plan;
    type Error = C::Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, Self::Key>) {
        StatusController::setup(self, builder);
    }

    fn observe(&self, key: &Self::Key) -> impl Future<Output = Result<Option<Self::Observed>, Self::Error>> + Send {
        StatusController::observe(self, key)
    }

    fn plan(observed: &Self::Observed, now: Timestamp) -> Self::Plan {
        <C as StatusController>::plan(observed, now)
    }

    fn apply(&self, _: &C::Observed, plan: C::Plan) -> impl Future<Output = Result<C::Plan, C::Error>> + Send {
        ready(Ok(plan))
    }

    fn report(
        &self,
        observed: &C::Observed,
        plan: C::Plan,
        now: Timestamp,
    ) -> impl Future<Output = Result<Requeue, Self::Error>> + Send {
        StatusController::report(self, observed, plan, now)
    }
}

/// Connects a controller to what it watches.
pub struct ControllerBuilder<'a, K> {
    context: &'a Context,
    queue: &'a Queue<K>,
    needs: Vec<futures::future::BoxFuture<'static, ()>>,
}

impl<K> Debug for ControllerBuilder<'_, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerBuilder").field("needs", &self.needs.len()).finish_non_exhaustive()
    }
}

impl<K: Key> ControllerBuilder<'_, K> {
    /// Puts the keys that `keys` makes of a change into the queue. The first run waits until the
    /// cache is complete.
    pub fn watches<T, I>(&mut self, cache: &Cache<T>, keys: impl Fn(Change<'_, T>) -> I + Send + 'static)
    where
        T: Watchable,
        I: IntoIterator<Item = K>,
    {
        self.waits_for(cache);
        let (queue, context) = (self.queue.clone(), self.context.clone());
        cache.subscribe(move |change| {
            if context.is_ended() {
                // The cache may outlive the controller: it must not keep alive what has ended.
                return ControlFlow::Break(());
            }
            keys(change).into_iter().for_each(|key| queue.add(key));
            ControlFlow::Continue(())
        });
    }

    /// Lets the first run wait until the cache is complete, without reacting to its changes.
    pub fn waits_for<T: Send + Sync + 'static>(&mut self, cache: &Cache<T>) {
        let cache = cache.clone();
        self.needs.push(Box::pin(async move { cache.synced().await }));
    }

    /// Puts a key into the queue at once and then every `period`.
    pub fn every(&mut self, period: Duration, key: K) {
        let queue = self.queue.clone();
        self.context.spawn(async move {
            let mut ticks = tokio::time::interval(period);
            loop {
                ticks.tick().await;
                queue.add(key.clone());
            }
        });
    }

    /// The queue itself, for triggers that are neither changes nor time.
    #[must_use]
    pub fn queue(&self) -> Queue<K> {
        self.queue.clone()
    }
}

/// Runs a controller; see [`Context::run`].
pub(crate) fn run<C: Controller>(context: &Context, controller: C, workers: usize) {
    let queue = Queue::new(context.retries());
    let mut builder = ControllerBuilder { context, queue: &queue, needs: Vec::new() };
    controller.setup(&mut builder);
    let needs = builder.needs;
    let driver = Arc::new(Driver { controller, queue: queue.clone(), context: context.clone() });
    let end = context.end_token();
    context.metrics().watch_queue(C::NAME, move || (!end.is_cancelled()).then(|| queue.depth()));
    context.spawn({
        let context = context.clone();
        async move {
            futures::future::join_all(needs).await;
            context.spawn_to_completion(driver.work(Arc::new(Semaphore::new(workers.max(1)))));
        }
    });
}

struct Driver<C: Controller> {
    controller: C,
    queue: Queue<C::Key>,
    context: Context,
}

impl<C: Controller> Driver<C> {
    /// Starts a task for each key, as many at a time as there are free workers: a controller that has nothing to do
    /// holds no memory for what it might be doing.
    async fn work(self: Arc<Self>, free: Arc<Semaphore>) {
        loop {
            let (worker, key) = tokio::select! {
                biased;
                () = self.context.ended() => return,
                next = self.next(&free) => next,
            };
            let driver = self.clone();
            self.context.spawn_to_completion(async move {
                let span = info_span!("reconcile", controller = C::NAME, key = %key);
                let in_progress = InProgress { queue: &driver.queue, key: &key };
                driver.reconcile(&key).instrument(span).await;
                drop(in_progress);
                drop(worker);
            });
        }
    }

    async fn next(&self, free: &Arc<Semaphore>) -> (Option<OwnedSemaphorePermit>, C::Key) {
        // Nobody closes the semaphore.
        let worker = free.clone().acquire_owned().await.ok();
        (worker, self.queue.next().await)
    }

    async fn reconcile(&self, key: &C::Key) {
        let timer = self.context.metrics().reconcile_started(C::NAME);
        let outcome = self.four_verbs(key).await;
        timer.finish(match &outcome {
            Ok(_) => "success",
            Err(error) => label(error.class()),
        });
        match outcome {
            Ok(next) => self.after_success(key, next),
            Err(error) => self.after_failure(key, &error),
        }
    }

    async fn four_verbs(&self, key: &C::Key) -> Result<Requeue, C::Error> {
        let Some(observed) = self.controller.observe(key).await? else {
            return Ok(Requeue::OnChange);
        };
        let plan = C::plan(&observed, self.context.clock().now());
        let applied = self.controller.apply(&observed, plan).await?;
        self.controller.report(&observed, applied, self.context.clock().now()).await
    }

    fn after_success(&self, key: &C::Key, next: Requeue) {
        match next {
            Requeue::OnChange => self.queue.forget(key),
            Requeue::After(delay) => {
                self.queue.forget(key);
                self.queue.add_after(key.clone(), delay);
            }
            Requeue::BackOff => {
                self.queue.add_failed(key.clone());
            }
            Requeue::BackOffWithin(longest) => {
                self.queue.add_failed_within(key.clone(), longest);
            }
            Requeue::BackOffSlowly => {
                self.queue.add_refused(key.clone());
            }
        }
    }

    fn after_failure(&self, key: &C::Key, error: &C::Error) {
        match error.class() {
            Class::Conflict => {
                let retry_in = self.queue.add_failed(key.clone());
                if self.queue.failures(key) < TOO_MANY_CONFLICTS {
                    debug!("somebody else wrote first, retrying");
                } else {
                    warn!(error = %chain(error), ?retry_in, "somebody else writes first each time, retrying");
                }
            }
            Class::Transient => {
                let retry_in = self.queue.add_failed(key.clone());
                warn!(error = %chain(error), ?retry_in, "reconcile failed, retrying");
            }
            Class::Refused => {
                let retry_in = self.queue.add_refused(key.clone());
                warn!(error = %chain(error), ?retry_in, "refused by the API server, retrying");
            }
            Class::Invalid => warn!(error = %chain(error), "reconcile failed, waiting for an edit"),
        }
    }
}

/// Gives a key back to the queue however its run ends; a run that panics is a failure.
struct InProgress<'a, K: Key> {
    queue: &'a Queue<K>,
    key: &'a K,
}

impl<K: Key> Drop for InProgress<'_, K> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.queue.add_failed(self.key.clone());
        }
        self.queue.done(self.key);
    }
}

fn label(class: Class) -> &'static str {
    match class {
        Class::Invalid => "invalid",
        Class::Refused => "refused",
        Class::Conflict => "conflict",
        Class::Transient => "transient",
    }
}

#[cfg(test)]
mod tests;
