//! `ocm agent` and `ocm hub` are killed after their n-th write, for every n of a join and of the lives of works, clusters,
//! placements and add-ons: started again, they finish, nothing is lost, and nothing is left behind.

mod addon;
mod agent;
mod hub;
mod installation;
mod placement;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use kube::config::Kubeconfig;
use ocm_testing::{
    ControlPlane, Process, eventually,
    fault::{FaultyServer, WriteCount},
};

/// A program that is killed at a certain write and started again.
struct Mortal {
    start: Box<dyn Fn() -> anyhow::Result<Process> + Send + Sync>,
    writes: WriteCount,
}

impl Mortal {
    /// Runs it until `life` is complete, and kills it once, right after its n-th write from now. Returns whether it was killed.
    async fn live<F>(&self, nth: usize, life: F) -> anyhow::Result<bool>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        self.live_after(async { Ok(()) }, nth, |()| life).await
    }

    /// Like [`live`](Self::live), but earlier writes do not count.
    async fn live_after<T, B, F>(&self, before: B, nth: usize, life: impl FnOnce(T) -> F) -> anyhow::Result<bool>
    where
        B: Future<Output = anyhow::Result<T>>,
        F: Future<Output = anyhow::Result<()>>,
    {
        let first = Arc::new((self.start)()?);
        let life = life(before.await?);
        self.writes_are_counted().await?;
        let killed = Arc::new(AtomicBool::new(false));
        let (victim, flag) = (Arc::downgrade(&first), killed.clone());
        self.writes.at(nth, move || {
            flag.store(true, Ordering::SeqCst);
            if let Some(victim) = victim.upgrade() {
                let _ = victim.kill();
            }
        });
        let resurrection = async {
            let _ = first.wait().await;
            let second = (self.start)()?;
            second.wait().await?;
            anyhow::bail!("it ended by itself: {}", second.log_tail())
        };
        tokio::select! {
            outcome = life => outcome?,
            outcome = resurrection => outcome?,
        }
        self.writes_are_counted().await?;
        // Otherwise a later write would go unanswered, although no program is killed for it.
        self.writes.cancel();
        Ok(killed.load(Ordering::SeqCst))
    }

    /// The effect of a write can be seen before the write is counted.
    async fn writes_are_counted(&self) -> anyhow::Result<()> {
        eventually("all writes are counted", || async { !self.writes.is_under_way() }).await
    }
}

async fn through(
    plane: &'static ControlPlane,
    writes: &WriteCount,
    kubeconfig: Kubeconfig,
) -> anyhow::Result<(FaultyServer, Kubeconfig)> {
    let server = FaultyServer::counting(plane, writes.clone()).await?;
    let kubeconfig = server.reached_through(kubeconfig);
    Ok((server, kubeconfig))
}
