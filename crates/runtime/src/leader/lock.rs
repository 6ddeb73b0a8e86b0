//! Reading and writing a lease, as the election decides.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::ObjectMeta};
use tokio::time::Instant;

use super::{
    Lock,
    election::{Decision, Election, Moment},
    record::Record,
    settings::Settings,
};
use crate::{Clock, error::Result, write};

/// The result of an attempt to acquire or to renew the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// We hold it.
    Held,
    /// Somebody else does.
    HeldBy(String),
}

/// A lease, and our view of it.
pub(super) struct LeaseLock {
    api: Api<Lease>,
    lock: Lock,
    clock: Clock,
    election: Election,
    /// The lease as we last wrote it.
    written: Option<Lease>,
    /// The time from which moments count.
    start: Instant,
}

impl LeaseLock {
    pub(super) fn new(client: Client, lock: Lock, settings: Settings, clock: Clock) -> Self {
        Self {
            api: Api::namespaced(client, &lock.namespace),
            election: Election::new(&lock.identity, settings),
            lock,
            clock,
            written: None,
            start: Instant::now(),
        }
    }

    /// Tries to acquire or to renew the lease.
    pub(super) async fn acquire_or_renew(&mut self) -> Result<Attempt> {
        if let (Some(record), Some(lease)) = (self.election.renewal(self.time()), self.written.clone()) {
            // After any error, reading the lease shows what to do next.
            if self.update(lease, record).await.is_ok() {
                return Ok(Attempt::Held);
            }
        }
        let found = write::get(&self.api, &self.lock.name).await?;
        let decision = self.election.decide(found.as_ref().map(Record::of), self.now(), self.time());
        match decision {
            Decision::Wait { holder } => return Ok(Attempt::HeldBy(holder)),
            Decision::Create(record) => self.create(record).await?,
            Decision::Update(record) => self.update(found.unwrap_or_default(), record).await?,
        }
        Ok(Attempt::Held)
    }

    /// Releases the lease, if we hold it.
    pub(super) async fn release(&mut self) -> Result<bool> {
        self.resign();
        let Some(lease) = write::get(&self.api, &self.lock.name).await? else { return Ok(false) };
        match self.election.release(&Record::of(&lease), self.time()) {
            Some(record) => self.update(lease, record).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Records that we do not lead any more.
    pub(super) fn resign(&mut self) {
        self.election.resign();
        self.written = None;
    }

    /// Until when we lead, unless the lease is renewed. Now, if we do not.
    pub(super) fn leads_until(&self) -> Instant {
        self.election.leads_until().map_or_else(Instant::now, |moment| self.start + moment)
    }

    /// Until when work under the lease must have ended, unless it is renewed. Now, if we do not lead.
    pub(super) fn finished_by(&self) -> Instant {
        self.election.finished_by().map_or_else(Instant::now, |moment| self.start + moment)
    }

    async fn create(&mut self, record: Record) -> Result<()> {
        let (name, namespace) = (self.lock.name.clone(), self.lock.namespace.clone());
        let metadata = ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() };
        let mut lease = Lease { metadata, ..Lease::default() };
        record.write_to(&mut lease);
        let sent = self.now();
        let created = write::create(&self.api, &lease).await?;
        self.take(created, record, sent);
        Ok(())
    }

    async fn update(&mut self, mut lease: Lease, record: Record) -> Result<()> {
        record.write_to(&mut lease);
        let sent = self.now();
        let updated = write::replace(&self.api, &lease).await?;
        self.take(updated, record, sent);
        Ok(())
    }

    fn take(&mut self, lease: Lease, record: Record, sent: Moment) {
        self.election.written(record, sent);
        self.written = Some(lease);
    }

    fn now(&self) -> Moment {
        self.start.elapsed()
    }

    fn time(&self) -> Timestamp {
        self.clock.now()
    }
}
