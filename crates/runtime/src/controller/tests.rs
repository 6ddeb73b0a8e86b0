use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::*;
use crate::Error;

/// A controller that panics when it looks at its one key for the first time.
struct Fragile {
    looks: AtomicUsize,
    done: UnboundedSender<usize>,
}

impl Controller for Fragile {
    const NAME: &'static str = "fragile";
    type Key = &'static str;
    type Observed = usize;
    type Plan = ();
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, &'static str>) {
        builder.queue().add("a");
    }

    async fn observe(&self, _: &&'static str) -> Result<Option<usize>, Error> {
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        assert_ne!(look, 0, "this run is to panic");
        Ok(Some(look))
    }

    fn plan(_: &usize, _: Timestamp) {}

    async fn apply(&self, _: &usize, (): ()) -> Result<(), Error> {
        Ok(())
    }

    async fn report(&self, look: &usize, (): (), _: Timestamp) -> Result<Requeue, Error> {
        _ = self.done.send(*look);
        Ok(Requeue::OnChange)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_panics_is_tried_again_and_its_key_is_not_lost() {
    let (context, (done, mut runs)) = (Context::new(), unbounded_channel());
    context.run(Fragile { looks: AtomicUsize::new(0), done }, 1);
    let second = tokio::time::timeout(Duration::from_secs(600), runs.recv()).await;
    assert_eq!(second.unwrap(), Some(1));
    context.stop().await;
}
