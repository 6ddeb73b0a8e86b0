//! Who follows which objects, and which of these are watched. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What one watch brings: the objects of a resource in a namespace, or all objects of a resource without namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::work) struct WatchedResource {
    pub group: String,
    pub version: String,
    pub resource: String,
    pub namespace: String,
}

/// An object that somebody follows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::work) struct FollowedObject {
    pub resource: WatchedResource,
    pub name: String,
}

/// Who follows which objects. `W` stops a watch.
#[derive(Debug)]
pub(super) struct Followers<W> {
    most: usize,
    by_follower: HashMap<String, BTreeSet<FollowedObject>>,
    by_resource: BTreeMap<WatchedResource, Watched<W>>,
}

/// A resource of which objects are followed.
#[derive(Debug)]
struct Watched<W> {
    followers: HashMap<String, BTreeSet<String>>,
    /// `None` while there are too many others.
    watch: Option<W>,
}

impl<W> Default for Watched<W> {
    fn default() -> Self {
        Self { followers: HashMap::new(), watch: None }
    }
}

impl<W> Followers<W> {
    /// At most so many watches.
    pub(super) fn new(most: usize) -> Self {
        Self { most, by_follower: HashMap::new(), by_resource: BTreeMap::new() }
    }

    /// Sets what a follower follows, and returns the watches that nobody needs any more.
    pub(super) fn set(&mut self, follower: &str, objects: &BTreeSet<FollowedObject>) -> Vec<W> {
        let before = match objects.is_empty() {
            true => self.by_follower.remove(follower).unwrap_or_default(),
            false => self.by_follower.insert(follower.to_owned(), objects.clone()).unwrap_or_default(),
        };
        for FollowedObject { resource, name } in objects.difference(&before) {
            let watched = self.by_resource.entry(resource.clone()).or_default();
            watched.followers.entry(name.clone()).or_default().insert(follower.to_owned());
        }
        before.difference(objects).filter_map(|object| self.remove(follower, object)).collect()
    }

    fn remove(&mut self, follower: &str, FollowedObject { resource, name }: &FollowedObject) -> Option<W> {
        let watched = self.by_resource.get_mut(resource)?;
        let of_object = watched.followers.get_mut(name)?;
        of_object.remove(follower);
        if of_object.is_empty() {
            watched.followers.remove(name);
        }
        let is_needed = !watched.followers.is_empty();
        if is_needed { None } else { self.by_resource.remove(resource)?.watch }
    }

    /// Starts watches as long as there may be more.
    pub(super) fn start(&mut self, mut start: impl FnMut(&WatchedResource) -> W) {
        let running = self.by_resource.values().filter(|watched| watched.watch.is_some()).count();
        let waiting = self.by_resource.iter_mut().filter(|(_, watched)| watched.watch.is_none());
        for (resource, watched) in waiting.take(self.most.saturating_sub(running)) {
            watched.watch = Some(start(resource));
        }
    }

    /// Who follows an object.
    pub(super) fn of_object(&self, resource: &WatchedResource, name: &str) -> Vec<String> {
        let followers = self.by_resource.get(resource).and_then(|watched| watched.followers.get(name));
        followers.into_iter().flatten().cloned().collect()
    }

    /// Who follows any object of a resource.
    pub(super) fn of_resource(&self, resource: &WatchedResource) -> BTreeSet<String> {
        let watched = self.by_resource.get(resource);
        watched.into_iter().flat_map(|watched| watched.followers.values()).flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::MAX_FEEDBACK_WATCH;

    fn object(resource: &str, name: &str) -> FollowedObject {
        let text = str::to_owned;
        let resource = WatchedResource {
            group: String::new(),
            version: text("v1"),
            resource: text(resource),
            namespace: text("ns"),
        };
        FollowedObject { resource, name: text(name) }
    }

    fn follow(
        followers: &mut Followers<String>,
        follower: &str,
        objects: &[(&str, &str)],
    ) -> (Vec<String>, Vec<String>) {
        let objects = objects.iter().map(|(resource, name)| object(resource, name)).collect();
        let stopped = followers.set(follower, &objects);
        let mut started = Vec::new();
        followers.start(|resource| {
            started.push(resource.resource.clone());
            resource.resource.clone()
        });
        (started, stopped)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_watch_is_shared_and_ends_with_its_last_follower() {
        let mut followers = Followers::new(9);
        assert_eq!(follow(&mut followers, "a", &[("pods", "x"), ("pods", "y")]), (names(&["pods"]), vec![]));
        assert_eq!(follow(&mut followers, "b", &[("pods", "x")]), (vec![], vec![]));
        assert_eq!(followers.of_object(&object("pods", "x").resource, "x"), names(&["a", "b"]));
        assert_eq!(followers.of_object(&object("pods", "x").resource, "y"), names(&["a"]));
        assert_eq!(follow(&mut followers, "a", &[]), (vec![], vec![]));
        assert_eq!(followers.of_object(&object("pods", "x").resource, "y"), names(&[]));
        assert_eq!(follow(&mut followers, "b", &[]), (vec![], names(&["pods"])));
        assert!(followers.by_resource.is_empty() && followers.by_follower.is_empty(), "nothing is left behind");
    }

    #[test]
    fn there_are_no_more_watches_than_allowed_and_one_that_ends_makes_room() {
        let mut followers = Followers::new(2);
        assert_eq!(follow(&mut followers, "a", &[("a", "x"), ("b", "x"), ("c", "x")]).0, names(&["a", "b"]));
        assert_eq!(follow(&mut followers, "b", &[("d", "x")]), (vec![], vec![]));
        assert_eq!(follow(&mut followers, "a", &[("b", "x")]), (names(&["d"]), names(&["a"])));
        assert_eq!(follow(&mut followers, "a", &[("b", "x"), ("b", "y")]), (vec![], vec![]));
        let mut none = Followers::new(0);
        assert_eq!(follow(&mut none, "a", &[("a", "x")]), (vec![], vec![]));
    }

    #[test]
    fn by_default_there_are_fifty_watches_and_the_next_one_begins_when_one_ends() {
        let mut followers = Followers::new(MAX_FEEDBACK_WATCH);
        let started = (0..51).map(|n| follow(&mut followers, &format!("work{n}"), &[(&format!("r{n:02}"), "x")]).0);
        let started: Vec<_> = started.flatten().collect();
        assert_eq!((started.len(), started.last().map(String::as_str)), (50, Some("r49")));
        assert_eq!(follow(&mut followers, "work7", &[]), (names(&["r50"]), names(&["r07"])));
    }

    #[test]
    fn the_followers_of_a_resource_are_those_of_all_its_objects() {
        let mut followers = Followers::new(9);
        follow(&mut followers, "a", &[("pods", "x"), ("pods", "y")]);
        follow(&mut followers, "b", &[("pods", "z"), ("jobs", "z")]);
        let of = |resource| followers.of_resource(&object(resource, "").resource).into_iter().collect::<Vec<_>>();
        assert_eq!((of("pods"), of("jobs"), of("nodes")), (names(&["a", "b"]), names(&["b"]), vec![]));
    }
}
