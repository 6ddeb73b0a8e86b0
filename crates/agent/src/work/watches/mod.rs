//! Watches of objects on the managed cluster, for those who follow single objects.
//!
//! [`ObjectWatches::follow`] sets which objects a follower follows; a follower is named by a text, such as the name of a
//! work, and replaces its objects as a whole. For each resource and namespace there is at most one watch, however many
//! objects in it are followed, and it ends with its last follower. The function that [`ObjectWatches::on_change`] was given
//! is called with each follower of an object that changed, and with all followers after each list.
//!
//! Watches are of metadata, which change whenever anything of an object does, and keep nothing: who wants to know what
//! changed reads the object. So an event is a hint, a failing watch costs nothing but time, and objects that are not
//! watched (there are too many resources, or rights are missing) have to be polled.

mod followers;
mod watch;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use kube::Client;
use ocm_runtime::Context;

use self::followers::Followers;
pub(super) use self::followers::{FollowedObject, WatchedResource};

/// The watches of one client. Cheap to clone.
#[derive(Clone)]
pub(super) struct ObjectWatches {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    context: Context,
    followers: Mutex<Followers<Context>>,
    notify: OnceLock<Notify>,
}

type Notify = Box<dyn Fn(String) + Send + Sync>;

impl fmt::Debug for ObjectWatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectWatches").finish_non_exhaustive()
    }
}

impl ObjectWatches {
    /// At most so many watches, which end with `context`.
    pub(super) fn new(context: &Context, client: Client, most: usize) -> Self {
        let followers = Mutex::new(Followers::new(most));
        Self { shared: Arc::new(Shared { client, context: context.clone(), followers, notify: OnceLock::new() }) }
    }

    /// Sets what is called with the followers of what changed. Only the first call counts.
    pub(super) fn on_change(&self, notify: impl Fn(String) + Send + Sync + 'static) {
        let _ = self.shared.notify.set(Box::new(notify));
    }

    /// Sets which objects a follower follows.
    pub(super) fn follow(&self, follower: &str, objects: &BTreeSet<FollowedObject>) {
        let mut followers = self.shared.followers();
        let unneeded = followers.set(follower, objects);
        unneeded.iter().for_each(Context::end);
        followers.start(|resource| {
            let (watch, resource) = (self.shared.context.child(), resource.clone());
            watch.spawn(watch::follow(self.shared.clone(), resource));
            watch
        });
    }
}

impl Shared {
    fn followers(&self) -> MutexGuard<'_, Followers<Context>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, resource: &WatchedResource, name: &str) {
        let followers = self.followers().of_object(resource, name);
        self.notify_each(followers);
    }

    fn notify_all(&self, resource: &WatchedResource) {
        let followers = self.followers().of_resource(resource);
        self.notify_each(followers);
    }

    fn notify_each(&self, followers: impl IntoIterator<Item = String>) {
        let Some(notify) = self.notify.get() else { return };
        followers.into_iter().for_each(notify);
    }
}
