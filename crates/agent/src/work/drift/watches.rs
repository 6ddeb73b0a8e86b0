//! Keeps the watches that are worth their cost, and no others.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use kube::{Client, api::ListParams};
use ocm_runtime::{
    Context, Informers,
    error::{Result, ResultExt as _, chain},
};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info};

use super::{
    objects::AppliedObjects,
    scope::{Candidate, Scope, Usage, is_worth_it, within_limit},
    watch::Watch,
};

/// How long to wait for further changes before the watches are chosen again: works come in numbers.
const SETTLE: Duration = Duration::from_millis(500);
/// How long a count, or a refusal, is believed.
const COUNTED_FOR: Duration = Duration::from_secs(600);

/// Starts and ends the watches of an agent.
pub(super) struct Watches {
    client: Client,
    context: Context,
    informers: Informers,
    objects: AppliedObjects,
    limit: usize,
    /// Each in a context of its own.
    running: BTreeMap<Scope, Context>,
    counts: HashMap<Scope, Count>,
    /// The scopes of which the log says that they cannot be watched.
    unwatched: HashSet<Scope>,
}

/// How many objects there were.
struct Count {
    /// `None` where the server refuses to say.
    existing: Option<usize>,
    at: Instant,
}

impl Watches {
    /// At most `limit` watches, in parts of `context`.
    pub(super) fn new(context: &Context, informers: &Informers, objects: AppliedObjects, limit: usize) -> Self {
        Self {
            client: informers.client().clone(),
            context: context.clone(),
            informers: informers.clone(),
            objects,
            limit,
            running: BTreeMap::new(),
            counts: HashMap::new(),
            unwatched: HashSet::new(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            // Also without a change: the number of objects of others changes.
            let _ = timeout(COUNTED_FOR, self.objects.changed()).await;
            sleep(SETTLE).await;
            let desired = self.choose().await;
            self.change_to(&desired);
        }
    }

    /// The watches that are worth their cost.
    async fn choose(&mut self) -> Vec<Scope> {
        self.take_refused();
        self.counts.retain(|_, count| count.at.elapsed() < COUNTED_FOR);
        let mut candidates = Vec::new();
        for usage in self.objects.usage() {
            candidates.extend(self.choose_for(&usage).await);
        }
        within_limit(candidates, self.limit)
    }

    async fn choose_for(&mut self, usage: &Usage) -> Vec<Candidate> {
        let everywhere = usage.everywhere();
        if self.is_worth_it(&everywhere).await {
            return vec![everywhere];
        }
        let mut chosen = Vec::new();
        for candidate in usage.by_namespace() {
            if self.is_worth_it(&candidate).await {
                chosen.push(candidate);
            }
        }
        chosen
    }

    async fn is_worth_it(&mut self, candidate: &Candidate) -> bool {
        let is_running = self.running.contains_key(&candidate.scope);
        let existing = self.count(&candidate.scope).await;
        existing.is_some_and(|existing| is_worth_it(candidate.ours, existing, is_running))
    }

    async fn count(&mut self, scope: &Scope) -> Option<usize> {
        if let Some(count) = self.counts.get(scope) {
            return count.existing;
        }
        let counted = count(&self.client, scope).await;
        if let Err(error) = &counted {
            self.refused(scope, &chain(error));
        }
        let existing = counted.ok();
        self.counts.insert(scope.clone(), Count { existing, at: Instant::now() });
        existing
    }

    /// Logs once why a scope is not watched.
    fn refused(&mut self, scope: &Scope, error: &str) {
        if self.unwatched.insert(scope.clone()) {
            info!(%scope, error, "cannot watch these objects, so drift of them is repaired every few minutes");
        } else {
            debug!(%scope, error, "still cannot watch these objects");
        }
    }

    fn change_to(&mut self, desired: &[Scope]) {
        self.running.retain(|scope, watch| {
            let is_kept = desired.contains(scope);
            if !is_kept {
                debug!(%scope, "these objects are not watched any more");
                watch.end();
            }
            is_kept
        });
        for scope in desired {
            if !self.running.contains_key(scope) {
                self.start(scope);
            }
        }
    }

    fn start(&mut self, scope: &Scope) {
        debug!(%scope, "watching applied objects");
        let watch = Watch {
            client: self.client.clone(),
            scope: scope.clone(),
            objects: self.objects.clone(),
            relists: self.informers.relists(),
        };
        let (context, objects) = (self.context.child(), self.objects.clone());
        self.running.insert(scope.clone(), context.clone());
        context.clone().spawn(async move {
            watch.follow().await;
            context.end();
            objects.choose_again();
        });
    }

    /// What is known of watches that the server has refused.
    fn take_refused(&mut self) {
        let ended = |(scope, watch): (&Scope, &Context)| watch.is_ended().then(|| scope.clone());
        for scope in self.running.iter().filter_map(ended).collect::<Vec<_>>() {
            self.running.remove(&scope);
            self.refused(&scope, "the watch was refused");
            self.counts.insert(scope, Count { existing: None, at: Instant::now() });
        }
    }
}

/// How many objects there are, by a list of one.
async fn count(client: &Client, scope: &Scope) -> Result<usize> {
    let list = scope.api(client).list(&ListParams::default().limit(1)).await;
    let list = list.while_trying_to("count", || scope.to_string())?;
    let is_complete = list.metadata.continue_.is_none_or(|token| token.is_empty());
    let rest = list.metadata.remaining_item_count.and_then(|count| usize::try_from(count).ok());
    // A server that does not count the rest may have any number of them.
    let rest = if is_complete { 0 } else { rest.unwrap_or(usize::MAX) };
    Ok(list.items.len().saturating_add(rest))
}
