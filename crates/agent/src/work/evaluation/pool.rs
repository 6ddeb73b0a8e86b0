//! Threads for what may take long.

use std::sync::Arc;

use tokio::{sync::Semaphore, task::spawn_blocking};

/// How many evaluations run at a time.
const THREADS: usize = 2;

/// Evaluates expressions of works outside of the threads that everything else runs in, a few at a time: whatever a work
/// asks for, the agent's lease and other works go on. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::work) struct EvaluationPool {
    permits: Arc<Semaphore>,
}

impl Default for EvaluationPool {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(THREADS)) }
    }
}

impl EvaluationPool {
    /// Runs an evaluation as soon as a thread is free. A panic in it continues in the caller.
    pub(in crate::work) async fn run<T: Send + 'static>(&self, evaluate: impl FnOnce() -> T + Send + 'static) -> T {
        // The semaphore is never closed. The thread keeps the permit even if nobody waits for the result any more.
        let permit = self.permits.clone().acquire_owned().await;
        let evaluation = spawn_blocking(move || {
            let _permit = permit;
            evaluate()
        });
        match evaluation.await {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The process shuts down.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_few_evaluations_run_at_a_time_and_others_wait_while_the_agent_goes_on() {
        let pool = EvaluationPool::default();
        let (started, starts) = mpsc::channel();
        let run = |release: mpsc::Receiver<()>| {
            let (pool, started) = (pool.clone(), started.clone());
            tokio::spawn(async move {
                pool.run(move || {
                    started.send(()).unwrap();
                    release.recv().unwrap();
                })
                .await;
            })
        };
        let (releases, tasks): (Vec<_>, Vec<_>) = (0..THREADS + 1)
            .map(|_| {
                let (release, released) = mpsc::channel();
                (release, run(released))
            })
            .unzip();
        // This test's only thread is not blocked.
        while pool.permits.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        (0..THREADS).for_each(|_| starts.recv().unwrap());
        assert!(starts.try_recv().is_err(), "no more than {THREADS} at a time");
        releases.iter().for_each(|release| release.send(()).unwrap());
        for task in tasks {
            task.await.unwrap();
        }
        assert!(starts.try_recv().is_ok());
    }

    #[tokio::test]
    async fn a_panic_continues_in_the_caller_and_leaves_room_for_others() {
        let pool = EvaluationPool::default();
        for _ in 0..2 * THREADS {
            let failing = pool.clone();
            assert!(tokio::spawn(async move { failing.run(|| panic!("a test")).await }).await.unwrap_err().is_panic());
        }
        assert_eq!(pool.run(|| 1).await, 1);
    }
}
